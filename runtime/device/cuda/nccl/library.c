/* device/cuda/nccl/library.c - see library.h.
 *
 * The library is never unloaded: it has threads, and registers code with the driver. */
#include "device/cuda/nccl/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/table.h"

#ifdef GP_HAS_NCCL

#define TEXT_OF(x)   #x
#define NAME(major)  "libnccl.so." TEXT_OF(major)
#define LIBRARY_NAME NAME(NCCL_MAJOR)

static struct {
  gp_nccl_library library;
  bool found;
  int version;
  char why[256];
} opened_once;

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* A function pointer has the size of an object pointer here, which ISO C does not promise. */
static bool find(void *opened, const char *name, void *function) {
  void *found = dlsym(opened, name);
  memcpy(function, &found, sizeof found);
  if (!found) snprintf(opened_once.why, sizeof opened_once.why, LIBRARY_NAME " has no %s", name);
  return found != NULL;
}

static bool find_all(void *opened) {
#define FIND(name)                                                                                 \
  if (!find(opened, #name, &opened_once.library.name)) return false;
  GP_NCCL_FUNCTIONS(FIND)
#undef FIND
  return true;
}

static void open_once(void) {
  const char *named = getenv("GPIPE_NCCL_LIBRARY");
  void *opened =
      dlopen(named && *named ? named : LIBRARY_NAME, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!opened) {
    const char *why = dlerror();
    snprintf(opened_once.why, sizeof opened_once.why, "%s",
             why ? why : LIBRARY_NAME " cannot be opened");
    return;
  }
  opened_once.found = find_all(opened);
  dlclose(opened);
  if (opened_once.found) (void)opened_once.library.ncclGetVersion(&opened_once.version);
}

const gp_nccl_library *gp_nccl_library_get(const char **why) {
  (void)pthread_once(&once, open_once);
  if (why) *why = opened_once.why;
  return opened_once.found ? &opened_once.library : NULL;
}

/* The version number 22809 means 2.28.9. */
void gp_cuda_describe_nccl(gp_gpu_library *library) {
  const char *why;
  snprintf(library->name, sizeof library->name, "NCCL");
  if (!gp_nccl_library_get(&why)) {
    snprintf(library->why, sizeof library->why, "%s", why);
    return;
  }
  snprintf(library->version, sizeof library->version, "%d.%d.%d", opened_once.version / 10000,
           opened_once.version / 100 % 100, opened_once.version % 100);
}

#else

static const char no_header[] = "the plugin was built without nccl.h";

const gp_nccl_library *gp_nccl_library_get(const char **why) {
  if (why) *why = no_header;
  return NULL;
}

void gp_cuda_describe_nccl(gp_gpu_library *library) {
  snprintf(library->name, sizeof library->name, "NCCL");
  snprintf(library->why, sizeof library->why, "%s", no_header);
}

#endif
