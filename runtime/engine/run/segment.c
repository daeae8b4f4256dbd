/* engine/run/segment.c - see segment.h: when a segment is captured, and what its graph holds.
 *
 * The first run enqueues task by task, because it loads modules and chooses algorithms, which no
 * capture allows. The second run captures and launches; the following ones launch. A graph holds
 * all that the compute stream does for the tasks, and the events that time them. Copies of rows run
 * on other streams and stay outside: those that a graph reads are ordered before its launch. */
#include "engine/run/segment.h"

#include <stdio.h>

#include "engine/bind/segments.h"
#include "engine/intake/intake.h"
#include "engine/run/edge.h"
#include "engine/run/run.h"
#include "engine/state/pipeline.h"
#include "engine/worker/marks.h"
#include "schedule/schedule.h"

/* ---- capture --------------------------------------------------------------------------------- */

typedef struct capture {
  gp_worker *worker;
  gp_run *run;
  const gp_task_span *span;
  const gp_segment *segment;
} capture;

/* Events are numbered from 0 in each run, so each task has the same marks every time. */
static gp_status enqueue_tasks(void *context) {
  const capture *c = context;
  size_t number = atomic_load_explicit(&c->worker->event_count, memory_order_relaxed);
  for (int32_t t = c->segment->first; t < c->segment->end; t++, number++) {
    gp_task_run r = gp_run_task_of(c->run, c->span, t);
    GP_TRY(gp_marks_set(c->worker, number, 0));
    GP_TRY(gp_run_program(c->worker, &r));
    GP_TRY(gp_marks_set(c->worker, number, 1));
  }
  return GP_OK;
}

/* Capture the segment once; if the device cannot, its tasks go on one by one. A failure counts as
 * one of its first task. */
static void try_capture(capture *c, gp_segment_graph *kept) {
  gp_status status = gp_lane_capture(&c->worker->lane, enqueue_tasks, c, &kept->graph);
  int64_t order = gp_run_task_of(c->run, c->span, c->segment->first).order;
  kept->refused = !kept->graph;
  if (status) gp_run_fail(c->run, order, status, gp_error_text());
}

/* ---- a run ----------------------------------------------------------------------------------- */

/* May this run launch the segment as a whole, and keep a graph of it? Not while GPIPE_FAULT may
 * strike a task or a profile times each op, nor after a failure, when each task is skipped or not
 * by its own order. A segment of P has nothing to do if the weights are prepared. */
static bool is_whole(const gp_worker *worker, const gp_run *run, const gp_segment *segment) {
  const gp_pipeline *p = worker->pipeline;
  bool skips = run->prepared && run->plan->tasks[segment->first].op == GP_ACT_P;
  return !skips && !p->faults.count && !worker->lane.recorder && !gp_run_failed(run);
}

gp_segment_run gp_segment_begin(gp_worker *worker, gp_run *run, const gp_task_span *span,
                                int32_t t) {
  const bool any = run->binding->devices[worker->device].segment_count > 0;
  gp_segment *segment = any ? gp_segment_of(run->binding, worker->device, t) : NULL;
  gp_segment_run part = {.first = t, .end = any ? t + 1 : span->end};
  if (!segment) return part;
  gp_segment_graph *kept =
      gp_segment_graph_of(segment, gp_run_minibatch_at(run, span->step)->accumulate);
  capture c = {worker, run, span, segment};
  part.end = segment->end;
  part.ran = kept->ran;
  if (!is_whole(worker, run, segment)) return part;
  if (kept->ran && !kept->graph && !kept->refused) try_capture(&c, kept);
  part.kept = kept;
  part.graph = kept->graph;
  return part;
}

void gp_segment_end(const gp_run *run, const gp_segment_run *part) {
  if (part->kept && !gp_run_failed(run)) part->kept->ran = true;
}

/* ---- launch ---------------------------------------------------------------------------------- */

/* Profilers see a graph by the names of its first and last action, "0F0 .. 0B7". */
static gp_status launch_named(const gp_lane *lane, const gp_plan *plan, const gp_segment *segment,
                              gp_lane_graph *graph) {
  const gp_task *first = &plan->tasks[segment->first], *last = &plan->tasks[segment->end - 1];
  gp_action from = gp_task_action(plan, first, first->micro);
  gp_action to = gp_task_action(plan, last, last->micro);
  char name[2 * GP_ACTION_TEXT + 8], begin[GP_ACTION_TEXT], end[GP_ACTION_TEXT];
  snprintf(name, sizeof name, "%s .. %s", gp_action_print(&from, begin), gp_action_print(&to, end));
  lane->reports->range_push(name, from.micro);
  gp_status status = lane->graphs->launch(lane, graph);
  lane->reports->range_pop();
  return status;
}

/* Wait for the slots that tasks of the segment after its first one write; false where the run is
 * given up meanwhile. */
static gp_status acquire_slots(gp_worker *worker, const gp_segment *segment, bool *ready) {
  const gp_run *run = &worker->pipeline->run;
  *ready = true;
  for (int32_t t = segment->first + 1; *ready && t < segment->end; t++) {
    const gp_task *task = &run->plan->tasks[t];
    gp_task_run r = {.task = task, .micro = task->micro};
    gp_edges_state state;
    GP_TRY(gp_edges_acquire(worker, &r, &state));
    *ready = state != GP_EDGES_GIVEN_UP;
  }
  return GP_OK;
}

gp_status gp_segment_launch(gp_worker *worker, const gp_task_run *r) {
  const gp_run *run = &worker->pipeline->run;
  const gp_plan *plan = run->plan;
  const gp_lane *lane = &worker->lane;
  const gp_intake *intake = gp_intake_of(worker);
  const gp_segment *segment =
      gp_segment_of(run->binding, worker->device, (int32_t)(r->task - plan->tasks));
  gp_task_run rows = *r;
  rows.micro = plan->tasks[segment->rows].micro;
  bool ready;
  GP_TRY(acquire_slots(worker, segment, &ready));
  if (!ready) return GP_OK; /* the run has failed, so nothing reads what the segment makes */
  if (intake->before) GP_TRY(intake->before(worker, &rows));
  if (!lane->reports->range_push) return lane->graphs->launch(lane, r->graph);
  return launch_named(lane, plan, segment, r->graph);
}
