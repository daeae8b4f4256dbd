/* engine/watch/watchdog.c - see watchdog.h: when a run is given up, and what becomes of it.
 *
 * Giving up fails the run before its first task and ends all waiting. So every worker that is not
 * inside an action passes through to the end, and the pipeline can be used again. A worker that is
 * inside an action and does not come out of it cannot be stopped: then everything that it may read
 * or write is kept for ever, and only the script goes on.
 */
#include "engine/watch/watchdog.h"

#include <stdio.h>

#include "base/memory.h"
#include "base/thread.h"
#include "engine/state/pipeline.h"
#include "engine/watch/report.h"
#include "engine/worker/worker.h"
#include "ranks/ranks.h"

enum { DEVICE_TEXT = 512, REPORT_TEXT = 1024 };
static const int64_t SECOND = 1000000000;
/* A thread that looks this late was stopped, with its process or the whole machine. */
static const int64_t LATE_NS = 2500000000;

gp_status gp_watch_new(gp_pipeline *p, double seconds) {
  size_t size = REPORT_TEXT + (size_t)p->device_count * DEVICE_TEXT;
  if (!(seconds >= 0 && seconds <= 1e9))
    return gp_fail(GP_ERANGE, "pipeline: the watchdog is %g seconds, expected 0 to 1e9", seconds);
  GP_TRY(gp_alloc(size, (void **)&p->watch.report));
  p->watch.report_size = size;
  p->watch.report[0] = '\0';
  p->watch.limit_ns = (int64_t)(seconds * (double)SECOND);
  return GP_OK;
}

void gp_watch_free(gp_pipeline *p) {
  gp_free(p->watch.report);
  p->watch.report = NULL;
}

const char *gp_pipeline_report(const gp_pipeline *p) {
  return p->watch.report ? p->watch.report : "";
}

bool gp_pipeline_is_lost(const gp_pipeline *p) { return p->watch.lost; }

/* ---- progress ------------------------------------------------------------------------------ */

/* Count the begun and ended tasks of all devices, and their phases. */
static uint64_t tasks_so_far(const gp_pipeline *p) {
  uint64_t sum = 0;
  for (int32_t d = 0; d < p->device_count; d++) {
    gp_worker *w = &p->workers[d];
    size_t count = atomic_load_explicit(&w->event_count, memory_order_relaxed);
    const gp_event *now = w->event_room ? &w->events[count % w->event_room] : NULL;
    bool begun = now && atomic_load_explicit(&now->begin, memory_order_relaxed) != 0;
    sum += 2 * count + begun + atomic_load_explicit(&w->phase, memory_order_relaxed);
  }
  return sum;
}

void gp_watch_begin(gp_pipeline *p) {
  p->watch.since = p->watch.looked = gp_now_ns();
  p->watch.seen = tasks_so_far(p);
}

void gp_watch_reset(gp_pipeline *p) {
  p->watch.timed_out = false;
  p->watch.report[0] = '\0';
  atomic_store(&p->watch.given_up, 0);
  for (int32_t d = 0; d < p->device_count; d++) {
    atomic_store(&p->workers[d].event_count, 0);
    atomic_store(&p->workers[d].phase, GP_WORKER_STARTS);
  }
}

/* ---- giving up ----------------------------------------------------------------------------- */

/* Let the other ranks pass through their tasks, too: nothing more comes from here. */
static void tell(gp_pipeline *p) {
  gp_far_failure failure = {.order = -1, .gives_up = 1};
  if (!p->spread) return;
  failure.status = (int32_t)gp_spread_failure(p->spread, failure.text);
  gp_spread_tell(p->spread, &failure);
}

/* End all waiting. The run has failed before, so that workers that stop waiting see that and skip
 * their tasks. */
void gp_watch_give_up(gp_pipeline *p) {
  tell(p);
  atomic_store(&p->run.gate, GP_GATE_END);
  atomic_store(&p->watch.given_up, 1);
  for (int32_t d = 0; d < p->device_count; d++) gp_worker_ring(&p->workers[d]);
  gp_watch_begin(p);
}

/* Name the device of this rank that holds the others up, also if one of them was quicker to say
 * that it waits. */
static void blame(gp_pipeline *p, const char *text) {
  char other[GP_SPREAD_TEXT];
  if (gp_spread_failure(p->spread, other) == GP_ETIMEOUT) gp_spread_blame(p->spread, text);
}

