/* device/cuda/cudnn/library.c - see library.h.
 *
 * The library is never unloaded: it opens other libraries and registers code with the driver. */
#include "device/cuda/cudnn/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define TEXT_OF(x)   #x
#define NAME(major)  "libcudnn.so." TEXT_OF(major)
#define LIBRARY_NAME NAME(CUDNN_MAJOR)

/* A function pointer has the size of an object pointer here, which ISO C does not promise. */
static bool find(void *opened, const char *name, void *function) {
  void *found = dlsym(opened, name);
  memcpy(function, &found, sizeof found);
  return found != NULL;
}

/* Find all functions: a library that lacks one of them is too old. */
static bool find_all(void *opened, gp_cudnn_library *library, char *text, size_t size) {
#define FIND(name)                                                                                 \
  if (!find(opened, #name, &library->name)) {                                                      \
    snprintf(text, size, LIBRARY_NAME " has no " #name);                                           \
    return false;                                                                                  \
  }
  GP_CUDNN_FUNCTIONS(FIND)
#undef FIND
  return true;
}

bool gp_cudnn_library_open(gp_cudnn_library *library, char *text, size_t size) {
  void *opened = dlopen(LIBRARY_NAME, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!opened) {
    const char *why = dlerror();
    snprintf(text, size, "%s", why ? why : LIBRARY_NAME " cannot be opened");
    return false;
  }
  bool found = find_all(opened, library, text, size);
  dlclose(opened);
  return found;
}

/* ---- the library of the process ------------------------------------------------------------- */

static struct {
  gp_cudnn_library library;
  bool found;
  char why[256];
} opened_once;

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void open_once(void) {
  opened_once.found =
      gp_cudnn_library_open(&opened_once.library, opened_once.why, sizeof opened_once.why);
}

const gp_cudnn_library *gp_cudnn_library_get(const char **why) {
  (void)pthread_once(&once, open_once);
  if (why) *why = opened_once.why;
  return opened_once.found ? &opened_once.library : NULL;
}
