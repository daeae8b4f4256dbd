/* linalg/lapack.c - loads LAPACK: the reference library, or OpenBLAS in its place.
 *
 * OpenBLAS would start threads of its own, which take cores from devices and whose number changes
 * bits: it is limited to the calling thread. */
#include "linalg/lapack.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/thread.h"

/* Written once, by open_once. */
static struct {
  gp_lapack_f32 f32;
  gp_lapack_f64 f64;
  char why[256]; /* "" if the library is there */
} library;

static pthread_once_t opened = PTHREAD_ONCE_INIT;

static void *open_library(void) {
  static const char *const names[] = {"liblapack.so.3", "libopenblas.so.0"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    void *handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (handle) return handle;
    const char *reason = i ? NULL : dlerror();
    if (reason) snprintf(library.why, sizeof library.why, "%s", reason);
  }
  return NULL;
}

/* dlsym gives an object pointer; POSIX lets it hold a function's address. */
static void find(void *handle, const char *name, void *function) {
  void *address = dlsym(handle, name);
  memcpy(function, &address, sizeof address);
}

static void find_needed(void *handle, const char *name, void *function) {
  find(handle, name, function);
  if (!dlsym(handle, name)) snprintf(library.why, sizeof library.why, "the library lacks %s", name);
}

static void open_once(void) {
  void *handle = open_library();
  gp_float_mode_reset();
  if (!handle) return;
  library.why[0] = 0;
  void (*set_threads)(int);
  find(handle, "openblas_set_num_threads", &set_threads);
  if (set_threads) set_threads(1);
#define FIND_F32(name, parameters) find_needed(handle, "s" #name "_", &library.f32.name);
#define FIND_F64(name, parameters) find_needed(handle, "d" #name "_", &library.f64.name);
  GP_LAPACK_LIST(FIND_F32, float)
  GP_LAPACK_LIST(FIND_F64, double)
}

gp_status gp_lapack_open(const gp_lapack_f32 **f32, const gp_lapack_f64 **f64) {
  pthread_once(&opened, open_once);
  if (library.why[0])
    return gp_fail(GP_EUNSUPPORTED, "LAPACK is missing (%s), expected the package liblapack3",
                   library.why);
  *f32 = &library.f32;
  *f64 = &library.f64;
  return GP_OK;
}
