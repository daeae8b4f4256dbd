/* engine/run/run.c - the loop over tasks: wait for inputs, run a program, publish outputs.
 *
 * A worker runs the range of one mini-batch after another until the stream ends; most streams have
 * one mini-batch. A task that fails makes every task later in the schedule's topological order a
 * pass-through: it still waits and publishes, so no device hangs, but it computes nothing. Tasks
 * earlier in that order still run, so the failure that is reported is the first one in that order,
 * the same every time.
 */

#include "base/thread.h"
#include "engine/intake/intake.h"
#include "engine/memory/halves.h"
#include "engine/run/edge.h"
#include "engine/run/execute.h"
#include "engine/run/frame.h"
#include "engine/run/gather.h"
#include "engine/run/moves.h"
#include "engine/run/run.h"
#include "engine/run/segment.h"
#include "engine/state/pipeline.h"
#include "engine/update/earlier.h"
#include "engine/update/sums.h"
#include "engine/update/update.h"
#include "engine/update/values.h"
#include "engine/watch/fault.h"
#include "engine/watch/guard.h"
#include "engine/worker/marks.h"
#include "engine/worker/worker.h"
#include "gpipe/process.h"
#include "schedule/schedule.h"

/* ---- tasks --------------------------------------------------------------------------------- */

gp_status gp_run_program(gp_worker *worker, gp_task_run *r) {
  const gp_intake *intake = gp_intake_of(worker);
  if (!r->task->program) return GP_OK;
  gp_frame_bind(worker, r);
  if (gp_task_assigns(r)) GP_TRY(gp_update_open(worker, r->task));
  GP_TRY(gp_execute(worker, r));
  if (r->task->merges) GP_TRY(gp_sum_partials(worker, worker->pipeline->run.plan, r->task));
  return intake->settle ? intake->settle(worker, r) : GP_OK;
}

/* Do the work of a task. A task in a graph is enqueued with the first one of its segment, but its
 * results are taken away here all the same. */
static gp_status compute(gp_worker *worker, const gp_run *run, gp_task_run *r) {
  const gp_intake *intake = gp_intake_of(worker);
  if (r->graph && r->first) GP_TRY(gp_segment_launch(worker, r));
  if (!r->task->program || (r->task->op == GP_ACT_P && run->prepared)) return GP_OK;
  if (!r->graph && intake->before) GP_TRY(intake->before(worker, r));
  if (!r->graph) GP_TRY(gp_run_program(worker, r));
  return intake->after ? intake->after(worker, r) : GP_OK;
}

/* Do what GPIPE_FAULT asks for. */
static gp_status strike(gp_worker *worker, const gp_task_run *r) {
  gp_pipeline *p = worker->pipeline;
  gp_fault_place here = {.device = worker->device,
                         .stage = r->task->stage,
                         .step = (int32_t)r->batch->blocks[r->own].step,
                         .micro = (int32_t)r->own,
                         .op = (int32_t)r->task->op};
  worker->spoil = false;
  return gp_faults_strike(&p->faults, &here, &p->watch.given_up, &worker->spoil);
}

/* Is the task later in the schedule's order than a failure? Ctrl-C counts as a failure before all
 * tasks. */
static bool is_skipped(gp_run *run, const gp_task_run *r) {
  if (gp_interrupt_pending()) gp_run_interrupt(run);
  return r->order > atomic_load_explicit(&run->failed_order, memory_order_acquire);
}

static gp_status work(gp_worker *worker, gp_run *run, gp_task_run *r) {
  if (r->task->op == GP_ACT_UNSHARD) return gp_values_take(worker, r->task);
  return gp_act_ends(r->task->op) ? gp_update_task(worker, run, r->task, r->micro)
                                  : compute(worker, run, r);
}

/* Run a task, with the fault that GPIPE_FAULT asks for. */
static gp_status run_task(gp_worker *worker, gp_run *run, gp_task_run *r) {
  const bool strikes = worker->pipeline->faults.count && !gp_act_is_own(r->task->op);
  gp_status status = strikes ? strike(worker, r) : GP_OK;
  /* Ctrl-C ends what a fault does, and the task too unless other stages are being updated */
  if (status == GP_EINTERRUPT) status = is_skipped(run, r) ? status : GP_OK;
  if (status) return status;
  status = gp_guard_begin(worker, r);
  if (!status) status = work(worker, run, r);
  gp_guard_end(worker, r);
  return status;
}

