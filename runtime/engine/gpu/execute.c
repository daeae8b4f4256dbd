/* engine/gpu/execute.c - one program on a GPU: launched op by op, or replayed as one graph.
 *
 * The first run of a task launches its ops; the second is captured, the following ones replay the graph: by
 * then libraries have loaded what they need. Tasks of streams, whose addresses change from mini-batch to
 * mini-batch, are always launched, and so is everything while results are looked at or faults are injected.
 */
#include "base/tensor.h"
#include "engine/gpu/wiring.h"

typedef struct launch {
  gp_worker *worker;
  const gp_binding *binding;
  gp_program *program;
  int32_t task; /* of its device */
  const gp_step_block *step;
  gp_gpu_fault *fault;
} launch;

static uint32_t tag_of(const launch *l, int32_t instr, bool finite) {
  return (uint32_t)l->task << l->binding->wiring->task_bits | (uint32_t)instr << 1 |
         (uint32_t)finite;
}

/* As on the CPU, everything that was made is looked at, the first instruction first. */
static gp_status check_outputs(const launch *l, int32_t n) {
  const gp_lane *lane = &l->worker->lane;
  const gp_instr *instr = &l->program->instrs[n];
  for (int k = 0; k < instr->call.n_out; k++)
    if (gp_dtype_is_float(instr->call.out[k].meta->dtype))
      GP_TRY(lane->api->check_finite(lane->gpu, &instr->call.out[k], l->fault, tag_of(l, n, true)));
  return GP_OK;
}

/* GPIPE_FAULT=action=nan. */
static gp_status spoil_outputs(const launch *l, int32_t n) {
  const gp_instr *instr = &l->program->instrs[n];
  for (int k = 0; k < instr->call.n_out; k++) {
    const gp_arg *out = &instr->call.out[k];
    if (gp_execute_leaves(l->worker, instr->out[k].base) && gp_dtype_is_float(out->meta->dtype))
      GP_TRY(gp_lane_fill(&l->worker->lane, out->data, 0xff, gp_meta_bytes(out->meta)));
  }
  return GP_OK;
}

/* Addresses are filled in here: a graph has those that it was captured with. */
static gp_status launch_all(const launch *l) {
  const gp_lane *lane = &l->worker->lane;
  gp_execute_bind(l->worker, l->program, l->step);
  for (int32_t n = 0; n < l->program->instr_count; n++) {
    const gp_instr *instr = &l->program->instrs[n];
    gp_gpu_call call = {.op = instr->call,
                        .scratch = l->binding->devices[l->worker->device].scratch,
                        .fault = l->fault,
                        .tag = tag_of(l, n, false)};
    gp_status status = lane->api->run(lane->gpu, instr->op, &call);
    if (status) return gp_execute_name_failure(l->program, instr, status);
    if (l->worker->spoil) GP_TRY(spoil_outputs(l, n));
    if (l->worker->pipeline->finite) GP_TRY(check_outputs(l, n));
  }
  return GP_OK;
}

/* What was captured did not run: it is launched right after. A device that cannot capture says so once. */
static gp_status capture(const launch *l, gp_replay *replay) {
  const gp_lane *lane = &l->worker->lane;
  replay->tried = true;
  GP_TRY(lane->api->capture_begin(lane->gpu));
  gp_status status = launch_all(l), ended = lane->api->capture_end(lane->gpu, &replay->graph);
  return status ? status : ended;
}

static gp_status replay_or_launch(const launch *l, gp_replay *replay) {
  const gp_lane *lane = &l->worker->lane;
  if (!replay || l->worker->spoil || l->worker->pipeline->faults.count) return launch_all(l);
  if (!replay->runs++) return launch_all(l);
  if (!replay->graph && !replay->tried) GP_TRY(capture(l, replay));
  return replay->graph ? lane->api->launch(lane->gpu, replay->graph) : launch_all(l);
}

gp_status gp_execute_gpu(gp_worker *worker, const gp_task *task, int64_t micro) {
  const gp_binding *binding = worker->pipeline->run.binding;
  const gp_plan *plan = binding->plan;
  int32_t index = (int32_t)(task - plan->tasks) - plan->first[worker->device];
  gp_replay *replays = binding->wiring->devices[worker->device].replays;
  launch l = {.worker = worker,
              .binding = binding,
              .program = task->program,
              .task = index,
              .step = gp_desk_block(worker, plan, micro, task->copy),
              .fault = gp_desk_fault(worker, plan, micro)};
  return replay_or_launch(&l, replays ? &replays[index] : NULL);
}
