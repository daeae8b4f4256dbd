/* device/team.c - the helper threads of a CPU device and the hand-out of pieces.
 *
 * A job is published in one word: bit 0 says that it is open, the upper bits count the helpers
 * inside. A helper enters by adding itself while the word is open, and only then looks at the job;
 * the caller closes the word and waits for the count to fall to zero, and only then may the job
 * change. So a helper that wakes late finds the word closed and never sees a job that is over, and
 * the caller never waits for a helper that is still asleep.
 *
 * Pieces go out in ascending order from one counter and a piece that was handed out runs: every
 * piece below a failed one has therefore started, and the smallest failure is the same every
 * run. */
#include "device/team.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/thread.h"

enum {
  JOB_OPEN = 1,
  JOB_CALLER_SLEEPS = 2, /* the last helper out must wake the caller */
  JOB_MEMBER = 4,        /* one helper inside */
  HELPER_SPINS = 1000,   /* 15 to 40 microseconds: the gap between two ops of a program */
  CALLER_SPINS = 200,    /* pieces end at about the same time */
  FAILURE_TEXT = 2048
};

typedef struct helper {
  pthread_t thread;
  struct gp_team *team;
  int member;
} helper;

/* The words that several threads write lie on separate cache lines. */
struct gp_team {
  int size, started; /* helpers that run: size - 1 once it is made */
  bool spin;
  helper *helpers;
  /* The job: written while the word is closed and no helper is inside. */
  gp_piece piece;
  void *context;
  int64_t pieces;

  _Alignas(64) _Atomic int64_t next;   /* index of the next piece */
  _Alignas(64) _Atomic uint32_t job;   /* open bit, sleep bit, helpers inside */
  _Alignas(64) _Atomic uint32_t epoch; /* counts publications; helpers sleep on it */
  _Atomic uint32_t sleepers;
  atomic_bool quit;
  _Alignas(64) atomic_bool failed;
  pthread_mutex_t failure_lock; /* guards the three fields below */
  gp_status failure;
  int64_t failure_index;
  char failure_text[FAILURE_TEXT];
};

/* ---- pieces ---- */

static void keep_failure(gp_team *team, gp_status status, int64_t index) {
  pthread_mutex_lock(&team->failure_lock);
  if (team->failure == GP_OK || index < team->failure_index) {
    team->failure = status;
    team->failure_index = index;
    snprintf(team->failure_text, sizeof team->failure_text, "%s", gp_error_text());
  }
  pthread_mutex_unlock(&team->failure_lock);
  atomic_store_explicit(&team->failed, true, memory_order_relaxed);
}

/* Take pieces until there are none or one has failed. */
static void work(gp_team *team, int member) {
  while (!atomic_load_explicit(&team->failed, memory_order_relaxed)) {
    int64_t index = atomic_fetch_add_explicit(&team->next, 1, memory_order_relaxed);
    if (index >= team->pieces) return;
    gp_status status = team->piece(team->context, index, member);
    if (status != GP_OK) keep_failure(team, status, index);
  }
}

/* ---- helpers ---- */

static bool enter_job(gp_team *team) {
  uint32_t job = atomic_load_explicit(&team->job, memory_order_relaxed);
  while (job & JOB_OPEN)
    if (atomic_compare_exchange_weak_explicit(&team->job, &job, job + JOB_MEMBER,
                                              memory_order_acquire, memory_order_relaxed))
      return true;
  return false;
}

static void leave_job(gp_team *team) {
  uint32_t job =
      atomic_fetch_sub_explicit(&team->job, JOB_MEMBER, memory_order_release) - JOB_MEMBER;
  if (job == JOB_CALLER_SLEEPS) gp_wake_word(&team->job, 1);
}

/* Return when the epoch has moved on from `seen`. */
static void await_epoch(gp_team *team, uint32_t seen) {
  for (int i = 0; team->spin && i < HELPER_SPINS; i++) {
    if (atomic_load_explicit(&team->epoch, memory_order_acquire) != seen) return;
    gp_pause();
  }
  /* Sequentially consistent on both sides: publish either sees the sleeper or is seen by it. */
  atomic_fetch_add(&team->sleepers, 1);
  while (atomic_load(&team->epoch) == seen) gp_wait_word(&team->epoch, seen, -1);
  atomic_fetch_sub(&team->sleepers, 1);
}

