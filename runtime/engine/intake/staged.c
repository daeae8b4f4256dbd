/* engine/intake/staged.c - mini-batches of a device that works in memory of its own: through
 * staging buffers.
 *
 * The worker copies a micro-batch's rows to the host's buffer and sends them on the receive stream
 * while the device computes the micro-batch before; outputs leave on the send stream (results.c).
 */
#include <string.h>

#include "base/memory.h"
#include "base/tensor.h"
#include "engine/intake/staged.h"
#include "engine/worker/marks.h"

/* ---- rows to the device ---------------------------------------------------------------------- */

static gp_status send(gp_worker *worker, const gp_staged_place *at, size_t offset, size_t bytes) {
  const gp_lane *lane = &worker->lane;
  if (!bytes) return GP_OK;
  return lane->memory->copy(lane, GP_STREAM_RECEIVE, at->there + offset, at->here + offset, bytes);
}

/* Send the rows of one micro-batch of one tensor. */
static gp_status send_rows(gp_worker *worker, const gp_plan *plan, const gp_staged_place *at,
                           size_t offset, const gp_rows *rows, int32_t micro) {
  size_t first = (size_t)gp_plan_first_row(plan, micro) * rows->row_bytes;
  size_t end = (size_t)gp_plan_first_row(plan, micro + 1) * rows->row_bytes;
  offset += gp_staged_micro_at(plan, rows, micro);
  memcpy(at->here + offset, rows->data + first, end - first);
  return send(worker, at, offset, end - first);
}

/* Send all rows of a micro-batch; number: counted through the stream. */
static gp_status send_micro(gp_worker *worker, const gp_run *run, int64_t number) {
  const gp_plan *plan = run->plan;
  const gp_minibatch *batch = gp_run_minibatch(run, number);
  const gp_staging *layout = gp_staged_layout(worker, plan);
  const gp_lane *lane = &worker->lane;
  const int32_t micro = (int32_t)(number % plan->step_micros);
  const gp_staged_place there = gp_staged_place_of(worker, plan, number), *at = &there;
  for (int k = 0; k < batch->input_count; k++)
    if (layout->inputs >> k & 1)
      GP_TRY(send_rows(worker, plan, at, layout->input[k], &batch->inputs[k], micro));
  for (int k = 0; k < batch->target_count; k++)
    if (layout->targets >> k & 1)
      GP_TRY(send_rows(worker, plan, at, layout->target[k], &batch->targets[k], micro));
  for (int k = 0; k < plan->shapes[0].output_count; k++)
    if (layout->out_grads >> k & 1 && batch->out_grads[k].tensor)
      GP_TRY(send_rows(worker, plan, at, layout->out_grad[k], &batch->out_grads[k], micro));
  return lane->streams->record(lane, GP_STREAM_RECEIVE, gp_staged_of(worker)->arrived[micro]);
}

/* Send the rows of all micro-batches up to this one, but of no later mini-batch. */
static gp_status send_until(gp_worker *worker, const gp_run *run, int64_t micro) {
  gp_staged *device = gp_staged_of(worker);
  while (device->sent < device->end && device->sent <= micro)
    GP_TRY(send_micro(worker, run, device->sent++));
  return GP_OK;
}

/* Let the compute stream wait for the rows of a micro-batch; the host does not wait. */
static gp_status await_rows(gp_worker *worker, const gp_run *run, int64_t micro) {
  const gp_lane *lane = &worker->lane;
  GP_TRY(send_until(worker, run, micro));
  return lane->streams->wait(lane, GP_STREAM_COMPUTE,
                             gp_staged_of(worker)->arrived[micro % run->plan->step_micros]);
}

/* Send the step blocks, an empty fault word and the first micro-batch. The other micro-batches
 * follow one by one, each with its event. */
static gp_status begin(gp_worker *worker, gp_run *run, uint32_t step) {
  const gp_plan *plan = run->plan;
  const gp_staging *layout = gp_staged_layout(worker, plan);
  const gp_minibatch *batch = gp_run_minibatch_at(run, step);
  int64_t first = (int64_t)step * plan->step_micros;
  gp_staged_place at = gp_staged_place_of(worker, plan, first);
  const int32_t count = plan->step_micros * plan->copy_count;
  gp_lane_fault none = {.key = GP_LANE_NO_FAULT};
  gp_minibatch_copy_blocks(plan, batch, (gp_step_block *)(at.here + layout->blocks));
  memcpy(at.here + layout->fault, &none, sizeof none);
  GP_TRY(send(worker, &at, layout->blocks, (size_t)count * sizeof(gp_step_block)));
  GP_TRY(send(worker, &at, layout->fault, sizeof none));
  gp_staged_of(worker)->sent = first;
  gp_staged_of(worker)->end = first + plan->step_micros;
  return await_rows(worker, run, first);
}

static const gp_step_block *block(const gp_worker *worker, int64_t micro, int32_t copy) {
  const gp_plan *plan = worker->pipeline->run.plan;
  gp_staged_place at = gp_staged_place_of(worker, plan, micro);
  const gp_step_block *blocks =
      (gp_step_block *)(at.there + gp_staged_layout(worker, plan)->blocks);
  return &blocks[copy * plan->step_micros + micro % plan->step_micros];
}