void gp_run_note_loss(gp_worker *worker, gp_run *run, const gp_task *task) {
  /* the script waits for losses during a run only if the run is a stream */
  if (!run->open || task->op != GP_ACT_F || task->stage != run->plan->stage_count - 1) return;
  atomic_fetch_add(&worker->losses, 1);
  gp_run_progress(run);
}

/* Store a time of an event. The watchdog may read it meanwhile, so the store is atomic, but it
 * orders nothing. */
static void note_time(_Atomic int64_t *word, int64_t ns) {
  atomic_store_explicit(word, ns, memory_order_relaxed);
}

/* Wait for the device, and note the faults of the tasks before this one. */
static gp_status collect_before(gp_worker *worker, gp_run *run, const gp_task_span *span,
                                const gp_task *task) {
  const gp_intake *intake = gp_intake_of(worker);
  gp_task_span before = *span;
  before.end = (int32_t)(task - run->plan->tasks);
  return intake->collect ? intake->collect(worker, run, &before) : GP_OK;
}

static void note_failure(gp_run *run, const gp_task_run *r, gp_status status) {
  if (status) gp_run_fail(run, r->order, status, gp_error_text());
}

/* Begin the event of the task that the worker does now; the watchdog reads it. */
static gp_event *open_event(gp_worker *worker, const gp_run *run, const gp_task_run *r,
                            int64_t since) {
  size_t number = atomic_load_explicit(&worker->event_count, memory_order_relaxed);
  gp_event *event = &worker->events[number % worker->event_room];
  note_time(&event->begin, 0);
  note_time(&event->end, 0);
  atomic_store_explicit(&event->task, (int32_t)(r->task - run->plan->tasks), memory_order_relaxed);
  note_time(&event->micro, r->micro);
  note_time(&event->wait, since);
  return event;
}

/* Note the status of a task, unless another task's failure has broken it off. */
static void note_own(const gp_worker *worker, gp_run *run, const gp_task_run *r, gp_status status) {
  if (!worker->broken) note_failure(run, r, status);
}

/* Run a task, unless it is skipped after a failure. */
static void do_task(gp_worker *worker, gp_run *run, const gp_task_span *span, gp_task_run *r) {
  const gp_act op = r->task->op;
  gp_status status = GP_OK;
  /* a device votes on what it has really done, so its queue ends first */
  if (op == GP_ACT_VOTE) status = collect_before(worker, run, span, r->task);
  /* nor is anything on its way to another rank that an update or S would overwrite */
  if (!status && (op == GP_ACT_VOTE || (op == GP_ACT_S && (r->first || !r->graph))))
    status = gp_edges_flush(worker);
  if (status) gp_run_fail(run, 0, status, gp_error_text());
  /* the vote and the decision report failures, so they also run after one */
  if (!is_skipped(run, r) || op == GP_ACT_VOTE || op == GP_ACT_DECIDE)
    note_own(worker, run, r, run_task(worker, run, r));
}

/* Mark when the task begins (0) or ends (1) on its device; a graph does that itself. */
static gp_status mark(gp_worker *worker, const gp_task_run *r, size_t number, int end) {
  return r->graph ? GP_OK : gp_marks_set(worker, number, end);
}

/* Copy saved values to the host's memory and back, before the task or behind it. */
typedef gp_status (*moves)(const gp_worker *worker, const gp_task *task, bool runs);
static void move(gp_worker *worker, gp_run *run, const gp_task_run *r, moves some, bool ready) {
  note_failure(run, r, some(worker, r->task, ready && !is_skipped(run, r)));
}

/* Wait for a task's edges, run the task and publish. since: when the task before it ended; returns
 * when this one has ended. */
