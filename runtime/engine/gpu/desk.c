/* engine/gpu/desk.c - mini-batches to a GPU, losses, counts, outputs and faults back.
 *
 * The desk of a device (plan.h) exists twice, on the GPU and in pinned memory: what goes there lies in
 * front of the fault word, what comes back behind it. A micro-batch's rows are brought to pinned memory and
 * sent on the receive stream while the one before is computed; outputs leave on the send stream.
 */
#include <string.h>

#include "base/tensor.h"
#include "engine/gpu/wiring.h"
#include "ops/ids.h"

/* One mini-batch's place on both desks. */
typedef struct place {
  char *here, *there;
} place;

/* Where things lie on the desk of a worker's device. */
static const gp_desk *desk_of(const gp_worker *worker, const gp_plan *plan) {
  return &plan->devices[worker->device].desk;
}

/* micro: through the stream. */
static place place_of(const gp_worker *worker, const gp_plan *plan, int64_t micro) {
  const gp_desk *desk = desk_of(worker, plan);
  const gp_run *run = &worker->pipeline->run;
  const gp_binding *binding = run->binding;
  size_t slot = (size_t)(micro / plan->step_micros % run->feed_room % gp_plan_feed_room(plan));
  return (place){binding->wiring->devices[worker->device].pinned + slot * desk->bytes,
                 binding->devices[worker->device].desk + slot * desk->bytes};
}

/* Bytes of so many rows of what was given for the whole mini-batch. */
static size_t rows_bytes(const gp_plan *plan, const gp_tensor *tensor, int64_t rows) {
  size_t all = (size_t)gp_plan_first_row(plan, plan->step_micros);
  return gp_meta_bytes(gp_tensor_meta(tensor)) / all * (size_t)rows;
}

/* Where the rows of a micro-batch begin, behind those of the micro-batches before. */
static size_t micro_at(const gp_plan *plan, const gp_tensor *tensor, int64_t own) {
  return (size_t)own * gp_plan_padded(rows_bytes(plan, tensor, plan->shapes[0].rows));
}

/* ---- there --------------------------------------------------------------------------------- */

static gp_status send(gp_worker *worker, const place *at, size_t offset, size_t bytes) {
  const gp_lane *lane = &worker->lane;
  if (!bytes) return GP_OK;
  return lane->api->copy(lane->gpu, GP_STREAM_RECEIVE, at->there + offset, at->here + offset,
                         bytes);
}

/* The rows of one micro-batch of one tensor. */
static gp_status send_rows(gp_worker *worker, const gp_plan *plan, const place *at, size_t offset,
                           const gp_tensor *tensor, int32_t micro) {
  size_t first = rows_bytes(plan, tensor, gp_plan_first_row(plan, micro));
  size_t end = rows_bytes(plan, tensor, gp_plan_first_row(plan, micro + 1));
  offset += micro_at(plan, tensor, micro);
  memcpy(at->here + offset, (char *)gp_tensor_data(tensor) + first, end - first);
  return send(worker, at, offset, end - first);
}

/* All rows of a micro-batch; micro: through the stream. */
static gp_status send_micro(gp_worker *worker, const gp_run *run, int64_t number) {
  const gp_plan *plan = run->plan;
  const gp_feed *feed = &run->feeds[number / plan->step_micros % run->feed_room];
  const gp_desk *desk = desk_of(worker, plan);
  const gp_lane *lane = &worker->lane;
  const int32_t micro = (int32_t)(number % plan->step_micros);
  const place there = place_of(worker, plan, number), *at = &there;
  for (int k = 0; k < feed->input_count; k++)
    if (desk->inputs >> k & 1)
      GP_TRY(send_rows(worker, plan, at, desk->input[k], feed->inputs[k], micro));
  for (int k = 0; k < feed->target_count; k++)
    if (desk->targets >> k & 1)
      GP_TRY(send_rows(worker, plan, at, desk->target[k], feed->targets[k], micro));
  if (feed->out_grad) GP_TRY(send_rows(worker, plan, at, desk->out_grad, feed->out_grad, micro));
  return lane->api->record(lane->gpu, GP_STREAM_RECEIVE,
                           run->binding->wiring->devices[worker->device].arrived[micro]);
}

