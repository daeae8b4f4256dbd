/* engine/intake/staged.c - mini-batches of a device that works in memory of its own: through
 * staging buffers.
 *
 * The staging buffer of a device (plan.h) exists twice, in its memory ("there") and in pinned host
 * memory ("here"). What goes to the device lies before the fault word, what comes back lies after
 * it. The worker copies a micro-batch's rows to the host's buffer and sends them on the receive
 * stream while the device computes the micro-batch before; outputs leave on the send stream.
 */
#include <string.h>

#include "base/memory.h"
#include "base/tensor.h"
#include "engine/intake/intake.h"
#include "engine/run/run.h"
#include "engine/state/pipeline.h"
#include "engine/watch/tags.h"
#include "engine/worker/marks.h"
#include "ops/ids.h"

/* What a staged intake has in addition to the device's buffer, which lies in the plan's memory. */
struct gp_staged {
  char *here;               /* the host's buffer, for all mini-batches under way */
  gp_lane_event **arrived;  /* per micro-batch: its rows have come */
  gp_lane_event **computed; /* per micro-batch: its outputs are made; where the plan has outputs */
  int64_t sent, end;        /* micro-batches of the stream: sent so far; that may be sent */
};

static gp_staged *staged_of(const gp_worker *worker) {
  return worker->pipeline->run.binding->devices[worker->device].staged;
}

/* One mini-batch's place in both buffers. */
typedef struct place {
  char *here, *there;
} place;

/* The layout of both buffers of a worker's device. */
static const gp_staging *layout_of(const gp_worker *worker, const gp_plan *plan) {
  return &plan->devices[worker->device].staging;
}

/* The place of the mini-batch that a micro-batch, counted through the stream, belongs to. */
static place place_of(const gp_worker *worker, const gp_plan *plan, int64_t micro) {
  const gp_staging *layout = layout_of(worker, plan);
  const gp_run *run = &worker->pipeline->run;
  const gp_binding *binding = run->binding;
  size_t slot = (size_t)(micro / plan->step_micros % run->batch_room % gp_plan_batch_room(plan));
  return (place){staged_of(worker)->here + slot * layout->bytes,
                 binding->devices[worker->device].staging + slot * layout->bytes};
}

/* Where the rows of a micro-batch begin, after those of the micro-batches before. */
static size_t micro_at(const gp_plan *plan, const gp_rows *rows, int64_t own) {
  return (size_t)own * gp_plan_padded((size_t)plan->shapes[0].rows * rows->row_bytes);
}

/* ---- there --------------------------------------------------------------------------------- */

static gp_status send(gp_worker *worker, const place *at, size_t offset, size_t bytes) {
  const gp_lane *lane = &worker->lane;
  if (!bytes) return GP_OK;
  return lane->memory->copy(lane, GP_STREAM_RECEIVE, at->there + offset, at->here + offset, bytes);
}

/* Send the rows of one micro-batch of one tensor. */
static gp_status send_rows(gp_worker *worker, const gp_plan *plan, const place *at, size_t offset,
                           const gp_rows *rows, int32_t micro) {
  size_t first = (size_t)gp_plan_first_row(plan, micro) * rows->row_bytes;
  size_t end = (size_t)gp_plan_first_row(plan, micro + 1) * rows->row_bytes;
  offset += micro_at(plan, rows, micro);
  memcpy(at->here + offset, rows->data + first, end - first);
  return send(worker, at, offset, end - first);
}

/* Send all rows of a micro-batch; number: counted through the stream. */
static gp_status send_micro(gp_worker *worker, const gp_run *run, int64_t number) {
  const gp_plan *plan = run->plan;
  const gp_minibatch *batch = gp_run_minibatch(run, number);
  const gp_staging *layout = layout_of(worker, plan);
  const gp_lane *lane = &worker->lane;
  const int32_t micro = (int32_t)(number % plan->step_micros);
  const place there = place_of(worker, plan, number), *at = &there;
  for (int k = 0; k < batch->input_count; k++)
    if (layout->inputs >> k & 1)
      GP_TRY(send_rows(worker, plan, at, layout->input[k], &batch->inputs[k], micro));
  for (int k = 0; k < batch->target_count; k++)
    if (layout->targets >> k & 1)
      GP_TRY(send_rows(worker, plan, at, layout->target[k], &batch->targets[k], micro));
  for (int k = 0; k < plan->shapes[0].output_count; k++)
    if (layout->out_grads >> k & 1 && batch->out_grads[k].tensor)
      GP_TRY(send_rows(worker, plan, at, layout->out_grad[k], &batch->out_grads[k], micro));
  return lane->streams->record(lane, GP_STREAM_RECEIVE, staged_of(worker)->arrived[micro]);
}

