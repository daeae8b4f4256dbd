/* engine/run.c - the loop over tasks: wait for inputs, run a program, publish outputs.
 *
 * A worker runs the range of one mini-batch after another until the stream ends; most streams have one
 * mini-batch. A task that fails makes every task later in the schedule's topological order a
 * pass-through: it still waits and publishes, so nobody hangs, but computes nothing. Tasks earlier in
 * that order still run, so the failure that is reported is the first one in that order, the same every
 * time.
 */
#include <string.h>

#include "base/thread.h"
#include "engine/gpu/wiring.h"
#include "engine/update/update.h"
#include "gpipe/process.h"

/* Where a task is in the stream. */
typedef struct place {
  int32_t task;
  int64_t micro; /* counted through the stream */
  const gp_span_of_tasks *span;
} place;

static const gp_task *task_at(const gp_run *run, const place *at) {
  return &run->plan->tasks[at->task];
}

/* ---- slots --------------------------------------------------------------------------------- */

/* Where the value of a micro-batch lies on an edge. */
typedef struct slot {
  int32_t edge, number;
  uint32_t round; /* times that the slot was used before */
  gp_slot_state *state;
} slot;

static slot slot_of(const gp_binding *binding, int32_t edge, int64_t micro) {
  const gp_plan *plan = binding->plan;
  const gp_channel *channel = &plan->channels[edge];
  int64_t turn = gp_plan_turn(plan, edge, micro);
  int32_t number = (int32_t)(turn % channel->slots);
  return (slot){edge, number, (uint32_t)(turn / channel->slots),
                &binding->channels[edge].states[number]};
}

/* Capacities are sized so that acquiring never waits in a training step (plan/capacity.c). Between devices of
 * which one is a GPU, the words say that the work is enqueued; what it must wait for is the link's. */
static gp_status wait_for_inputs(gp_worker *worker, const gp_binding *binding, const place *at) {
  const gp_plan *plan = binding->plan;
  const gp_task *task = &plan->tasks[at->task];
  gp_status status = GP_OK;
  for (int32_t u = 0; u < task->use_count; u++) {
    const gp_edge_use *use = &task->uses[u];
    if (!use->wait && !use->acquire) continue;
    slot s = slot_of(binding, use->edge, at->micro);
    uint32_t parties = (uint32_t)plan->channels[use->edge].parties;
    if (use->wait) gp_worker_await(worker, &s.state->published, s.round + 1);
    if (use->acquire) gp_worker_await(worker, &s.state->released, s.round * parties);
    if (!binding->wiring || status) continue;
    status = use->wait ? gp_link_receive(worker, binding, s.edge, s.number, task->copy)
                       : gp_link_acquire(worker, binding, s.edge, s.number);
  }
  return status;
}

/* A worker that sleeps is woken; one that spins sees the word itself. */
static void ring_stage(const gp_worker *worker, const gp_plan *plan, int32_t stage) {
  for (int32_t copy = 0; copy < plan->copy_count; copy++) {
    int32_t device = plan->placement[gp_plan_holder(plan, stage, copy)];
    if (device != worker->device) gp_worker_ring(&worker->pipeline->workers[device]);
  }
}

/* What the readers' GPUs are to wait for: before the words that tell them. */
static gp_status mark_outputs(gp_worker *worker, const gp_binding *binding, const place *at) {
  const gp_task *task = &binding->plan->tasks[at->task];
  gp_status status = GP_OK, mark = GP_OK;
  for (int32_t u = 0; binding->wiring && u < task->use_count; u++) {
    const gp_edge_use *use = &task->uses[u];
    slot s = slot_of(binding, use->edge, at->micro);
    if (use->publish) mark = gp_link_publish(worker, binding, s.edge, s.number);
    if (mark && !status) status = mark;
    if (use->release) mark = gp_link_release(worker, binding, s.edge, s.number);
    if (mark && !status) status = mark;
  }
  return status;
}

/* Release order: whoever sees the round sees the value. A failed task publishes too, or its readers
 * would wait for ever; they skip their work. */
