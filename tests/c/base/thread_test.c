/* tests/c/base/thread_test.c - threads start in a known state; waiting and waking. */
#include "base/thread.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/machine/cores.h"
#include "base/memory.h"
#include "test.h"

/* What a thread finds when it starts. */
typedef struct state {
  unsigned float_mode;
  bool signals_blocked;
  char name[32];
  int cores;
} state;

static unsigned float_mode(void) {
#if defined(__x86_64__) || defined(__i386__)
  return __builtin_ia32_stmxcsr() & 0xffc0u; /* the lowest six bits are sticky exception flags */
#else
  return 0x1f80;
#endif
}

static void *look_around(void *context) {
  state *s = context;
  sigset_t blocked;
  pthread_sigmask(SIG_BLOCK, NULL, &blocked);
  s->float_mode = float_mode();
  s->signals_blocked = sigismember(&blocked, SIGINT) == 1 && sigismember(&blocked, SIGTERM) == 1;
  pthread_getname_np(pthread_self(), s->name, sizeof s->name);
  cpu_set_t cores;
  s->cores = sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : -1;
  return s;
}

static state start_and_look(const gp_thread_options *options) {
  state s = {0};
  pthread_t thread;
  void *result = NULL;
  gp_status status = gp_thread_start(&thread, options, look_around, &s);
  CHECK_STATUS(status, GP_OK);
  if (status == GP_OK) pthread_join(thread, &result);
  CHECK(result == &s);
  return s;
}

static void flush_denormals(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_ldmxcsr(0x9fc0); /* what a fast-math library leaves behind */
#endif
}

TEST(threads_start_in_a_known_state) {
  size_t live = gp_memory().live;
  flush_denormals();
  state s = start_and_look(&(gp_thread_options){.name = "a-name-longer-than-fifteen"});
  CHECK(s.float_mode == 0x1f80);
  CHECK(s.signals_blocked);
  CHECK(strcmp(s.name, "a-name-longer-t") == 0);
  gp_float_mode_reset();
  CHECK(float_mode() == 0x1f80);
  sigset_t blocked;
  pthread_sigmask(SIG_BLOCK, NULL, &blocked);
  CHECK(sigismember(&blocked, SIGINT) == 0); /* the starter keeps its own mask */
  start_and_look(&(gp_thread_options){0});
  CHECK(gp_memory().live == live);
}

TEST(threads_are_pinned_by_position) {
  gp_cores allowed = gp_cores_allowed();
  int count = gp_cores_count(&allowed), last = count - 1, none = count, negative = -1;
  CHECK(count >= 1);
  CHECK(start_and_look(&(gp_thread_options){.cores = &last, .core_count = 1}).cores == 1);
  CHECK(start_and_look(&(gp_thread_options){0}).cores == count);
  pthread_t thread;
  gp_thread_options bad = {.cores = &none, .core_count = 1};
  CHECK_STATUS(gp_thread_start(&thread, &bad, look_around, NULL), GP_ERANGE);
  bad.cores = &negative;
  CHECK_STATUS(gp_thread_start(&thread, &bad, look_around, NULL), GP_ERANGE);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/* Runs in a child that may have no address space left for a stack. It must be the first test: later
 * ones leave stacks that are used again. */
TEST(a_thread_that_cannot_start_says_why) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    pthread_t thread;
    long pages = 0;
    FILE *sizes = fopen("/proc/self/statm", "r");
    if (!sizes || fscanf(sizes, "%ld", &pages) != 1) exit(3);
    rlim_t most = (rlim_t)(pages * sysconf(_SC_PAGESIZE)) + (1 << 20);
    struct rlimit before, limit;
    if (getrlimit(RLIMIT_AS, &before)) exit(4);
    limit = (struct rlimit){.rlim_cur = most, .rlim_max = before.rlim_max};
    if (setrlimit(RLIMIT_AS, &limit)) exit(2);
    gp_status status =
        gp_thread_start(&thread, &(gp_thread_options){.name = "late"}, look_around, NULL);
    const char *text = gp_error_text();
    bool said = strstr(text, "late") && strstr(text, strerrordesc_np(EAGAIN));
    setrlimit(RLIMIT_AS, &before);
    exit(status == GP_ENOMEM && said ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(status == 0);
}
#else
TEST(a_thread_that_cannot_start_says_why) {}
#endif

TEST(waits_end_by_time_or_by_value) {
  _Atomic uint32_t word = 5;
  gp_wait_word(&word, 4, -1); /* the word has another value: returns at once */
  int64_t start = gp_now_ns();
  while (gp_now_ns() < start + 2000000) gp_wait_word(&word, 5, 2000000);
  CHECK(gp_now_ns() - start < 10000000000);
}

static void *answer(void *context) {
  _Atomic uint32_t *word = context;
  while (atomic_load(word) != 1) gp_wait_word(word, 0, -1);
  atomic_store(word, 2);
  gp_wake_word(word, INT_MAX);
  return NULL;
}

TEST(words_wake_sleepers) {
  for (int round = 0; round < 100; round++) {
    _Atomic uint32_t word = 0;
    pthread_t thread;
    CHECK_STATUS(gp_thread_start(&thread, &(gp_thread_options){.name = "answer"}, answer, &word),
                 GP_OK);
    atomic_store(&word, 1);
    gp_wake_word(&word, 1);
    while (atomic_load(&word) != 2) gp_wait_word(&word, 1, -1);
    pthread_join(thread, NULL);
  }
}

TEST_MAIN(a_thread_that_cannot_start_says_why, threads_start_in_a_known_state,
          threads_are_pinned_by_position, waits_end_by_time_or_by_value, words_wake_sleepers)
