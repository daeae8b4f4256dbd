/* engine/run.c - the loop over tasks: wait for inputs, run a program, publish outputs.
 *
 * A task that fails makes every task later in the schedule's topological order a pass-through: it still
 * waits and publishes, so nobody hangs, but computes nothing. Tasks earlier in that order still run, so
 * the failure that is reported is the first one in that order, the same every time.
 */
#include <limits.h>
#include <string.h>

#include "base/tensor.h"
#include "base/thread.h"
#include "engine/pipeline.h"

/* ---- slots --------------------------------------------------------------------------------- */

/* Capacities are sized so that acquiring never waits in a training step (plan/capacity.c). */
static void wait_for_inputs(gp_worker *worker, const gp_plan *plan, const gp_task *task) {
  for (int32_t u = 0; u < task->use_count; u++) {
    const gp_use *use = &task->uses[u];
    const gp_channel *channel = &plan->channels[use->edge];
    gp_slot_state *state = &channel->states[use->slot];
    if (use->wait) gp_worker_await(worker, &state->published, use->round + 1);
    if (use->acquire)
      gp_worker_await(worker, &state->released, use->round * (uint32_t)channel->parties);
  }
}

/* A worker that sleeps is woken; one that spins sees the word itself. */
static void ring_stage(const gp_worker *worker, const gp_plan *plan, int32_t stage) {
  int32_t device = plan->placement[stage];
  if (device != worker->device) gp_worker_ring(&worker->pipeline->workers[device]);
}

/* Release order: whoever sees the round sees the value. A failed task publishes too, or its readers
 * would wait for ever; they skip their work. */
static void publish_outputs(gp_worker *worker, const gp_plan *plan, const gp_task *task) {
  for (int32_t u = 0; u < task->use_count; u++) {
    const gp_use *use = &task->uses[u];
    const gp_edge *edge = gp_plan_edge(plan, use->edge);
    gp_slot_state *state = &plan->channels[use->edge].states[use->slot];
    if (use->publish) {
      atomic_store_explicit(&state->published, use->round + 1, memory_order_release);
      for (int32_t r = 0; r < edge->to_count; r++) ring_stage(worker, plan, edge->to[r]);
    }
    if (use->release) {
      atomic_fetch_add_explicit(&state->released, 1, memory_order_release);
      ring_stage(worker, plan, edge->from);
    }
  }
}

/* ---- frame --------------------------------------------------------------------------------- */

/* Address of this micro-batch's part of a whole mini-batch tensor: a multiple of the rows, in order. */
static void *rows_of(const gp_tensor *tensor, const gp_plan *plan, int64_t first_row) {
  size_t rows = (size_t)gp_plan_first_row(plan, plan->micro_count);
  size_t row_bytes = gp_meta_bytes(gp_tensor_meta(tensor)) / rows;
  return (char *)gp_tensor_data(tensor) + (size_t)first_row * row_bytes;
}

/* One address per base of the plan; what this task does not touch keeps an old one, never read. */
static void bind_frame(gp_worker *worker, const gp_run *run, const gp_task *task) {
  const gp_plan *plan = run->plan;
  const gp_run_args *args = run->args;
  int64_t row = run->blocks[task->micro].first_row;
  void **frame = worker->frame;
  frame[GP_BASE_TEMP] = plan->temp[worker->device];
  frame[GP_BASE_SAVED] = task->saved;
  frame[GP_BASE_RECOMPUTED] = task->recomputed;
  frame[GP_BASE_CARRIED] = task->carried;
  frame[GP_BASE_EXPORT + GP_EXPORT_LOSS] = &plan->results[task->micro].loss;
  frame[GP_BASE_EXPORT + GP_EXPORT_COUNT] = &plan->results[task->micro].count;
  if (args->output) frame[GP_BASE_EXPORT + GP_EXPORT_OUTPUT] = rows_of(args->output, plan, row);
  if (args->out_grad) frame[GP_BASE_OUT_GRAD] = rows_of(args->out_grad, plan, row);
  for (int i = 0; i < args->input_count; i++)
    frame[GP_BASE_INPUT + i] = rows_of(args->inputs[i], plan, row);
  for (int i = 0; i < args->target_count; i++)
    frame[GP_BASE_TARGET + i] = rows_of(args->targets[i], plan, row);
  for (int32_t u = 0; u < task->use_count; u++) {
    const gp_use *use = &task->uses[u];
    const gp_channel *channel = &plan->channels[use->edge];
    frame[GP_BASE_EDGE + use->edge] = channel->memory + (size_t)use->slot * channel->bytes;
  }
}