static void publish_outputs(gp_worker *worker, const gp_binding *binding, const place *at) {
  const gp_plan *plan = binding->plan;
  const gp_task *task = &plan->tasks[at->task];
  for (int32_t u = 0; u < task->use_count; u++) {
    const gp_edge_use *use = &task->uses[u];
    const gp_edge *edge = gp_plan_edge(plan, use->edge);
    slot s = slot_of(binding, use->edge, at->micro);
    if (use->publish) {
      atomic_store_explicit(&s.state->published, s.round + 1, memory_order_release);
      for (int32_t r = 0; r < edge->to_count; r++) ring_stage(worker, plan, edge->to[r]);
    }
    if (use->release) {
      atomic_fetch_add_explicit(&s.state->released, 1, memory_order_release);
      ring_stage(worker, plan, edge->from);
    }
  }
}

/* ---- tasks --------------------------------------------------------------------------------- */

static gp_feed *feed_of(const gp_run *run, int64_t micro) {
  return &run->feeds[micro / run->plan->step_micros % run->feed_room];
}

/* After the last count of what step was given: what the losses of each mini-batch are divided by. */
static void settle_counts(const gp_plan *plan, gp_feed *feed, int32_t copy) {
  int32_t size = plan->batch ? plan->batch : plan->step_micros;
  for (int32_t first = 0; first < plan->step_micros; first += size) {
    int64_t count = 0;
    for (int32_t i = first; i < first + size; i++) count += feed->results[i].count[copy];
    for (int32_t i = first; i < first + size; i++)
      gp_feed_block(plan, feed, i, copy)->inverse_count = count ? 1.0 / (double)count : 0;
  }
}

/* Profilers see the action by the name that people write, "2F5". */
static gp_status execute_named(gp_worker *worker, const gp_plan *plan, const gp_task *task,
                               int64_t micro) {
  const gp_gpu_api *api = worker->lane.api;
  gp_action action = gp_task_action(plan, task, micro);
  char name[GP_ACTION_TEXT];
  api->range_push(gp_action_print(&action, name), micro);
  gp_status status = gp_execute_gpu(worker, task, micro);
  api->range_pop();
  return status;
}

static gp_status compute_on_gpu(gp_worker *worker, const gp_run *run, const gp_task *task,
                                int64_t micro) {
  const gp_plan *plan = run->plan;
  int64_t own = micro % plan->step_micros;
  GP_TRY(gp_desk_await(worker, run, micro));
  GP_TRY(execute_named(worker, plan, task, micro));
  GP_TRY(gp_desk_return(worker, run, task, micro));
  GP_TRY(gp_desk_prefetch(worker, run));
  if (task->op != GP_ACT_C || own < plan->step_micros - 1) return GP_OK;
  return gp_desk_settle(worker, plan, micro, task->copy);
}

static gp_status compute(gp_worker *worker, gp_run *run, const place *at) {
  const gp_task *task = task_at(run, at);
  const gp_plan *plan = run->plan;
  gp_feed *feed = feed_of(run, at->micro);
  int64_t own = at->micro % plan->step_micros;
  if (!task->program || (task->op == GP_ACT_P && run->prepared)) return GP_OK;
  gp_frame_bind(worker, feed, task, at->micro);
  if (gp_lane_is_gpu(&worker->lane)) return compute_on_gpu(worker, run, task, at->micro);
  GP_TRY(gp_execute(worker, task->program, gp_feed_block(plan, feed, own, task->copy)));
  if (task->op == GP_ACT_C && own == plan->step_micros - 1) settle_counts(plan, feed, task->copy);
  return GP_OK;
}

/* What GPIPE_FAULT asks for. */
static gp_status strike(gp_worker *worker, gp_run *run, const place *at) {
  gp_pipeline *p = worker->pipeline;
  const gp_task *task = task_at(run, at);
  int64_t own = at->micro % run->plan->step_micros;
  gp_fault_place here = {.device = worker->device,
                         .stage = task->stage,
                         .step = (int32_t)feed_of(run, at->micro)->blocks[own].step,
                         .micro = (int32_t)own,
                         .op = (int32_t)task->op};
  worker->spoil = false;
  return gp_faults_strike(&p->faults, &here, &p->watch.given_up, &worker->spoil);
}

/* The order of all tasks of the stream. */
static int64_t order_of(const gp_run *run, const place *at) {
  int64_t total = run->plan->first[run->plan->device_count];
  return (int64_t)at->span->step * total + task_at(run, at)->order;
}