static void time_out(gp_pipeline *p, int64_t quiet) {
  char cause[256], text[400];
  snprintf(text, sizeof text, "no progress for %.1f seconds: %s", 1e-9 * (double)quiet,
           gp_report_cause(p, cause, sizeof cause));
  const bool knows = p->spread && gp_report_running(p);
  p->watch.timed_out = true;
  gp_report_write(p, p->watch.report, p->watch.report_size);
  gp_run_fail(&p->run, -1, GP_ETIMEOUT, text);
  if (knows) blame(p, text);
  gp_watch_give_up(p);
}

/* Give up because another rank has. If that one has waited in vain for a device of this rank, this
 * rank names the device. */
static void follow(gp_pipeline *p) {
  char cause[256], text[GP_SPREAD_TEXT];
  p->watch.timed_out = gp_spread_failure(p->spread, text) == GP_ETIMEOUT;
  if (!p->watch.report[0]) gp_report_write(p, p->watch.report, p->watch.report_size);
  if (gp_report_running(p)) {
    snprintf(text, sizeof text, "no progress: %s", gp_report_cause(p, cause, sizeof cause));
    blame(p, text);
  }
  gp_watch_give_up(p);
}

/* Give up because another rank is in another call: what this one waits for will not come. */
static void turn_back(gp_pipeline *p, const char *why) {
  gp_run_fail(&p->run, -1, GP_ESTATE, why);
  gp_watch_give_up(p);
}

/* How long workers may be quiet, in nanoseconds. After a time-out they have as long as the watchdog
 * again, but at least one second and at most ten. After Ctrl-C they have the whole limit: a worker
 * may be in the middle of a long action that is within it. */
static int64_t patience(const gp_watch *w) {
  if (!w->timed_out || w->limit_ns == 0) return w->limit_ns;
  if (w->limit_ns < SECOND) return SECOND;
  return w->limit_ns < 10 * SECOND ? w->limit_ns : 10 * SECOND;
}

/* Is the script of another rank to blame, or may it be? A rank that is given up counts as gone, so
 * that this rank follows when it looks the next time. */
static bool is_kept_waiting(gp_pipeline *p, int64_t quiet) {
  return p->spread && gp_ranks_find_absent(p->spread->what, quiet) != GP_RANK_ALL_COME;
}

bool gp_watch_check(gp_pipeline *p) {
  gp_watch *w = &p->watch;
  if (p->job_context != &p->run) return false; /* only runs are watched: other jobs are short */
  bool given_up = atomic_load(&w->given_up);
  if (!given_up && p->spread && atomic_load(&p->spread->gives_up)) {
    follow(p);
    return false;
  }
  char why[GP_SPREAD_TEXT];
  if (!given_up && p->spread && gp_ranks_find_stray(p->spread->what, why, sizeof why)) {
    turn_back(p, why);
    return false;
  }
  if (!given_up && gp_interrupt_pending()) {
    if (!w->report[0]) gp_report_write(p, w->report, w->report_size);
    if (gp_run_interrupt(&p->run)) gp_watch_give_up(p);
    if (atomic_load(&w->given_up)) return false;
  }
  uint64_t tasks = tasks_so_far(p);
  int64_t now = gp_now_ns();
  if (now - w->looked > LATE_NS) w->since += now - w->looked;
  w->looked = now;
  const int64_t quiet = now - w->since;
  if (tasks != w->seen)
    w->seen = tasks, w->since = now;
  else if (w->limit_ns && quiet >= patience(w)) {
    if (given_up) return true;
    if (!is_kept_waiting(p, quiet)) time_out(p, quiet);
  }
  return false;
}

/* ---- lost workers -------------------------------------------------------------------------- */

/* Retain the tensors that the script lent for the run; the ring retains inputs and targets. */
static void keep_batches(gp_run *run) {
  for (uint32_t i = 0; i < run->given && i < (uint32_t)run->batch_room; i++) {
    const gp_minibatch *batch = &run->batches[i];
    for (int k = 0; k < GP_MAX_BATCH_TENSORS; k++) {
      if (batch->outputs[k].tensor) gp_tensor_retain(batch->outputs[k].tensor);
      if (batch->out_grads[k].tensor) gp_tensor_retain(batch->out_grads[k].tensor);
      if (batch->input_grads[k].tensor) gp_tensor_retain(batch->input_grads[k].tensor);
    }
  }
}

gp_status gp_watch_lose(gp_pipeline *p) {
  const char *name = "a device";
  for (int32_t d = p->device_count - 1; d >= 0; d--)
    if (gp_device_is_here(p, d) && atomic_load(&p->workers[d].phase) != GP_WORKER_DONE)
      name = p->workers[d].lane.name;
  p->watch.lost = true;
  keep_batches(&p->run);
  p->run.open = false;
  return gp_fail(p->run.status, "%s; %s did not come back from it: the pipeline is lost, close it",
                 p->run.text, name);
}