/* ---- tasks --------------------------------------------------------------------------------- */

/* After the last count: what the loss of every micro-batch is divided by. */
static void settle_count(gp_run *run) {
  run->count = 0;
  for (int32_t i = 0; i < run->plan->micro_count; i++) run->count += run->plan->results[i].count;
  for (int32_t i = 0; i < run->plan->micro_count; i++)
    run->blocks[i].inverse_count = run->count ? 1.0 / (double)run->count : 0;
}

/* The last count of the mini-batch settles what every loss is divided by. */
static gp_status run_task(gp_worker *worker, gp_run *run, const gp_task *task) {
  gp_pipeline *pipeline = worker->pipeline;
  gp_fault here = {.stage = task->stage,
                   .step = (int32_t)run->blocks[0].step,
                   .micro = task->micro,
                   .op = gp_act_text(task->op)[0]};
  GP_TRY(gp_fault_strike(&pipeline->fault, &here));
  if (!task->program) return GP_OK;
  bind_frame(worker, run, task);
  GP_TRY(gp_execute(worker, task->program, &run->blocks[task->micro]));
  if (task->op == GP_ACT_C && task->micro == run->plan->micro_count - 1) settle_count(run);
  return GP_OK;
}

/* Interrupts count as a failure before everything else. */
static bool is_skipped(gp_run *run, const gp_task *task) {
  if (gp_interrupt_pending()) gp_run_fail(run, -1, GP_EINTERRUPT, "interrupted");
  return task->order > atomic_load_explicit(&run->failed_order, memory_order_acquire);
}

static void step_task(gp_worker *worker, gp_run *run, int32_t index) {
  const gp_task *task = &run->plan->tasks[index];
  gp_record *record = &worker->pipeline->records[index];
  wait_for_inputs(worker, run->plan, task);
  record->begin = gp_now_ns();
  if (!is_skipped(run, task)) {
    gp_status status = run_task(worker, run, task);
    if (status) gp_run_fail(run, task->order, status, gp_error_text());
  }
  record->end = gp_now_ns();
  publish_outputs(worker, run->plan, task);
}

/* Gradients of this device's stages start from zero. */
static void zero_gradients(const gp_worker *worker, const gp_plan *plan) {
  gp_pipeline *p = worker->pipeline;
  for (int32_t s = 0; s < plan->stage_count; s++)
    if (plan->placement[s] == worker->device && p->arenas[s].grads)
      memset(p->arenas[s].grads, 0, p->arenas[s].grad_bytes);
  for (int32_t x = 0; x < p->extra_count; x++)
    if (plan->placement[p->stage_of[p->extras[x].layer]] == worker->device)
      memset(gp_tensor_data(p->extras[x].grad), 0, gp_tensor_bytes(p->extras[x].grad));
}

gp_status gp_run_device(gp_worker *worker, void *context) {
  gp_run *run = context;
  const gp_plan *plan = run->plan;
  int32_t d = worker->device;
  if (d >= plan->device_count) return GP_OK;
  bool split = plan->kind == GP_PLAN_SPLIT;
  int32_t begin = split && run->backward_half ? plan->half[d] : plan->first[d];
  int32_t end = split && !run->backward_half ? plan->half[d] : plan->first[d + 1];
  bool backward = plan->kind == GP_PLAN_STEP || run->backward_half;
  if (backward && !run->args->accumulate) zero_gradients(worker, plan);
  for (int32_t t = begin; t < end; t++) step_task(worker, run, t);
  return GP_OK;
}