/* Send the rows of all micro-batches up to this one, but of no later mini-batch. */
static gp_status send_until(gp_worker *worker, const gp_run *run, int64_t micro) {
  gp_staged *device = staged_of(worker);
  while (device->sent < device->end && device->sent <= micro)
    GP_TRY(send_micro(worker, run, device->sent++));
  return GP_OK;
}

/* Let the compute stream wait for the rows of a micro-batch; the host does not wait. */
static gp_status await_rows(gp_worker *worker, const gp_run *run, int64_t micro) {
  const gp_lane *lane = &worker->lane;
  GP_TRY(send_until(worker, run, micro));
  return lane->streams->wait(lane, GP_STREAM_COMPUTE,
                             staged_of(worker)->arrived[micro % run->plan->step_micros]);
}

/* Send the step blocks, an empty fault word and the first micro-batch. The other micro-batches
 * follow one by one, each with its event. */
static gp_status begin(gp_worker *worker, gp_run *run, uint32_t step) {
  const gp_plan *plan = run->plan;
  const gp_staging *layout = layout_of(worker, plan);
  const gp_minibatch *batch = gp_run_minibatch_at(run, step);
  int64_t first = (int64_t)step * plan->step_micros;
  place at = place_of(worker, plan, first);
  const int32_t count = plan->step_micros * plan->copy_count;
  gp_lane_fault none = {.key = GP_LANE_NO_FAULT};
  gp_minibatch_copy_blocks(plan, batch, (gp_step_block *)(at.here + layout->blocks));
  memcpy(at.here + layout->fault, &none, sizeof none);
  GP_TRY(send(worker, &at, layout->blocks, (size_t)count * sizeof(gp_step_block)));
  GP_TRY(send(worker, &at, layout->fault, sizeof none));
  staged_of(worker)->sent = first;
  staged_of(worker)->end = first + plan->step_micros;
  return await_rows(worker, run, first);
}

static const gp_step_block *block(const gp_worker *worker, int64_t micro, int32_t copy) {
  const gp_plan *plan = worker->pipeline->run.plan;
  place at = place_of(worker, plan, micro);
  const gp_step_block *blocks = (gp_step_block *)(at.there + layout_of(worker, plan)->blocks);
  return &blocks[copy * plan->step_micros + micro % plan->step_micros];
}

static int64_t *counts_at(char *buffer, const gp_staging *layout, const gp_plan *plan,
                          int32_t copy) {
  return (int64_t *)(buffer + layout->counts) + copy * plan->step_micros;
}

/* Set the addresses of what a task reads and writes of its mini-batch. */
static void bind(gp_worker *worker, gp_task_run *r) {
  const gp_minibatch *batch = r->batch;
  const gp_task *task = r->task;
  int64_t micro = r->micro, own = r->own;
  const gp_plan *plan = worker->pipeline->run.plan;
  const gp_staging *layout = layout_of(worker, plan);
  char *there = place_of(worker, plan, micro).there;
  void **frame = worker->frame;
  r->block = block(worker, micro, task->copy);
  r->fault = (gp_lane_fault *)(there + layout->fault);
  frame[GP_BASE_LOSS] = (double *)(there + layout->losses) + own;
  frame[GP_BASE_COUNT] = counts_at(there, layout, plan, task->copy) + own;
  for (int k = 0; k < plan->shapes[0].output_count; k++) {
    const gp_rows *output = &batch->outputs[k], *grad = &batch->out_grads[k];
    if (output->tensor)
      frame[GP_BASE_OUTPUT + k] = there + layout->output[k] + micro_at(plan, output, own);
    if (grad->tensor)
      frame[GP_BASE_OUT_GRAD + k] = there + layout->out_grad[k] + micro_at(plan, grad, own);
  }
  for (int k = 0; k < batch->input_count; k++) {
    const gp_rows *grad = &batch->input_grads[k];
    frame[GP_BASE_INPUT + k] = there + layout->input[k] + micro_at(plan, &batch->inputs[k], own);
    if (grad->tensor)
      frame[GP_BASE_INPUT_GRAD + k] = there + layout->input_grad[k] + micro_at(plan, grad, own);
  }
  for (int k = 0; k < batch->target_count; k++)
    frame[GP_BASE_TARGET + k] = there + layout->target[k] + micro_at(plan, &batch->targets[k], own);
}

/* Compute what the losses of each mini-batch of the schedule are divided by. Runs after the last
 * count of the mini-batch that step was given. */