static int64_t step_task(gp_worker *worker, gp_run *run, const gp_task_span *span, gp_task_run *r,
                         int64_t since) {
  size_t number = atomic_load_explicit(&worker->event_count, memory_order_relaxed);
  gp_event *event = open_event(worker, run, r, since);
  gp_edges_state edges;
  worker->early = 0;
  gp_status status = gp_edges_await(worker, r, &edges);
  note_failure(run, r, status);
  /* a task that did not wait begins when the one before it ended, without reading the clock */
  note_time(&event->begin, edges == GP_EDGES_WERE_READY ? since : gp_now_ns());
  bool ready = edges != GP_EDGES_GIVEN_UP;
  if (r->task->move_count) move(worker, run, r, gp_moves_before, ready);
  note_failure(run, r, mark(worker, r, number, 0));
  worker->gathered = 0;
  worker->broken = false;
  if (ready && !status) do_task(worker, run, span, r);
  if (ready && gp_task_gathers(r->task)) note_own(worker, run, r, gp_gathers_pass(worker, r->task));
  note_failure(run, r, mark(worker, r, number, 1));
  int64_t end = gp_now_ns();
  note_time(&event->end, end);
  atomic_store_explicit(&worker->event_count, number + 1, memory_order_release);
  /* after a run is given up nothing is published: the slot was not acquired, and readers may still
   * use it */
  if (ready || status) note_failure(run, r, gp_edges_publish(worker, r));
  if (r->task->move_count) move(worker, run, r, gp_moves_behind, ready);
  if (gp_intake_of(worker)->at_once) gp_run_note_loss(worker, run, r->task);
  return end;
}

/* ---- ranges -------------------------------------------------------------------------------- */

/* Zero the gradients of this device's stages, unless the mini-batch adds to them or a task opens
 * them. In an asynchronous schedule each update begins the next ones. */
static gp_status begin_gradients(const gp_worker *worker, const gp_run *run, uint32_t step) {
  const gp_plan *plan = run->plan;
  bool backward = plan->kind == GP_PLAN_STEP || run->backward_half;
  bool goes_on = gp_run_minibatch_at(run, step)->accumulate;
  if (!backward || (plan->batch && step > 0)) return GP_OK;
  if (gp_run_minibatch_at(run, step)->apart) GP_TRY(gp_earlier_keep(worker));
  for (int32_t s = 0; s < plan->stage_count; s++)
    for (int32_t copy = 0; copy < plan->copy_count; copy++) {
      int32_t holder = gp_plan_holder(plan, s, copy);
      if (plan->placement[holder] != worker->device) continue;
      if (goes_on)
        GP_TRY(gp_update_resume(worker->pipeline, s, copy));
      else if (!plan->opened[holder])
        GP_TRY(gp_update_zero(worker->pipeline, s, copy));
    }
  return GP_OK;
}

/* Add the gradients of earlier steps, if they were put aside and all has gone well. */
static gp_status end_gradients(const gp_worker *worker, const gp_run *run, uint32_t step) {
  const bool backward = run->plan->kind == GP_PLAN_STEP || run->backward_half;
  if (!backward || !gp_run_minibatch_at(run, step)->apart || gp_run_failed(run)) return GP_OK;
  return gp_earlier_add(worker);
}

/* Prepare what the tasks of a mini-batch find: gradients of zero, halves, its rows. */
static gp_status begin_range(gp_worker *worker, gp_run *run, uint32_t step) {
  GP_TRY(gp_marks_range(worker));
  GP_TRY(begin_gradients(worker, run, step));
  GP_TRY(gp_halves_refresh(worker));
  const gp_intake *intake = gp_intake_of(worker);
  return intake->begin ? intake->begin(worker, run, step) : GP_OK;
}

/* The device's tasks in range `step`. If that mini-batch is never given, `limit` leaves only the
 * tasks that belong to earlier ones. */
static gp_task_span span_of(const gp_worker *worker, const gp_run *run, uint32_t step,
                            int64_t limit) {
  const gp_plan *plan = run->plan;
  const gp_ranges *r = &plan->ranges;
  gp_task_span span = {.step = step, .limit = limit, .first_event = worker->event_count};
  int32_t d = worker->device, stored = gp_plan_range(plan, step, &span.repeats);
  const int32_t *begin = &r->begin[d * (r->count + 1) + stored];
  bool split = plan->kind == GP_PLAN_SPLIT;
  span.first = split && run->backward_half ? plan->devices[d].half : begin[0];
  span.end = split && !run->backward_half ? plan->devices[d].half : begin[1];
  return span;
}