/* Set the addresses of what a task reads and writes of its mini-batch. */
static void bind(gp_worker *worker, gp_task_run *r) {
  const gp_minibatch *batch = r->batch;
  const gp_task *task = r->task;
  int64_t micro = r->micro, own = r->own;
  const gp_plan *plan = worker->pipeline->run.plan;
  const gp_staging *layout = gp_staged_layout(worker, plan);
  char *there = gp_staged_place_of(worker, plan, micro).there;
  void **frame = worker->frame;
  r->block = block(worker, micro, task->copy);
  r->fault = (gp_lane_fault *)(there + layout->fault);
  frame[GP_BASE_LOSS] = (double *)(there + layout->losses) + own;
  frame[GP_BASE_COUNT] = gp_staged_counts(there, layout, plan, task->copy) + own;
  for (int k = 0; k < plan->shapes[0].output_count; k++) {
    const gp_rows *output = &batch->outputs[k], *grad = &batch->out_grads[k];
    if (output->tensor)
      frame[GP_BASE_OUTPUT + k] = there + layout->output[k] + gp_staged_micro_at(plan, output, own);
    if (grad->tensor)
      frame[GP_BASE_OUT_GRAD + k] =
          there + layout->out_grad[k] + gp_staged_micro_at(plan, grad, own);
  }
  for (int k = 0; k < batch->input_count; k++) {
    const gp_rows *grad = &batch->input_grads[k];
    frame[GP_BASE_INPUT + k] =
        there + layout->input[k] + gp_staged_micro_at(plan, &batch->inputs[k], own);
    if (grad->tensor)
      frame[GP_BASE_INPUT_GRAD + k] =
          there + layout->input_grad[k] + gp_staged_micro_at(plan, grad, own);
  }
  for (int k = 0; k < batch->target_count; k++)
    frame[GP_BASE_TARGET + k] =
        there + layout->target[k] + gp_staged_micro_at(plan, &batch->targets[k], own);
}

/* Compute what the losses of each mini-batch of the schedule are divided by. Runs after the last
 * count of the mini-batch that step was given. */
static gp_status settle_counts(gp_worker *worker, const gp_plan *plan, int64_t micro,
                               int32_t copy) {
  const gp_lane *lane = &worker->lane;
  int32_t size = gp_run_group(plan);
  int64_t start = micro - micro % plan->step_micros;
  char *there = gp_staged_place_of(worker, plan, micro).there;
  int64_t *counts = gp_staged_counts(there, gp_staged_layout(worker, plan), plan, copy);
  for (int32_t first = 0; first < plan->step_micros; first += size) {
    gp_step_block *blocks = (gp_step_block *)block(worker, start + first, copy);
    GP_TRY(lane->work->settle(lane, counts + first, blocks, size));
  }
  return GP_OK;
}

/* ---- a task and a range -------------------------------------------------------------------- */

static gp_status before(gp_worker *worker, const gp_task_run *r) {
  return await_rows(worker, &worker->pipeline->run, r->micro);
}

static gp_status settle(gp_worker *worker, const gp_task_run *r) {
  const gp_plan *plan = worker->pipeline->run.plan;
  if (r->task->op != GP_ACT_C || r->own < plan->step_micros - 1) return GP_OK;
  return settle_counts(worker, plan, r->micro, r->task->copy);
}

static gp_status after(gp_worker *worker, const gp_task_run *r) {
  gp_run *run = &worker->pipeline->run;
  GP_TRY(gp_staged_send_results(worker, run, r->task, r->micro));
  /* the rows of the next micro-batch travel while the device computes this one */
  return send_until(worker, run, gp_staged_of(worker)->sent);
}

static gp_status end(gp_worker *worker, gp_run *run, const gp_task_span *span) {
  const gp_plan *plan = run->plan;
  gp_status status = send_until(worker, run, INT64_MAX);
  if (!status) status = gp_staged_collect(worker, run, span);
  if (!status) status = gp_marks_settle(worker, span->first_event);
  for (int32_t t = span->first; t < span->end; t++)
    if (plan->tasks[t].micro + span->repeats * plan->step_micros < span->limit)
      gp_run_note_loss(worker, run, &plan->tasks[t]);
  return status;
}

/* ---- making -------------------------------------------------------------------------------- */

static gp_status make_events(const gp_lane *lane, int32_t count, gp_lane_event ***events) {
  GP_TRY(gp_alloc_array((size_t)count, sizeof(gp_lane_event *), (void **)events));
  for (int32_t i = 0; i < count; i++) GP_TRY(lane->streams->event_new(lane, false, &(*events)[i]));
  return GP_OK;
}

static gp_status open_intake(gp_binding *b, int32_t d) {
  const gp_plan *plan = b->plan;
  const gp_lane *lane = &b->pipeline->workers[d].lane;
  gp_staged *made;
  GP_TRY(gp_alloc(sizeof *made, (void **)&made));
  b->devices[d].staged = made;
  GP_TRY(gp_lane_host_alloc(lane, plan->devices[d].staging.area.bytes, (void **)&made->here));
  GP_TRY(make_events(lane, plan->step_micros, &made->arrived));
  if (!plan->shapes[0].output_count) return GP_OK;
  return make_events(lane, plan->step_micros, &made->computed);
}

static void free_events(const gp_lane *lane, gp_lane_event **events, int32_t count) {
  for (int32_t i = 0; events && i < count; i++) lane->streams->event_free(lane, events[i]);
  gp_free(events);
}

static void close_intake(gp_binding *b, int32_t d) {
  const gp_lane *lane = &b->pipeline->workers[d].lane;
  gp_staged *own = b->devices[d].staged;
  if (!own) return;
  gp_lane_host_free(lane, own->here);
  free_events(lane, own->arrived, b->plan->step_micros);
  free_events(lane, own->computed, b->plan->step_micros);
  gp_free(own);
}

const gp_intake gp_intake_staged = {.open = open_intake,
                                    .close = close_intake,
                                    .bind = bind,
                                    .begin = begin,
                                    .before = before,
                                    .settle = settle,
                                    .after = after,
                                    .collect = gp_staged_collect,
                                    .end = end};
