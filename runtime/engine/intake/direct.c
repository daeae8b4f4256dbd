/* engine/intake/direct.c - mini-batches of a device that works in the host's memory: in place.
 *
 * This file also chooses between this and staging buffers.
 */
#include "base/tensor.h"
#include "engine/intake/intake.h"
#include "engine/state/pipeline.h"

/* ---- making -------------------------------------------------------------------------------- */

gp_status gp_intakes_new(gp_binding *b) {
  for (int32_t d = 0; d < b->plan->device_count; d++) {
    if (!gp_device_is_here(b->pipeline, d)) continue;
    b->devices[d].intake = gp_plan_on_host(b->plan, d) ? &gp_intake_direct : &gp_intake_staged;
    if (b->devices[d].intake->open) GP_TRY(b->devices[d].intake->open(b, d));
  }
  return GP_OK;
}

void gp_intakes_free(gp_binding *b) {
  for (int32_t d = 0; b->devices && d < b->plan->device_count; d++)
    if (b->devices[d].intake && b->devices[d].intake->close) b->devices[d].intake->close(b, d);
}

/* ---- what a task reads and leaves ------------------------------------------------------------ */

static void *row_at(const gp_rows *rows, int64_t row) {
  return rows->data + (size_t)row * rows->row_bytes;
}

static void bind(gp_worker *worker, gp_task_run *r) {
  const gp_minibatch *batch = r->batch;
  int64_t row = batch->rows[r->own];
  void **frame = worker->frame;
  r->block = gp_minibatch_block(worker->pipeline->run.plan, batch, r->own, r->task->copy);
  frame[GP_BASE_LOSS] = &batch->results[r->own];
  frame[GP_BASE_COUNT] =
      gp_minibatch_count(worker->pipeline->run.plan, batch, r->own, r->task->copy);
  for (int k = 0; k < worker->pipeline->run.plan->shapes[0].output_count; k++) {
    if (batch->outputs[k].tensor) frame[GP_BASE_OUTPUT + k] = row_at(&batch->outputs[k], row);
    if (batch->out_grads[k].tensor) frame[GP_BASE_OUT_GRAD + k] = row_at(&batch->out_grads[k], row);
  }
  for (int i = 0; i < batch->input_count; i++) {
    frame[GP_BASE_INPUT + i] = row_at(&batch->inputs[i], row);
    if (batch->input_grads[i].tensor)
      frame[GP_BASE_INPUT_GRAD + i] = row_at(&batch->input_grads[i], row);
  }
  for (int i = 0; i < batch->target_count; i++)
    frame[GP_BASE_TARGET + i] = row_at(&batch->targets[i], row);
}

/* Compute what the losses of each mini-batch of the schedule are divided by. Runs after the last
 * count of the mini-batch that step was given. */
static void settle_counts(const gp_plan *plan, const gp_minibatch *batch, int32_t copy) {
  int32_t size = gp_run_group(plan);
  for (int32_t first = 0; first < plan->step_micros; first += size) {
    int64_t count = 0;
    for (int32_t i = first; i < first + size; i++)
      count += *gp_minibatch_count(plan, batch, i, copy);
    for (int32_t i = first; i < first + size; i++)
      gp_minibatch_block(plan, batch, i, copy)->inverse_count = count ? 1.0 / (double)count : 0;
  }
}

static gp_status settle(gp_worker *worker, const gp_task_run *r) {
  const gp_plan *plan = worker->pipeline->run.plan;
  if (r->task->op == GP_ACT_C && r->own == plan->step_micros - 1)
    settle_counts(plan, r->batch, r->task->copy);
  return GP_OK;
}

const gp_intake gp_intake_direct = {.bind = bind, .settle = settle, .at_once = true};