static gp_status settle_counts(gp_worker *worker, const gp_plan *plan, int64_t micro,
                               int32_t copy) {
  const gp_lane *lane = &worker->lane;
  int32_t size = gp_run_group(plan);
  int64_t start = micro - micro % plan->step_micros;
  char *there = place_of(worker, plan, micro).there;
  int64_t *counts = counts_at(there, layout_of(worker, plan), plan, copy);
  for (int32_t first = 0; first < plan->step_micros; first += size) {
    gp_step_block *blocks = (gp_step_block *)block(worker, start + first, copy);
    GP_TRY(lane->work->settle(lane, counts + first, blocks, size));
  }
  return GP_OK;
}

/* ---- back ---------------------------------------------------------------------------------- */

/* Write the text of a fault: the same that a CPU device would have written. */
static gp_status fault_text(const gp_plan *plan, const gp_minibatch *batch,
                            const gp_lane_fault *fault, gp_tag tag) {
  const gp_task *task = &plan->tasks[tag.task];
  const gp_program *program = task->program;
  const gp_instr *instr = &program->instrs[tag.instr];
  const char *label = program->graph->labels[program->graph->nodes[instr->node].label];
  gp_call call = instr->call;
  call.step = gp_minibatch_block(plan, batch, task->micro % plan->step_micros, task->copy);
  if (tag.finite) return gp_instr_not_finite(program, instr);
  gp_id_fault(instr->op, &call, (int64_t)(fault->key & UINT32_MAX), fault->value);
  return gp_fail_prefix(GP_ERANGE, label);
}

/* Fail the run if the device has written a fault into a mini-batch's fault word. */
static void note_fault(const gp_worker *worker, gp_run *run, uint32_t step, const place *at) {
  const gp_plan *plan = run->plan;
  const gp_minibatch *batch = gp_run_minibatch_at(run, step);
  gp_lane_fault fault;
  memcpy(&fault, at->here + layout_of(worker, plan)->fault, sizeof fault);
  if (fault.key == GP_LANE_NO_FAULT) return;
  gp_tag tag = gp_tag_read(run->binding, worker->device, (uint32_t)(fault.key >> 32));
  gp_status status = fault_text(plan, batch, &fault, tag);
  const gp_task *task = &plan->tasks[tag.task];
  int64_t total = plan->first[plan->device_count];
  int64_t micro = (int64_t)step * plan->step_micros + task->micro % plan->step_micros;
  /* kernels have gone on with wrong values, and in a stream so have updates */
  gp_run_spoil(run, micro / gp_run_group(plan));
  gp_run_fail(run, (int64_t)step * total + task->order, status, gp_error_text());
}

/* Rows that a task makes for the script, and where those of its micro-batch lie in the buffers. */
typedef struct result {
  const gp_rows *rows;
  size_t offset;
} result;

static void add_results(const gp_plan *plan, const gp_rows *rows, const size_t *offsets,
                        int64_t own, result list[], int *count) {
  for (int k = 0; k < GP_MAX_BATCH_TENSORS; k++)
    if (rows[k].tensor)
      list[(*count)++] = (result){&rows[k], offsets[k] + micro_at(plan, &rows[k], own)};
}

/* List what a task makes for the script: outputs in the last stage, gradients of inputs in the
 * first. Returns how many. */
static int results_of(const gp_worker *worker, const gp_plan *plan, const gp_minibatch *batch,
                      const gp_task *task, int64_t own, result list[GP_MAX_BATCH_TENSORS]) {
  const gp_staging *layout = layout_of(worker, plan);
  int count = 0;
  if (task->op == GP_ACT_F && task->stage == plan->stage_count - 1)
    add_results(plan, batch->outputs, layout->output, own, list, &count);
  if ((task->op == GP_ACT_B || task->op == GP_ACT_I) && task->stage == 0)
    add_results(plan, batch->input_grads, layout->input_grad, own, list, &count);
  return count;
}

/* Copy what one task left from the host's buffer to where the script looks. */
static void take_results(const gp_worker *worker, const gp_run *run, const gp_task *task,
                         int64_t micro) {
  const gp_plan *plan = run->plan;
  const gp_staging *layout = layout_of(worker, plan);
  const gp_minibatch *batch = gp_run_minibatch(run, micro);
  char *here = place_of(worker, plan, micro).here;
  int64_t own = micro % plan->step_micros;
  bool last = task->op == GP_ACT_F && task->stage == plan->stage_count - 1;
  if (last) memcpy(&batch->results[own], (double *)(here + layout->losses) + own, sizeof(double));
  if (task->op == GP_ACT_C)
    *gp_minibatch_count(plan, batch, own, task->copy) =
        counts_at(here, layout, plan, task->copy)[own];
  result list[GP_MAX_BATCH_TENSORS];
  const int count = results_of(worker, plan, batch, task, own, list);
  for (int k = 0; k < count; k++) {
    const gp_rows *rows = list[k].rows;
    memcpy(rows->data + (size_t)batch->rows[own] * rows->row_bytes, here + list[k].offset,
           (size_t)plan->shapes[task->shape].rows * rows->row_bytes);
  }
}