static gp_wired_device *wired(const gp_worker *worker, const gp_run *run) {
  return &run->binding->wiring->devices[worker->device];
}

/* Up to this micro-batch, as far as the mini-batch goes. */
static gp_status send_until(gp_worker *worker, const gp_run *run, int64_t micro) {
  gp_wired_device *device = wired(worker, run);
  while (device->sent < device->end && device->sent <= micro)
    GP_TRY(send_micro(worker, run, device->sent++));
  return GP_OK;
}

/* Blocks and the empty fault word; micro-batches follow one by one, each with its event. */
gp_status gp_desk_upload(gp_worker *worker, const gp_run *run, uint32_t step) {
  const gp_plan *plan = run->plan;
  const gp_desk *desk = desk_of(worker, plan);
  const gp_feed *feed = &run->feeds[step % (uint32_t)run->feed_room];
  int64_t first = (int64_t)step * plan->step_micros;
  place at = place_of(worker, plan, first);
  size_t blocks = (size_t)plan->step_micros * (size_t)plan->copy_count * sizeof(gp_step_block);
  gp_gpu_fault none = {.key = GP_GPU_NO_FAULT};
  memcpy(at.here + desk->blocks, feed->blocks, blocks);
  memcpy(at.here + desk->fault, &none, sizeof none);
  GP_TRY(send(worker, &at, desk->blocks, blocks));
  GP_TRY(send(worker, &at, desk->fault, sizeof none));
  wired(worker, run)->sent = first;
  wired(worker, run)->end = first + plan->step_micros;
  return gp_desk_await(worker, run, first);
}

gp_status gp_desk_prefetch(gp_worker *worker, const gp_run *run) {
  return send_until(worker, run, wired(worker, run)->sent);
}

gp_status gp_desk_flush(gp_worker *worker, const gp_run *run) {
  return send_until(worker, run, INT64_MAX);
}

/* The compute stream waits; the host does not. */
gp_status gp_desk_await(gp_worker *worker, const gp_run *run, int64_t micro) {
  const gp_lane *lane = &worker->lane;
  GP_TRY(send_until(worker, run, micro));
  return lane->api->wait(lane->gpu, GP_STREAM_COMPUTE,
                         wired(worker, run)->arrived[micro % run->plan->step_micros]);
}

const gp_step_block *gp_desk_block(const gp_worker *worker, const gp_plan *plan, int64_t micro,
                                   int32_t copy) {
  place at = place_of(worker, plan, micro);
  const gp_step_block *blocks = (gp_step_block *)(at.there + desk_of(worker, plan)->blocks);
  return &blocks[copy * plan->step_micros + micro % plan->step_micros];
}

gp_gpu_fault *gp_desk_fault(const gp_worker *worker, const gp_plan *plan, int64_t micro) {
  return (gp_gpu_fault *)(place_of(worker, plan, micro).there + desk_of(worker, plan)->fault);
}

static int64_t *counts_at(char *desk_memory, const gp_desk *desk, const gp_plan *plan,
                          int32_t copy) {
  return (int64_t *)(desk_memory + desk->counts) + copy * plan->step_micros;
}

