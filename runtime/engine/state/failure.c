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

/* Keep the failure if it is the first one in the schedule's order. Call with the lock held. */
static void note_failure(gp_run *run, int64_t order, gp_status status, const char *text) {
  if (order >= atomic_load(&run->failed_order)) return;
  run->status = status;
  snprintf(run->text, sizeof run->text, "%s", text);
  /* published last: a worker that sees the order skips its later tasks */
  atomic_store_explicit(&run->failed_order, order, memory_order_release);
}

/* Workers call this at any time: the smallest order wins, not the first call. */
void gp_run_fail(gp_run *run, int64_t order, gp_status status, const char *text) {
  pthread_mutex_lock(&run->failure_lock);
  note_failure(run, order, status, text);
  pthread_mutex_unlock(&run->failure_lock);
  gp_run_progress(run);
}

bool gp_run_interrupt(gp_run *run) {
  pthread_mutex_lock(&run->failure_lock);
  bool stops = !run->committed;
  if (stops) note_failure(run, -1, GP_EINTERRUPT, "interrupted");
  pthread_mutex_unlock(&run->failure_lock);
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