/* The first mini-batch that range `step` has tasks of; `step` is the last one. */
static uint32_t oldest(const gp_worker *worker, const gp_run *run, uint32_t step) {
  uint32_t lag = (uint32_t)run->plan->ranges.lag[worker->device];
  return step > lag ? step - lag : 0;
}

/* Is a mini-batch given? The script may be giving more meanwhile, so a range goes by its limit,
 * which stays the same. */
static bool is_given(const gp_plan *plan, uint32_t step, int64_t limit) {
  return (int64_t)step * plan->step_micros < limit;
}

/* Send back the rows that a task made for the script, as soon as it has run and while others
 * run. */
static gp_status send_results(gp_worker *worker, const gp_run *run, const gp_task *task,
                              int64_t micro) {
  const gp_plan *plan = run->plan;
  const gp_lane *lane = &worker->lane;
  const gp_minibatch *batch = gp_run_minibatch(run, micro);
  const int64_t own = micro % plan->step_micros;
  result list[GP_MAX_BATCH_TENSORS];
  const int count = results_of(worker, plan, batch, task, own, list);
  if (!count) return GP_OK;
  place at = place_of(worker, plan, micro);
  gp_lane_event *computed = staged_of(worker)->computed[own];
  GP_TRY(lane->streams->record(lane, GP_STREAM_COMPUTE, computed));
  GP_TRY(lane->streams->wait(lane, GP_STREAM_SEND, computed));
  for (int k = 0; k < count; k++) {
    const size_t offset = list[k].offset;
    GP_TRY(lane->memory->copy(lane, GP_STREAM_SEND, at.here + offset, at.there + offset,
                              (size_t)plan->shapes[task->shape].rows * list[k].rows->row_bytes));
  }
  return GP_OK;
}

/* Send back faults, losses and counts of what has run, for the mini-batches before micro-batch
 * `limit`. */
static gp_status send_back(gp_worker *worker, const gp_run *run, uint32_t step, int64_t limit) {
  const gp_plan *plan = run->plan;
  const gp_lane *lane = &worker->lane;
  const gp_staging *layout = layout_of(worker, plan);
  for (uint32_t t = oldest(worker, run, step); t <= step && is_given(plan, t, limit); t++) {
    place at = place_of(worker, plan, (int64_t)t * plan->step_micros);
    GP_TRY(lane->memory->copy(lane, GP_STREAM_COMPUTE, at.here + layout->fault,
                              at.there + layout->fault, layout->results - layout->fault));
  }
  return GP_OK;
}

/* Bring faults, losses and counts here, and wait until all outputs are here too. */
static gp_status fetch(gp_worker *worker, const gp_run *run, const gp_task_span *span) {
  const gp_lane *lane = &worker->lane;
  GP_TRY(send_back(worker, run, span->step, span->limit));
  GP_TRY(gp_lane_sync(lane));
  return !run->plan->shapes[0].output_count ? GP_OK : lane->streams->sync(lane, GP_STREAM_SEND);
}

static gp_status collect(gp_worker *worker, gp_run *run, const gp_task_span *span) {
  const gp_plan *plan = run->plan;
  /* if the run failed before its first task, the buffers may hold nothing, not even an empty fault
   * word */
  if (atomic_load(&run->failed_order) < 0) return gp_lane_sync(&worker->lane);
  GP_TRY(fetch(worker, run, span));
  const uint32_t last = span->step;
  for (uint32_t t = oldest(worker, run, last); t <= last && is_given(plan, t, span->limit); t++) {
    place at = place_of(worker, plan, (int64_t)t * plan->step_micros);
    note_fault(worker, run, t, &at);
  }
  for (int32_t t = span->first; t < span->end; t++) {
    int64_t micro = plan->tasks[t].micro + span->repeats * plan->step_micros;
    if (micro < span->limit) take_results(worker, run, &plan->tasks[t], micro);
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
  GP_TRY(send_results(worker, run, r->task, r->micro));
  /* the rows of the next micro-batch travel while the device computes this one */
  return send_until(worker, run, staged_of(worker)->sent);
}

static gp_status end(gp_worker *worker, gp_run *run, const gp_task_span *span) {
  const gp_plan *plan = run->plan;
  gp_status status = send_until(worker, run, INT64_MAX);
  if (!status) status = collect(worker, run, span);
  if (!status) status = gp_marks_settle(worker, span->first_event);
  for (int32_t t = span->first; t < span->end; t++)
    if (plan->tasks[t].micro + span->repeats * plan->step_micros < span->limit)
      gp_run_note_loss(run, &plan->tasks[t]);
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
                                    .collect = collect,
                                    .end = end};