/* What the task reads of the mini-batch and leaves of it. */
void gp_desk_bind(gp_worker *worker, const gp_feed *feed, const gp_task *task, int64_t micro) {
  const gp_plan *plan = worker->pipeline->run.plan;
  const gp_desk *desk = desk_of(worker, plan);
  char *there = place_of(worker, plan, micro).there;
  int64_t own = micro % plan->step_micros;
  void **frame = worker->frame;
  frame[GP_BASE_EXPORT + GP_EXPORT_LOSS] = (double *)(there + desk->losses) + own;
  frame[GP_BASE_EXPORT + GP_EXPORT_COUNT] = counts_at(there, desk, plan, task->copy) + own;
  if (feed->output)
    frame[GP_BASE_EXPORT + GP_EXPORT_OUTPUT] =
        there + desk->output + micro_at(plan, feed->output, own);
  if (feed->out_grad)
    frame[GP_BASE_OUT_GRAD] = there + desk->out_grad + micro_at(plan, feed->out_grad, own);
  for (int k = 0; k < feed->input_count; k++)
    frame[GP_BASE_INPUT + k] = there + desk->input[k] + micro_at(plan, feed->inputs[k], own);
  for (int k = 0; k < feed->target_count; k++)
    frame[GP_BASE_TARGET + k] = there + desk->target[k] + micro_at(plan, feed->targets[k], own);
}

/* After the last count of what step was given: each mini-batch of the schedule by itself. */
gp_status gp_desk_settle(gp_worker *worker, const gp_plan *plan, int64_t micro, int32_t copy) {
  const gp_lane *lane = &worker->lane;
  int32_t size = gp_run_group(plan);
  int64_t begin = micro - micro % plan->step_micros;
  char *there = place_of(worker, plan, micro).there;
  int64_t *counts = counts_at(there, desk_of(worker, plan), plan, copy);
  for (int32_t first = 0; first < plan->step_micros; first += size) {
    gp_step_block *blocks = (gp_step_block *)gp_desk_block(worker, plan, begin + first, copy);
    GP_TRY(lane->api->settle(lane->gpu, counts + first, blocks, size));
  }
  return GP_OK;
}

/* ---- back ---------------------------------------------------------------------------------- */

/* Where a fault is: the text says what the CPU would have said. */
static gp_status fault_text(const gp_plan *plan, const gp_feed *feed, const gp_gpu_fault *fault,
                            gp_tag tag) {
  const gp_task *task = &plan->tasks[tag.task];
  const gp_program *program = task->program;
  const gp_instr *instr = &program->instrs[tag.instr];
  const char *label = program->graph->labels[program->graph->nodes[instr->node].label];
  gp_call call = instr->call;
  call.step = gp_feed_block(plan, feed, task->micro % plan->step_micros, task->copy);
  if (tag.finite) return gp_execute_not_finite(program, instr);
  gp_id_fault(instr->op, &call, (int64_t)(fault->key & UINT32_MAX), fault->value);
  return gp_fail_prefix(GP_ERANGE, label);
}

/* The kernels went on with it, and without a barrier so did updates. */
static void note_fault(const gp_worker *worker, gp_run *run, uint32_t step, const place *at) {
  const gp_plan *plan = run->plan;
  const gp_feed *feed = &run->feeds[step % (uint32_t)run->feed_room];
  gp_gpu_fault fault;
  memcpy(&fault, at->here + desk_of(worker, plan)->fault, sizeof fault);
  if (fault.key == GP_GPU_NO_FAULT) return;
  gp_tag tag = gp_tag_read(run->binding, worker->device, (uint32_t)(fault.key >> 32));
  gp_status status = fault_text(plan, feed, &fault, tag);
  const gp_task *task = &plan->tasks[tag.task];
  int64_t total = plan->first[plan->device_count];
  int64_t micro = (int64_t)step * plan->step_micros + task->micro % plan->step_micros;
  gp_run_spoil(run, micro / gp_run_group(plan));
  gp_run_fail(run, (int64_t)step * total + task->order, status, gp_error_text());
}

