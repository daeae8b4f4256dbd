/* base/thread.c - starting threads, waiting on a word, the clock.
 *
 * Every thread of the runtime starts in one known state, because a library loaded with
 * fast-math changes the floating-point mode of the thread that loaded it and new threads
 * inherit that mode: the bits of a result would depend on the thread that started them. Signals
 * stay with the main thread. */
#include "base/thread.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h> /* strerrordesc_np */
#include <time.h>
#include <unistd.h>
#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#endif

#include "base/machine/cores.h"

/* ---- start ---- */

/* What the new thread needs; on the stack of its creator, which waits until it is copied. */
typedef struct start {
  void *(*run)(void *);
  void *context;
  char name[16]; /* the kernel's limit */
  _Atomic uint32_t copied;
} start;

static _Thread_local bool ours;

bool gp_thread_is_ours(void) { return ours; }

/* The first code of every thread: set the state described above, then call the caller's
 * function. */
static void *begin(void *argument) {
  start *s = argument;
  void *(*run)(void *) = s->run, *context = s->context;
  ours = true;
  gp_float_mode_reset();
  if (s->name[0]) pthread_setname_np(pthread_self(), s->name);
  atomic_store(&s->copied, 1);
  gp_wake_word(&s->copied, 1); /* only the address is used: the word may be gone by now */
  return run(context);
}

/* Create the thread with all signals blocked: it inherits the mask of its creator. */
static int create_masked(pthread_t *thread, const pthread_attr_t *attr, start *s) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(thread, attr, begin, s);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return error;
}

/* A refusal means a lack of resources (EAGAIN): the limit of processes, or no memory for a
 * stack. */
static gp_status create(pthread_t *thread, const pthread_attr_t *attr, start *s) {
  int error = create_masked(thread, attr, s);
  if (error == 0) return GP_OK;
  const char *text = strerrordesc_np(error);
  return gp_fail(
      GP_ENOMEM, "thread %s: cannot start it: %s%s", s->name, text ? text : "unknown error",
      error == EAGAIN ? " (the limit of processes, ulimit -u, or no memory for its stack)" : "");
}

gp_status gp_thread_start(pthread_t *thread, const gp_thread_options *options, void *(*run)(void *),
                          void *context) {
  gp_cores cores;
  if (options->core_count > 0) GP_TRY(gp_cores_pick(options->cores, options->core_count, &cores));
  start s = {.run = run, .context = context};
  snprintf(s.name, sizeof s.name, "%s", options->name ? options->name : "");
  pthread_attr_t attr;
  pthread_attr_init(&attr);
  if (options->core_count > 0) gp_cores_apply(&cores, &attr);
  gp_status status = create(thread, &attr, &s);
  pthread_attr_destroy(&attr);
  while (!status && !atomic_load(&s.copied)) gp_wait_word(&s.copied, 0, -1);
  return status;
}

void gp_float_mode_reset(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_ldmxcsr(0x1f80); /* exceptions masked, denormals kept, round to nearest */
#elif defined(__aarch64__)
  __asm__ volatile("msr fpcr, xzr");
#endif
}

/* ---- waiting ---- */

static struct timespec to_timespec(int64_t ns) {
  return (struct timespec){.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
}

#if defined(__linux__)
/* Sleeping and waking are hints here: all ordering comes from the atomics around them. A futex of
 * one process alone is found faster. */
static void wait_futex(int how, _Atomic uint32_t *word, uint32_t value, int64_t timeout_ns) {
  struct timespec limit = to_timespec(timeout_ns < 0 ? 0 : timeout_ns);
  syscall(SYS_futex, word, how, value, timeout_ns < 0 ? NULL : &limit, NULL, 0);
}

void gp_wait_word(_Atomic uint32_t *word, uint32_t value, int64_t timeout_ns) {
  wait_futex(FUTEX_WAIT_PRIVATE, word, value, timeout_ns);
}

void gp_wait_shared_word(_Atomic uint32_t *word, uint32_t value, int64_t timeout_ns) {
  wait_futex(FUTEX_WAIT, word, value, timeout_ns);
}

void gp_wake_word(_Atomic uint32_t *word, int count) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

void gp_wake_shared_word(_Atomic uint32_t *word, int count) {
  syscall(SYS_futex, word, FUTEX_WAKE, count, NULL, NULL, 0);
}
#else
/* Without a futex, look again every 50 microseconds. */
void gp_wait_word(_Atomic uint32_t *word, uint32_t value, int64_t timeout_ns) {
  int64_t end = timeout_ns < 0 ? INT64_MAX : gp_now_ns() + timeout_ns;
  struct timespec nap = to_timespec(50000);
  while (atomic_load(word) == value && gp_now_ns() < end) nanosleep(&nap, NULL);
}

void gp_wake_word(_Atomic uint32_t *word, int count) {
  (void)word;
  (void)count;
}

void gp_wait_shared_word(_Atomic uint32_t *word, uint32_t value, int64_t timeout_ns) {
  gp_wait_word(word, value, timeout_ns);
}

void gp_wake_shared_word(_Atomic uint32_t *word, int count) { gp_wake_word(word, count); }
#endif

int64_t gp_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