gp_task_run gp_run_task_of(const gp_run *run, const gp_task_span *span, int32_t t) {
  const gp_plan *plan = run->plan;
  const gp_task *task = &plan->tasks[t];
  int32_t before = task->micro < plan->step_micros ? 0 : task->micro / plan->step_micros;
  int64_t total = plan->order_end;
  return (gp_task_run){.task = task,
                       .order = (int64_t)span->step * total + task->order,
                       .batch = gp_run_minibatch_at(run, before + span->repeats),
                       .micro = task->micro + span->repeats * plan->step_micros,
                       .own = task->micro - before * plan->step_micros};
}

/* Run tasks first .. end - 1 of the range, as a segment or one by one. */
static int64_t run_tasks(gp_worker *worker, gp_run *run, const gp_task_span *span,
                         const gp_segment_run *part, int64_t since) {
  for (int32_t t = part->first; t < part->end; t++) {
    gp_task_run r = gp_run_task_of(run, span, t);
    r.ran = part->ran;
    r.graph = part->graph;
    r.first = t == part->first;
    if (r.micro < span->limit) since = step_task(worker, run, span, &r, since);
  }
  return since;
}

static void run_range(gp_worker *worker, gp_run *run, uint32_t step, int64_t limit) {
  gp_task_span span = span_of(worker, run, step, limit);
  gp_status status = GP_OK;
  if ((int64_t)step * run->plan->step_micros < limit) status = begin_range(worker, run, step);
  if (status) gp_run_fail(run, -1, status, gp_error_text()); /* before every task */
  int64_t since = gp_now_ns();
  for (int32_t t = span.first; t < span.end;) {
    gp_segment_run part = gp_segment_begin(worker, run, &span, t);
    since = run_tasks(worker, run, &span, &part, since);
    gp_segment_end(run, &part);
    t = part.end;
  }
  const gp_intake *intake = gp_intake_of(worker);
  status = end_gradients(worker, run, step);
  if (!status && intake->end) status = intake->end(worker, run, &span);
  if (!status) return;
  gp_run_spoil(run, 0);
  gp_run_fail(run, 0, status, gp_error_text());
}

static void set_phase(gp_worker *worker, gp_worker_phase phase) {
  atomic_store_explicit(&worker->phase, phase, memory_order_relaxed);
}

/* Wait until everything that a failed run has enqueued is over, before the script is told: skipped
 * tasks have waited for nothing. */
static gp_status wait_for_queue(const gp_worker *worker) {
  const gp_lane *lane = &worker->lane;
  gp_status first = GP_OK;
  for (int stream = 0; stream < GP_STREAMS; stream++) {
    gp_status status = lane->streams->sync(lane, (gp_stream)stream);
    if (status && !first) first = status;
  }
  return first;
}

/* Wait for what the device's links still have to send and, after a failure, for everything that
 * they and the device have begun. */
static void finish(gp_worker *worker, gp_run *run) {
  gp_status status = gp_edges_finish(worker);
  if (status) gp_run_fail(run, 0, status, gp_error_text());
  if (!gp_run_failed(run)) return;
  status = wait_for_queue(worker);
  if (status) gp_run_fail(run, 0, status, gp_error_text());
}

/* Runs mini-batch after mini-batch as the gate opens and, when no more will come, what is left of
 * the old ones. */
gp_status gp_run_device(gp_worker *worker, void *context) {
  gp_run *run = context;
  const gp_plan *plan = run->plan;
  if (worker->device < plan->device_count) {
    worker->idle = gp_edges_idle;
    gp_frame_begin(worker);
  }
  for (uint32_t step = 0; worker->device < plan->device_count; step++) {
    set_phase(worker, GP_WORKER_AT_GATE);
    gp_worker_await(worker, &run->gate, step + 1);
    set_phase(worker, GP_WORKER_IN_RANGE);
    bool ends = atomic_load(&run->gate) >= GP_GATE_END;
    int64_t limit = ends ? (int64_t)run->given * plan->step_micros : INT64_MAX;
    if (ends && (int64_t)step >= (int64_t)run->given + plan->ranges.lag[worker->device]) break;
    run_range(worker, run, step, limit);
    atomic_store(&worker->ranges_done, step + 1);
    if (run->open) gp_run_progress(run);
  }
  if (worker->device < plan->device_count) finish(worker, run);
  worker->idle = NULL;
  set_phase(worker, GP_WORKER_DONE);
  return GP_OK;
}