/* Interrupts count as a failure before everything else. */
static bool is_skipped(gp_run *run, const place *at) {
  if (gp_interrupt_pending()) gp_run_interrupt(run);
  return order_of(run, at) > atomic_load_explicit(&run->failed_order, memory_order_acquire);
}

/* An interrupt ends what a fault does, and the task too unless it leads to an update that others make. */
static gp_status run_task(gp_worker *worker, gp_run *run, const place *at) {
  const gp_task *task = task_at(run, at);
  gp_status status = worker->pipeline->faults.count ? strike(worker, run, at) : GP_OK;
  if (status == GP_EINTERRUPT) status = is_skipped(run, at) ? status : GP_OK;
  if (status) return status;
  if (task->op == GP_ACT_U) return gp_update_stage(worker, run, task, at->micro);
  if (task->op == GP_ACT_REDUCE && !task->copy) GP_TRY(gp_update_copies(worker, task->stage));
  return compute(worker, run, at);
}

/* The script may be waiting for a loss. That of a GPU is here when its range is over. */
static void note_loss(gp_run *run, const gp_task *task) {
  if (task->op != GP_ACT_F || task->stage != run->plan->stage_count - 1) return;
  atomic_fetch_add(&run->losses, 1);
  if (run->open) gp_run_progress(run);
}

/* Records are read by the watchdog meanwhile: plain stores, but ones that may be seen. */
static void note_time(_Atomic int64_t *word, int64_t ns) {
  atomic_store_explicit(word, ns, memory_order_relaxed);
}

/* Before other devices add up, update or read what this one made, it must have made it. A device that fails
 * says so before it arrives, so that nobody updates; it arrives all the same, or the others would wait. */
static gp_status come_to_barrier(gp_worker *worker, gp_run *run, const place *at) {
  gp_span_of_tasks before = *at->span;
  gp_status status = GP_OK;
  before.end = at->task;
  if (gp_lane_is_gpu(&worker->lane)) status = gp_desk_collect(worker, run, &before);
  if (status) gp_run_fail(run, 0, status, gp_error_text());
  return gp_update_barrier(worker, run, task_at(run, at)->op);
}

static void note_failure(gp_run *run, const place *at, gp_status status) {
  if (status) gp_run_fail(run, order_of(run, at), status, gp_error_text());
}

static void step_task(gp_worker *worker, gp_run *run, const place *at) {
  size_t number = atomic_load_explicit(&worker->event_count, memory_order_relaxed);
  gp_event *event = &worker->events[number % worker->event_room];
  const gp_task *task = task_at(run, at);
  note_time(&event->begin, 0);
  note_time(&event->end, 0);
  atomic_store_explicit(&event->task, at->task, memory_order_relaxed);
  note_time(&event->micro, at->micro);
  note_time(&event->wait, gp_now_ns());
  gp_status ready = wait_for_inputs(worker, run->binding, at);
  note_failure(run, at, ready);
  if (task->barrier) note_failure(run, at, come_to_barrier(worker, run, at));
  note_time(&event->begin, gp_now_ns());
  note_failure(run, at, gp_record_mark(worker, number, 0));
  if (!ready && !is_skipped(run, at)) note_failure(run, at, run_task(worker, run, at));
  note_failure(run, at, gp_record_mark(worker, number, 1));
  note_failure(run, at, mark_outputs(worker, run->binding, at));
  note_time(&event->end, gp_now_ns());
  atomic_store_explicit(&worker->event_count, number + 1, memory_order_release);
  publish_outputs(worker, run->binding, at);
  if (!gp_lane_is_gpu(&worker->lane)) note_loss(run, task);
}

/* ---- ranges -------------------------------------------------------------------------------- */

/* Gradients of this device's stages start from zero, unless they go on; an update of an asynchronous
 * schedule leaves them so. */
static gp_status zero_gradients(const gp_worker *worker, const gp_run *run, uint32_t step) {
  const gp_plan *plan = run->plan;
  bool backward = plan->kind == GP_PLAN_STEP || run->backward_half;
  if (!backward || run->feeds[step % (uint32_t)run->feed_room].accumulate) return GP_OK;
  if (plan->batch && step > 0) return GP_OK;
  for (int32_t s = 0; s < plan->stage_count; s++)
    for (int32_t copy = 0; copy < plan->copy_count; copy++)
      if (plan->placement[gp_plan_holder(plan, s, copy)] == worker->device)
        GP_TRY(gp_update_zero(worker->pipeline, s, copy));
  return GP_OK;
}

