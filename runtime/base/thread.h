/* base/thread.h - threads, cores, waiting and time: the little that the runtime needs from
 * POSIX. */
#ifndef GP_BASE_THREAD_H
#define GP_BASE_THREAD_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/status.h"

/* Start a thread with all signals blocked, MXCSR at its default and the name (15 characters) set.
 * cores: 0-based positions among the cores that this process may use; count 0 leaves the affinity
 * alone. */
typedef struct gp_thread_options {
  const char *name;
  const int *cores;
  int core_count;
} gp_thread_options;
gp_status gp_thread_start(pthread_t *thread, const gp_thread_options *options, void *(*run)(void *),
                          void *context);

/* Tell whether gp_thread_start started the calling thread: no signal is delivered to
 * such a thread. */
bool gp_thread_is_ours(void);

/* Set the calling thread's floating-point mode: denormals kept, round to nearest, no traps. Threads
 * of ours start so; the script's own thread needs it after loading foreign libraries. */
void gp_float_mode_reset(void);

/* Wait while *word == value, at most timeout_ns (negative: no limit); wakes may be spurious. Futex
 * on Linux. */
void gp_wait_word(_Atomic uint32_t *word, uint32_t value, int64_t timeout_ns);
void gp_wake_word(_Atomic uint32_t *word, int count); /* INT_MAX: all threads */
/* The same for a word in memory that processes share. */
void gp_wait_shared_word(_Atomic uint32_t *word, uint32_t value, int64_t timeout_ns);
void gp_wake_shared_word(_Atomic uint32_t *word, int count);

int64_t gp_now_ns(void); /* CLOCK_MONOTONIC */

/* Tell the core that this is a spin loop. */
static inline void gp_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

#endif