/* What one task left. */
static void take_results(const gp_worker *worker, const gp_run *run, const gp_task *task,
                         int64_t micro) {
  const gp_plan *plan = run->plan;
  const gp_desk *desk = desk_of(worker, plan);
  const gp_feed *feed = &run->feeds[micro / plan->step_micros % run->feed_room];
  char *here = place_of(worker, plan, micro).here;
  int64_t own = micro % plan->step_micros;
  bool last = task->op == GP_ACT_F && task->stage == plan->stage_count - 1;
  if (last) memcpy(&feed->results[own].loss, (double *)(here + desk->losses) + own, sizeof(double));
  if (task->op == GP_ACT_C)
    feed->results[own].count[task->copy] = counts_at(here, desk, plan, task->copy)[own];
  if (!last || !feed->output) return;
  size_t first = rows_bytes(plan, feed->output, feed->rows[own]);
  size_t bytes = rows_bytes(plan, feed->output, plan->shapes[task->shape].rows);
  memcpy((char *)gp_tensor_data(feed->output) + first,
         here + desk->output + micro_at(plan, feed->output, own), bytes);
}

/* Mini-batches that this range has tasks of. */
static uint32_t oldest(const gp_worker *worker, const gp_run *run, uint32_t step) {
  uint32_t lag = (uint32_t)run->plan->ranges.lag[worker->device];
  return step > lag ? step - lag : 0;
}

/* The rows of a task's output, as soon as it has run and while others run. */
gp_status gp_desk_return(gp_worker *worker, const gp_run *run, const gp_task *task, int64_t micro) {
  const gp_plan *plan = run->plan;
  const gp_lane *lane = &worker->lane;
  const gp_feed *feed = &run->feeds[micro / plan->step_micros % run->feed_room];
  if (task->op != GP_ACT_F || task->stage != plan->stage_count - 1 || !feed->output) return GP_OK;
  place at = place_of(worker, plan, micro);
  int64_t own = micro % plan->step_micros;
  size_t offset = desk_of(worker, plan)->output + micro_at(plan, feed->output, own);
  gp_gpu_event *computed = wired(worker, run)->computed[own];
  GP_TRY(lane->api->record(lane->gpu, GP_STREAM_COMPUTE, computed));
  GP_TRY(lane->api->wait(lane->gpu, GP_STREAM_SEND, computed));
  return lane->api->copy(lane->gpu, GP_STREAM_SEND, at.here + offset, at.there + offset,
                         rows_bytes(plan, feed->output, plan->shapes[task->shape].rows));
}

/* Faults, losses and counts of what has run; then all outputs are here too. */
static gp_status fetch(gp_worker *worker, const gp_run *run, uint32_t step) {
  const gp_plan *plan = run->plan;
  const gp_lane *lane = &worker->lane;
  const gp_desk *desk = desk_of(worker, plan);
  for (uint32_t t = oldest(worker, run, step); t <= step && t < run->fed; t++) {
    place at = place_of(worker, plan, (int64_t)t * plan->step_micros);
    GP_TRY(lane->api->copy(lane->gpu, GP_STREAM_COMPUTE, at.here + desk->fault,
                           at.there + desk->fault, desk->output - desk->fault));
  }
  GP_TRY(gp_lane_sync(lane));
  return plan->shapes[0].output == GP_NONE ? GP_OK : lane->api->sync(lane->gpu, GP_STREAM_SEND);
}

/* Of a run that failed before every task nothing may be on the desk, not even the empty fault word. */
static gp_status wait_for_all(const gp_lane *lane) {
  GP_TRY(lane->api->sync(lane->gpu, GP_STREAM_RECEIVE));
  return gp_lane_sync(lane);
}

gp_status gp_desk_collect(gp_worker *worker, gp_run *run, const gp_span_of_tasks *span) {
  const gp_plan *plan = run->plan;
  if (atomic_load(&run->failed_order) < 0) return wait_for_all(&worker->lane);
  GP_TRY(fetch(worker, run, span->step));
  for (uint32_t t = oldest(worker, run, span->step); t <= span->step && t < run->fed; t++) {
    place at = place_of(worker, plan, (int64_t)t * plan->step_micros);
    note_fault(worker, run, t, &at);
  }
  for (int32_t t = span->first; t < span->end; t++) {
    int64_t micro = plan->tasks[t].micro + span->repeats * plan->step_micros;
    if (micro < span->limit) take_results(worker, run, &plan->tasks[t], micro);
  }
  return GP_OK;
}
