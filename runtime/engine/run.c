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
#include "engine/pipeline.h"

/* Where a task is in the stream. */
typedef struct place {
  int32_t task;
  uint32_t step; /* mini-batch, from 0: its range */
  int64_t micro; /* counted through the stream */
} place;

static const gp_task *task_at(const gp_run *run, const place *at) {
  return &run->plan->tasks[at->task];
}

/* ---- slots --------------------------------------------------------------------------------- */

static gp_slot_state *state_of(const gp_plan *plan, int32_t edge, int64_t micro, uint32_t *round) {
  const gp_channel *channel = &plan->channels[edge];
  int64_t turn = gp_plan_turn(plan, edge, micro);
  *round = (uint32_t)(turn / channel->slots);
  return &channel->states[turn % channel->slots];
}

/* Capacities are sized so that acquiring never waits in a training step (plan/capacity.c). */
static void wait_for_inputs(gp_worker *worker, const gp_plan *plan, const place *at) {
  const gp_task *task = &plan->tasks[at->task];
  for (int32_t u = 0; u < task->use_count; u++) {
    const gp_use *use = &task->uses[u];
    uint32_t round, parties = (uint32_t)plan->channels[use->edge].parties;
    gp_slot_state *state = state_of(plan, use->edge, at->micro, &round);
    if (use->wait) gp_worker_await(worker, &state->published, round + 1);
    if (use->acquire) gp_worker_await(worker, &state->released, round * parties);
  }
}

/* A worker that sleeps is woken; one that spins sees the word itself. */
static void ring_stage(const gp_worker *worker, const gp_plan *plan, int32_t stage) {
  for (int32_t copy = 0; copy < plan->copy_count; copy++) {
    int32_t device = plan->placement[gp_plan_holder(plan, stage, copy)];
    if (device != worker->device) gp_worker_ring(&worker->pipeline->workers[device]);
  }
}

/* Release order: whoever sees the round sees the value. A failed task publishes too, or its readers
 * would wait for ever; they skip their work. */
static void publish_outputs(gp_worker *worker, const gp_plan *plan, const place *at) {
  const gp_task *task = &plan->tasks[at->task];
  for (int32_t u = 0; u < task->use_count; u++) {
    const gp_use *use = &task->uses[u];
    const gp_edge *edge = gp_plan_edge(plan, use->edge);
    uint32_t round;
    gp_slot_state *state = state_of(plan, use->edge, at->micro, &round);
    if (use->publish) {
      atomic_store_explicit(&state->published, round + 1, memory_order_release);
      for (int32_t r = 0; r < edge->to_count; r++) ring_stage(worker, plan, edge->to[r]);
    }
    if (use->release) {
      atomic_fetch_add_explicit(&state->released, 1, memory_order_release);
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

static gp_status compute(gp_worker *worker, gp_run *run, const place *at) {
  const gp_task *task = task_at(run, at);
  const gp_plan *plan = run->plan;
  gp_feed *feed = feed_of(run, at->micro);
  int64_t own = at->micro % plan->step_micros;
  if (!task->program) return GP_OK;
  gp_frame_bind(worker, feed, task, at->micro);
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

/* Behind the barrier all stages are updated or none: an interrupt is seen when the step is over. */
static bool is_settled(const gp_run *run, const gp_task *task) {
  return task->op == GP_ACT_U && run->plan->update == GP_UPDATE_BARRIER;
}

static gp_status run_task(gp_worker *worker, gp_run *run, const place *at) {
  const gp_task *task = task_at(run, at);
  gp_status status = worker->pipeline->faults.count ? strike(worker, run, at) : GP_OK;
  if (status && !(status == GP_EINTERRUPT && is_settled(run, task))) return status;
  if (task->op == GP_ACT_U) return gp_update_stage(worker, run, task, at->micro);
  if (task->op == GP_ACT_REDUCE && !task->copy) gp_update_copies(worker, task->stage);
  return compute(worker, run, at);
}

/* The order of all tasks of the stream. */
static int64_t order_of(const gp_run *run, const place *at) {
  int64_t total = run->plan->first[run->plan->device_count];
  return (int64_t)at->step * total + task_at(run, at)->order;
}

/* Interrupts count as a failure before everything else. */
static bool is_skipped(gp_run *run, const place *at) {
  if (!is_settled(run, task_at(run, at)) && gp_interrupt_pending())
    gp_run_fail(run, -1, GP_EINTERRUPT, "interrupted");
  return order_of(run, at) > atomic_load_explicit(&run->failed_order, memory_order_acquire);
}

/* The script may be waiting for a loss. */
static void note_loss(gp_run *run, const gp_task *task) {
  if (task->op != GP_ACT_F || task->stage != run->plan->stage_count - 1) return;
  atomic_fetch_add(&run->losses, 1);
  if (run->open) gp_run_progress(run);
}

/* Records are read by the watchdog meanwhile: plain stores, but ones that may be seen. */
static void note_time(_Atomic int64_t *word, int64_t ns) {
  atomic_store_explicit(word, ns, memory_order_relaxed);
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
  wait_for_inputs(worker, run->plan, at);
  if (task->barrier) gp_update_barrier(worker, run, task->op);
  note_time(&event->begin, gp_now_ns());
  if (!is_skipped(run, at)) {
    gp_status status = run_task(worker, run, at);
    if (status) gp_run_fail(run, order_of(run, at), status, gp_error_text());
  }
  note_time(&event->end, gp_now_ns());
  atomic_store_explicit(&worker->event_count, number + 1, memory_order_release);
  publish_outputs(worker, run->plan, at);
  note_loss(run, task);
}

/* ---- ranges -------------------------------------------------------------------------------- */

/* Gradients of this device's stages start from zero, unless they go on; an update of an asynchronous
 * schedule leaves them so. */
static void zero_gradients(const gp_worker *worker, const gp_run *run, uint32_t step) {
  const gp_plan *plan = run->plan;
  bool backward = plan->kind == GP_PLAN_STEP || run->backward_half;
  if (!backward || run->feeds[step % (uint32_t)run->feed_room].accumulate) return;
  if (plan->batch && step > 0) return;
  for (int32_t s = 0; s < plan->stage_count; s++)
    for (int32_t copy = 0; copy < plan->copy_count; copy++)
      if (plan->placement[gp_plan_holder(plan, s, copy)] == worker->device)
        gp_update_zero(worker->pipeline, s, copy);
}

/* The tasks of one mini-batch; of one that is never fed only what belongs to earlier ones. */
static void run_range(gp_worker *worker, gp_run *run, uint32_t step, int64_t limit) {
  const gp_plan *plan = run->plan;
  const gp_ranges *r = &plan->ranges;
  int64_t repeats;
  int32_t d = worker->device, stored = gp_plan_range(plan, step, &repeats);
  const int32_t *begin = &r->begin[d * (r->count + 1) + stored];
  bool split = plan->kind == GP_PLAN_SPLIT;
  int32_t first = split && run->backward_half ? plan->half[d] : begin[0];
  int32_t end = split && !run->backward_half ? plan->half[d] : begin[1];
  if ((int64_t)step * plan->step_micros < limit) zero_gradients(worker, run, step);
  for (int32_t t = first; t < end; t++) {
    place at = {
        .task = t, .step = step, .micro = plan->tasks[t].micro + repeats * plan->step_micros};
    if (at.micro < limit) step_task(worker, run, &at);
  }
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