static void *help(void *argument) {
  helper *self = argument;
  gp_team *team = self->team;
  while (!atomic_load(&team->quit)) {
    uint32_t seen = atomic_load(&team->epoch);
    if (enter_job(team)) {
      work(team, self->member);
      leave_job(team);
    }
    /* quit is set before the epoch moves, so a later look at it here would not miss it. */
    if (!atomic_load(&team->quit)) await_epoch(team, seen);
  }
  return NULL;
}

/* ---- the caller ---- */

static void publish(gp_team *team, int wanted) {
  atomic_fetch_add(&team->epoch, 1);
  uint32_t sleepers = atomic_load(&team->sleepers);
  if (sleepers > 0) gp_wake_word(&team->epoch, wanted);
}

/* Close the job and wait until the helpers inside have left. */
static void finish_job(gp_team *team) {
  uint32_t job = atomic_fetch_and_explicit(&team->job, ~(uint32_t)JOB_OPEN, memory_order_acquire);
  job &= ~(uint32_t)JOB_OPEN;
  for (int i = 0; job >= JOB_MEMBER && i < CALLER_SPINS; i++) {
    gp_pause();
    job = atomic_load_explicit(&team->job, memory_order_acquire);
  }
  if (job < JOB_MEMBER) return;
  job = atomic_fetch_or(&team->job, JOB_CALLER_SLEEPS) | JOB_CALLER_SLEEPS;
  while (job >= JOB_MEMBER) {
    gp_wait_word(&team->job, job, -1);
    job = atomic_load_explicit(&team->job, memory_order_acquire);
  }
}

static gp_status run_alone(int64_t pieces, gp_piece piece, void *context) {
  for (int64_t i = 0; i < pieces; i++) GP_TRY(piece(context, i, 0));
  return GP_OK;
}

gp_status gp_team_run(gp_team *team, int64_t pieces, gp_piece piece, void *context) {
  if (team->size == 1 || pieces <= 1) return run_alone(pieces, piece, context);
  team->piece = piece;
  team->context = context;
  team->pieces = pieces;
  team->failure = GP_OK;
  atomic_store_explicit(&team->failed, false, memory_order_relaxed);
  atomic_store_explicit(&team->next, 0, memory_order_relaxed);
  atomic_store_explicit(&team->job, JOB_OPEN, memory_order_release);
  publish(team, pieces - 1 < team->size ? (int)(pieces - 1) : team->size - 1);
  work(team, 0);
  finish_job(team);
  return team->failure == GP_OK ? GP_OK : gp_fail_text(team->failure, team->failure_text);
}

/* ---- life ---- */

static gp_status start_helper(gp_team *team, int member, const int *cores, int core_count) {
  helper *h = &team->helpers[member - 1];
  *h = (helper){.team = team, .member = member};
  char name[32]; /* gp_thread_start shortens it if needed */
  snprintf(name, sizeof name, "gp-team-%d", member);
  gp_thread_options options = {.name = name};
  if (core_count > 0) {
    options.cores = &cores[member % core_count];
    options.core_count = 1;
  }
  GP_TRY(gp_thread_start(&h->thread, &options, help, h));
  team->started++;
  return GP_OK;
}

gp_status gp_team_new(int threads, const int *cores, int core_count, bool spin, gp_team **team) {
  if (threads < 1) return gp_fail(GP_EINVAL, "team: %d threads, expected at least 1", threads);
  void *memory;
  GP_TRY(gp_alloc(sizeof(gp_team), &memory));
  gp_team *made = memory;
  made->size = threads;
  made->spin = spin;
  pthread_mutex_init(&made->failure_lock, NULL);
  gp_status status =
      gp_alloc_array((size_t)threads, sizeof(helper), &memory); /* one to spare: never empty */
  if (status == GP_OK) made->helpers = memory;
  for (int i = 1; status == GP_OK && i < threads; i++)
    status = start_helper(made, i, cores, core_count);
  if (status != GP_OK) {
    gp_team_free(made);
    return status;
  }
  *team = made;
  return GP_OK;
}

void gp_team_free(gp_team *team) {
  if (!team) return;
  atomic_store(&team->quit, true);
  publish(team, INT_MAX);
  for (int i = 0; i < team->started; i++) pthread_join(team->helpers[i].thread, NULL);
  pthread_mutex_destroy(&team->failure_lock);
  gp_free(team->helpers);
  gp_free(team);
}

int gp_team_size(const gp_team *team) { return team->size; }
