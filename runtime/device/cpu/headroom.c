/* device/cpu/headroom.c - a reserve behind operator new, installed from C.
 *
 * libstdc++ calls the new-handler when an allocation fails and then tries again. dlsym finds the
 * function that sets the handler, because its name is stable, so no C++ compiler and no link to
 * libstdc++ is needed. Begin first checks that the memory is there: the reserve only makes up for
 * what other threads take meanwhile. With another C++ library (libc++) there is only the check. */
#include "device/cpu/headroom.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum {
  RESERVE = 8 << 20, /* bytes; starting oneDNN takes about 1 MB with operator new */
  RETRIES = 64       /* of failed allocations, while other threads use up the memory */
};

typedef void (*new_handler)(void);
typedef new_handler set_new_handler(new_handler);

/* Used between begin and end only, by the thread that called begin and by operator new. */
static struct {
  set_new_handler *set;
  new_handler before;
  void *volatile reserve;
  volatile int retries;
} headroom;

/* Free the reserve and return, which means "try again"; without a handler operator new throws. */
static void give_memory(void) {
  void *reserve = headroom.reserve;
  headroom.reserve = NULL;
  free(reserve);
  if (!reserve && --headroom.retries <= 0) headroom.set(headroom.before);
}

/* The library stays loaded: the code that is started here needs it anyway. */
static set_new_handler *find_set_handler(void) {
  set_new_handler *set = NULL;
  void *library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
  void *address = library ? dlsym(library, "_ZSt15set_new_handlerPFvvE") : NULL;
  memcpy(&set, &address, sizeof set);
  return set;
}

gp_status gp_headroom_begin(size_t bytes) {
  void *probe = malloc(bytes + RESERVE);
  if (!probe) return gp_fail(GP_ENOMEM, "out of memory: %zu bytes", bytes + RESERVE);
  free(probe);
  headroom.reserve = malloc(RESERVE);
  headroom.retries = RETRIES;
  if (!headroom.set) headroom.set = find_set_handler();
  if (headroom.set) headroom.before = headroom.set(give_memory);
  return GP_OK;
}

void gp_headroom_end(void) {
  if (headroom.set) headroom.set(headroom.before);
  free(headroom.reserve);
  headroom.reserve = NULL;
}