/* What the tasks of a mini-batch find: its rows, parameters of other devices, gradients of zero. */
static gp_status begin_range(gp_worker *worker, gp_run *run, uint32_t step) {
  GP_TRY(gp_record_range(worker));
  GP_TRY(zero_gradients(worker, run, step));
  if (!run->binding->wiring) return GP_OK;
  GP_TRY(gp_update_twins(worker));
  GP_TRY(gp_guests_refresh(worker, run->binding));
  return gp_lane_is_gpu(&worker->lane) ? gp_desk_upload(worker, run, step) : GP_OK;
}

/* The losses of a GPU are known when it is through with the range. */
static gp_status end_range(gp_worker *worker, gp_run *run, const gp_span_of_tasks *span) {
  const gp_plan *plan = run->plan;
  if (!gp_lane_is_gpu(&worker->lane)) return GP_OK;
  gp_status status = gp_desk_flush(worker, run);
  if (!status) status = gp_desk_collect(worker, run, span);
  if (!status) status = gp_record_settle(worker, span->first_event);
  for (int32_t t = span->first; t < span->end; t++)
    if (plan->tasks[t].micro + span->repeats * plan->step_micros < span->limit)
      note_loss(run, &plan->tasks[t]);
  return status;
}

/* Of the device's tasks for mini-batch `step`; of one that is never fed only what belongs to earlier ones. */
static gp_span_of_tasks span_of(const gp_worker *worker, const gp_run *run, uint32_t step,
                                int64_t limit) {
  const gp_plan *plan = run->plan;
  const gp_ranges *r = &plan->ranges;
  gp_span_of_tasks span = {.step = step, .limit = limit, .first_event = worker->event_count};
  int32_t d = worker->device, stored = gp_plan_range(plan, step, &span.repeats);
  const int32_t *begin = &r->begin[d * (r->count + 1) + stored];
  bool split = plan->kind == GP_PLAN_SPLIT;
  span.first = split && run->backward_half ? plan->devices[d].half : begin[0];
  span.end = split && !run->backward_half ? plan->devices[d].half : begin[1];
  return span;
}

static void run_range(gp_worker *worker, gp_run *run, uint32_t step, int64_t limit) {
  const gp_plan *plan = run->plan;
  gp_span_of_tasks span = span_of(worker, run, step, limit);
  gp_status status = GP_OK;
  if ((int64_t)step * plan->step_micros < limit) status = begin_range(worker, run, step);
  if (status) gp_run_fail(run, -1, status, gp_error_text()); /* before every task */
  for (int32_t t = span.first; t < span.end; t++) {
    place at = {
        .task = t, .micro = plan->tasks[t].micro + span.repeats * plan->step_micros, .span = &span};
    if (at.micro < limit) step_task(worker, run, &at);
  }
  status = end_range(worker, run, &span);
  if (!status) return;
  gp_run_spoil(run, 0);
  gp_run_fail(run, 0, status, gp_error_text());
}

static void set_phase(gp_worker *worker, gp_worker_phase phase) {
  atomic_store_explicit(&worker->phase, phase, memory_order_relaxed);
}

/* Mini-batch after mini-batch as the gate opens; when no more will come, what is left of the old ones. */
gp_status gp_run_device(gp_worker *worker, void *context) {
  gp_run *run = context;
  const gp_plan *plan = run->plan;
  atomic_store(&worker->barriers, 0);
  for (uint32_t step = 0; worker->device < plan->device_count; step++) {
    set_phase(worker, GP_WORKER_AT_GATE);
    gp_worker_await(worker, &run->gate, step + 1);
    set_phase(worker, GP_WORKER_IN_RANGE);
    bool ends = atomic_load(&run->gate) >= GP_GATE_END;
    int64_t limit = ends ? (int64_t)run->fed * plan->step_micros : INT64_MAX;
    if (ends && (int64_t)step >= (int64_t)run->fed + plan->ranges.lag[worker->device]) break;
    run_range(worker, run, step, limit);
    atomic_store(&worker->ranges_done, step + 1);
    if (run->open) gp_run_progress(run);
  }
  set_phase(worker, GP_WORKER_DONE);
  return GP_OK;
}
