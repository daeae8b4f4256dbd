/* base/bell.h - what a thread sleeps on until another one has news for it.
 *
 * The sleeper sets `sleeping`, reads `rings`, looks once more whether there is news, and sleeps; a
 * thread that has news writes it down first and rings then. All of these are sequentially
 * consistent: either the ringing thread sees that the other one sleeps, or the sleeper sees the
 * news. A bell may lie in memory that processes share, so that a thread of one process wakes a
 * thread of another. */
#ifndef GP_BASE_BELL_H
#define GP_BASE_BELL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A cache line of its own: no thread writes to the bell of one that is awake. */
typedef struct gp_bell {
  _Alignas(64) _Atomic uint32_t rings; /* counts the rings while it slept */
  _Atomic uint32_t sleeping;
  bool is_shared; /* other processes may ring it */
} gp_bell;

/* Sleep unless it has rung since `rings` was read; at most so long, in nanoseconds. */
void gp_bell_sleep(gp_bell *bell, uint32_t rings, int64_t most_ns);
/* Wake the threads that sleep on it. */
void gp_bell_ring(gp_bell *bell);

#endif
