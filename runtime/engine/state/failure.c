/* engine/state/failure.c - how a run fails, is interrupted, and commits.
 *
 * Several tasks may fail; the failure that is reported is the first one in the schedule's order. */
#include <limits.h>
#include <stdio.h>

#include "base/thread.h"
#include "engine/state/run.h"

void gp_run_progress(gp_run *run) {
  atomic_fetch_add(&run->progress, 1);
  gp_wake_word(&run->progress, INT_MAX);
}

static int32_t own_rank(const gp_run *run) { return run->spread ? run->spread->own : 0; }

/* Keep the failure if it is the first one in the schedule's order. Call with the lock held. */
static void note_failure(gp_run *run, int64_t order, gp_status status, const char *text) {
  if (order >= atomic_load(&run->failed_order)) return;
  run->status = status;
  run->failed_by = own_rank(run);
  snprintf(run->text, sizeof run->text, "%s", text);
  /* published last: a worker that sees the order skips its later tasks */
  atomic_store_explicit(&run->failed_order, order, memory_order_release);
}

/* Let the other ranks skip what comes later, too. */
static void tell(gp_run *run, int64_t order, gp_status status, const char *text) {
  gp_far_failure failure = {.order = order, .status = (int32_t)status};
  if (!run->spread) return;
  snprintf(failure.text, sizeof failure.text, "%s", text);
  gp_spread_tell(run->spread, &failure);
}

/* Workers call this at any time: the smallest order wins, not the first call. */
void gp_run_fail(gp_run *run, int64_t order, gp_status status, const char *text) {
  pthread_mutex_lock(&run->failure_lock);
  note_failure(run, order, status, text);
  pthread_mutex_unlock(&run->failure_lock);
  tell(run, order, status, text);
  gp_run_progress(run);
}

void gp_run_fail_from(gp_run *run, int32_t rank, int64_t order, gp_status status,
                      const char *text) {
  pthread_mutex_lock(&run->failure_lock);
  const bool first = order < atomic_load(&run->failed_order);
  note_failure(run, order, status, text);
  if (first) run->failed_by = rank;
  pthread_mutex_unlock(&run->failure_lock);
  gp_run_progress(run);
}

void gp_run_clear_failure(gp_run *run) {
  run->status = GP_OK;
  run->failed_by = own_rank(run);
  atomic_store(&run->failed_order, INT64_MAX);
}

bool gp_run_interrupt(gp_run *run) {
  pthread_mutex_lock(&run->failure_lock);
  const bool stops = !run->committed, first = atomic_load(&run->failed_order) > -1;
  if (stops) note_failure(run, -1, GP_EINTERRUPT, "interrupted");
  pthread_mutex_unlock(&run->failure_lock);
  if (stops && first) tell(run, -1, GP_EINTERRUPT, "interrupted");
  if (stops) gp_run_progress(run);
  return stops;
}

/* The lock orders this with failures: either every stage sees the failure, or every stage makes the
 * update. */
bool gp_run_commit(gp_run *run) {
  pthread_mutex_lock(&run->failure_lock);
  run->committed = run->committed || atomic_load(&run->failed_order) == INT64_MAX;
  bool committed = run->committed;
  pthread_mutex_unlock(&run->failure_lock);
  return committed;
}

void gp_run_spoil(gp_run *run, int64_t group) {
  pthread_mutex_lock(&run->failure_lock);
  if (group < run->spoilt) run->spoilt = group;
  pthread_mutex_unlock(&run->failure_lock);
}
