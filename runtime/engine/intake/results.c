/* engine/intake/results.c - what a device with memory of its own leaves for the script: faults,
 * losses, counts, outputs and gradients of inputs come back through the staging buffer. */
#include <string.h>

#include "base/tensor.h"
#include "engine/intake/staged.h"
#include "engine/watch/tags.h"
#include "ops/ids.h"

/* ---- faults ---------------------------------------------------------------------------------- */

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
static void note_fault(const gp_worker *worker, gp_run *run, uint32_t step,
                       const gp_staged_place *at) {
  const gp_plan *plan = run->plan;
  const gp_minibatch *batch = gp_run_minibatch_at(run, step);
  gp_lane_fault fault;
  memcpy(&fault, at->here + gp_staged_layout(worker, plan)->fault, sizeof fault);
  if (fault.key == GP_LANE_NO_FAULT) return;
  gp_tag tag = gp_tag_read(run->binding, worker->device, (uint32_t)(fault.key >> 32));
  gp_status status = fault_text(plan, batch, &fault, tag);
  const gp_task *task = &plan->tasks[tag.task];
  int64_t total = plan->order_end;
  int64_t micro = (int64_t)step * plan->step_micros + task->micro % plan->step_micros;
  /* kernels have gone on with wrong values, and in a stream so have updates */
  gp_run_spoil(run, micro / gp_run_group(plan));
  gp_run_fail(run, (int64_t)step * total + task->order, status, gp_error_text());
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Rows that a task makes for the script, and where those of its micro-batch lie in the buffers. */
typedef struct result {
  const gp_rows *rows;
  size_t offset;
} result;

static void add_results(const gp_plan *plan, const gp_rows *rows, const size_t *offsets,
                        int64_t own, result list[], int *count) {
  for (int k = 0; k < GP_MAX_BATCH_TENSORS; k++)
    if (rows[k].tensor)
      list[(*count)++] = (result){&rows[k], offsets[k] + gp_staged_micro_at(plan, &rows[k], own)};
}

/* List what a task makes for the script: outputs in the last stage, gradients of inputs in the
 * first. Returns how many. */
static int results_of(const gp_worker *worker, const gp_plan *plan, const gp_minibatch *batch,
                      const gp_task *task, int64_t own, result list[GP_MAX_BATCH_TENSORS]) {
  const gp_staging *layout = gp_staged_layout(worker, plan);
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
  const gp_staging *layout = gp_staged_layout(worker, plan);
  const gp_minibatch *batch = gp_run_minibatch(run, micro);
  char *here = gp_staged_place_of(worker, plan, micro).here;
  int64_t own = micro % plan->step_micros;
  bool last = task->op == GP_ACT_F && task->stage == plan->stage_count - 1;
  if (last) memcpy(&batch->results[own], (double *)(here + layout->losses) + own, sizeof(double));
  if (task->op == GP_ACT_C)
    *gp_minibatch_count(plan, batch, own, task->copy) =
        gp_staged_counts(here, layout, plan, task->copy)[own];
  result list[GP_MAX_BATCH_TENSORS];
  const int count = results_of(worker, plan, batch, task, own, list);
  for (int k = 0; k < count; k++) {
    const gp_rows *rows = list[k].rows;
    memcpy(rows->data + (size_t)batch->rows[own] * rows->row_bytes, here + list[k].offset,
           (size_t)plan->shapes[task->shape].rows * rows->row_bytes);
  }
}

/* ---- a range --------------------------------------------------------------------------------- */

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

gp_status gp_staged_send_results(gp_worker *worker, const gp_run *run, const gp_task *task,
                                 int64_t micro) {
  const gp_plan *plan = run->plan;
  const gp_lane *lane = &worker->lane;
  const gp_minibatch *batch = gp_run_minibatch(run, micro);
  const int64_t own = micro % plan->step_micros;
  result list[GP_MAX_BATCH_TENSORS];
  const int count = results_of(worker, plan, batch, task, own, list);
  if (!count) return GP_OK;
  gp_staged_place at = gp_staged_place_of(worker, plan, micro);
  gp_lane_event *computed = gp_staged_of(worker)->computed[own];
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
  const gp_staging *layout = gp_staged_layout(worker, plan);
  for (uint32_t t = oldest(worker, run, step); t <= step && is_given(plan, t, limit); t++) {
    gp_staged_place at = gp_staged_place_of(worker, plan, (int64_t)t * plan->step_micros);
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

gp_status gp_staged_collect(gp_worker *worker, gp_run *run, const gp_task_span *span) {
  const gp_plan *plan = run->plan;
  /* if the run failed before its first task, the buffers may hold nothing, not even an empty fault
   * word */
  if (atomic_load(&run->failed_order) < 0) return gp_lane_sync(&worker->lane);
  GP_TRY(fetch(worker, run, span));
  const uint32_t last = span->step;
  for (uint32_t t = oldest(worker, run, last); t <= last && is_given(plan, t, span->limit); t++) {
    gp_staged_place at = gp_staged_place_of(worker, plan, (int64_t)t * plan->step_micros);
    note_fault(worker, run, t, &at);
  }
  for (int32_t t = span->first; t < span->end; t++) {
    int64_t micro = plan->tasks[t].micro + span->repeats * plan->step_micros;
    if (micro < span->limit) take_results(worker, run, &plan->tasks[t], micro);
  }
  return GP_OK;
}
