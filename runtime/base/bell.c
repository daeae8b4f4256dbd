/* base/bell.c - see bell.h. */
#include "base/bell.h"

#include <limits.h>

#include "base/thread.h"

void gp_bell_sleep(gp_bell *bell, uint32_t rings, int64_t most_ns) {
  if (bell->is_shared)
    gp_wait_shared_word(&bell->rings, rings, most_ns);
  else
    gp_wait_word(&bell->rings, rings, most_ns);
}

void gp_bell_ring(gp_bell *bell) {
  if (!atomic_load(&bell->sleeping)) return;
  atomic_fetch_add(&bell->rings, 1);
  if (bell->is_shared)
    gp_wake_shared_word(&bell->rings, INT_MAX);
  else
    gp_wake_word(&bell->rings, INT_MAX);
}
