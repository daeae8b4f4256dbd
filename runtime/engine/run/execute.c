/* engine/run/execute.c - runs one program: cut into pieces for the device's threads, or op by op
 * for its queue.
 *
 * The lane decides between the two (device/lane.h). Failures name the layer that made the op.
 */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/tensor.h"
#include "engine/profile/recorder.h"
#include "engine/run/edge.h"
#include "engine/run/execute.h"
#include "engine/run/gather.h"
#include "engine/state/pipeline.h"
#include "engine/update/sums.h"
#include "engine/watch/tags.h"
#include "gpipe/process.h"
#include "ops/cut.h"
#include "ops/half/half.h"
#include "plan/edge/step_edges.h"
#include "schedule/schedule.h"

enum { COLUMNS_AT_ONCE = 4096 }; /* their sums, 16 KiB of f32, stay in the first cache */

/* One task's program as it runs. */
typedef struct execution {
  gp_worker *worker;
  const gp_task_run *run;
  const gp_binding *binding;
  const gp_program *program;
  gp_call *calls;            /* its instructions with their addresses */
  const char *states;        /* states of its CPU kernels, or NULL */
  const gp_group *group;     /* the group that runs now */
  int32_t task;              /* number of the task on its device */
  bool assigns;              /* it writes gradients that others add to */
  bool early;                /* some of its gradients leave while it runs */
  const gp_step_block *step; /* an address of the device, like fault */
  gp_lane_fault *fault;      /* NULL: kernels report errors at once */
} execution;

static void *address(const gp_worker *worker, gp_place place) {
  /* integer arithmetic, because a base may be NULL and C allows no offset to NULL */
  return (void *)((uintptr_t)worker->frame[place.base] + place.offset);
}

/* Make an instruction's call for this run: the plan says what the instruction does, but not at
 * which addresses. */
static void bind_call(const execution *x, const gp_instr *instr, gp_call *call) {
  call->attr = instr->call.attr;
  call->step = x->step;
  /* one program serves micro-batches that write gradients and those that add to them */
  call->accumulate = instr->call.accumulate && !(x->assigns && instr->opens);
  call->fresh = x->assigns && instr->opens;
  call->state = instr->state.bytes && x->states ? x->states + instr->state.offset : NULL;
  call->n_in = instr->call.n_in;
  call->n_out = instr->call.n_out;
  for (int i = 0; i < call->n_in; i++)
    call->in[i] = (gp_arg){address(x->worker, instr->in[i]), instr->call.in[i].meta};
  for (int k = 0; k < call->n_out; k++)
    call->out[k] = (gp_arg){address(x->worker, instr->out[k]), instr->call.out[k].meta};
}

static const gp_task *task_of(const execution *x) {
  const gp_plan *plan = x->binding->plan;
  return &plan->tasks[plan->first[x->worker->device] + x->task];
}

static void bind_addresses(const execution *x) {
  for (int32_t n = 0; n < x->program->instr_count; n++)
    bind_call(x, &x->program->instrs[n], &x->calls[n]);
}

/* Has Ctrl-C ended the run? A group may run for long, so threads look between its pieces and
 * between the instructions of a chain. Once stages are being updated, Ctrl-C does not end the
 * run. */
static bool is_interrupted(const void *context) {
  const execution *x = context;
  return gp_interrupt_pending() && gp_run_interrupt(&x->worker->pipeline->run);
}

static gp_status look_for_interrupt(const execution *x) {
  return is_interrupted(x) ? gp_fail(GP_EINTERRUPT, "interrupted") : GP_OK;
}

/* Run units [first, last) of an instruction, or fewer at its end, with the member's own scratch. */
static gp_status run_units(const execution *x, int32_t n, int64_t first, int64_t last, int member) {
  const gp_instr *instr = &x->program->instrs[n];
  char *scratch = x->worker->scratch;
  gp_span span = {.first = first,
                  .last = last < instr->cut.units ? last : instr->cut.units,
                  .scratch = scratch ? scratch + (size_t)member * x->worker->scratch_bytes : NULL,
                  .stop = is_interrupted,
                  .context = x};
  gp_status status = gp_half_run(gp_op_get(instr->op), &x->calls[n], span);
  return status && status != GP_EINTERRUPT ? gp_instr_name_failure(x->program, instr, status)
                                           : status;
}

static gp_status run_instr(const execution *x, int32_t n, int64_t piece, int member) {
  const int64_t grain = x->program->instrs[n].cut.grain;
  return run_units(x, n, piece * grain, (piece + 1) * grain, member);
}

/* Run one piece of a chain: a block of rows goes through every instruction. */
static gp_status run_chain(void *context, int64_t piece, int member) {
  const execution *x = context;
  for (int32_t n = x->group->first; n < x->group->first + x->group->count; n++) {
    GP_TRY(look_for_interrupt(x));
    GP_TRY(run_instr(x, n, piece, member));
  }
  return GP_OK;
}

/* Run one piece of a group of independent instructions: their pieces are numbered through. */
static gp_status run_beside(void *context, int64_t piece, int member) {
  const execution *x = context;
  GP_TRY(look_for_interrupt(x));
  int32_t n = x->group->first;
  for (; piece >= gp_instr_pieces(&x->program->instrs[n]); n++)
    piece -= gp_instr_pieces(&x->program->instrs[n]);
  return run_instr(x, n, piece, member);
}

/* ---- finite = true ------------------------------------------------------------------------- */

/* Are all elements of a bf16 or f16 value finite? In others all bits of the exponent are set. */
static bool halves_finite(const gp_arg *arg) {
  const unsigned exponent = arg->meta->dtype == GP_BF16 ? 0x7f80u : 0x7c00u;
  const uint16_t *bits = arg->data;
  for (int64_t i = 0; i < gp_meta_numel(arg->meta); i++)
    if ((bits[i] & exponent) == exponent) return false;
  return true;
}

/* Are all elements of a value finite? Integers always are. */
static bool all_finite(const gp_arg *arg) {
  if (gp_half_is(arg->meta->dtype)) return halves_finite(arg);
  int64_t n = gp_meta_numel(arg->meta);
  const float *f = arg->data;
  const double *d = arg->data;
  for (int64_t i = 0; arg->meta->dtype == GP_F32 && i < n; i++)
    if (!isfinite(f[i])) return false;
  for (int64_t i = 0; arg->meta->dtype == GP_F64 && i < n; i++)
    if (!isfinite(d[i])) return false;
  return true;
}

/* Check what a group made, in the order of the instructions, so that the failure names the first
 * one that made such a value and not one that it spread to. This reads everything once more, but
 * only with finite = true. */
static gp_status check_finite(const execution *x) {
  for (int32_t n = x->group->first; n < x->group->first + x->group->count; n++) {
    const gp_call *call = &x->calls[n];
    for (int k = 0; k < call->n_out; k++)
      if (!all_finite(&call->out[k]))
        return gp_instr_not_finite(x->program, &x->program->instrs[n]);
  }
  return GP_OK;
}

/* ---- GPIPE_FAULT=action=nan ------------------------------------------------------------------ */

/* Overwrite a value with bits that are all 1, which are NaN in every float dtype. */
static void spoil(const gp_arg *arg) {
  if (gp_dtype_is_float(arg->meta->dtype)) memset(arg->data, 0xff, gp_meta_bytes(arg->meta));
}

/* Do other tasks or the script read what lies at a base? They read gradients, losses, outputs,
 * edges, and what R and I make. */
static bool leaves(const gp_worker *worker, int32_t base) {
  return (base >= GP_BASE_RECOMPUTED && base < GP_BASE_INPUT && base != GP_BASE_INVARIANT &&
          base != GP_BASE_CONSTANT_COPY && base != GP_BASE_PACKED && base != GP_BASE_HALF) ||
         base >= gp_base_of_edge(worker->pipeline->stage_count, 0);
}

/* Spoil the results of a group, before they are checked: the failure then names the layer. */
static void spoil_outputs(const execution *x) {
  for (int32_t n = x->group->first; n < x->group->first + x->group->count; n++) {
    const gp_instr *instr = &x->program->instrs[n];
    for (int k = 0; k < instr->call.n_out; k++)
      if (leaves(x->worker, instr->out[k].base)) spoil(&x->calls[n].out[k]);
  }
}

/* ---- early uses ------------------------------------------------------------------------------ */

/* Publish the buckets of gradients to which no instruction that is left adds (plan/edge/buckets.h),
 * once the partial sums are in them. */
static gp_status publish_early(const execution *x, int32_t done) {
  const gp_task *task = x->run->task;
  const gp_edge_use *use;
  while ((use = gp_edges_early(x->worker, task, done))) {
    GP_TRY(gp_sum_bucket(x->worker, task, gp_plan_step_edge(x->binding->plan, use->edge)));
    GP_TRY(gp_edges_publish_early(x->worker, x->run, use));
  }
  return GP_OK;
}

/* ---- groups -------------------------------------------------------------------------------- */

/* Run all units of one instruction on a single thread. */
static gp_status run_alone(void *context, int64_t index, int member) {
  const execution *x = context;
  const int32_t n = x->group->first + (int32_t)index;
  const gp_instr *instr = &x->program->instrs[n];
  const bool columns = gp_op_get(instr->op)->cpu.cut == gp_cut_columns;
  /* many columns at a time read long runs of each row, not a few cache lines of each page; the sum
   * of a column is the same however columns are shared out */
  const int64_t step = columns ? COLUMNS_AT_ONCE : instr->cut.grain;
  for (int64_t first = 0; first < instr->cut.units; first += step) {
    GP_TRY(look_for_interrupt(x));
    GP_TRY(run_units(x, n, first, first + step, member));
  }
  return GP_OK;
}

/* Run an instruction in phases; the area that its threads share lies behind the program's
 * temporaries. */
static gp_status run_phases(const execution *x, int32_t n) {
  const gp_instr *instr = &x->program->instrs[n];
  const gp_worker *worker = x->worker;
  size_t offset;
  GP_TRY(look_for_interrupt(x));
  GP_TRY(gp_size_align(x->program->temp_bytes, GP_SHARED_ALIGNMENT, &offset));
  const gp_place shared = {.base = GP_BASE_TEMP, .offset = offset};
  const gp_half_room room = {address(worker, shared), worker->scratch, worker->scratch_bytes};
  gp_status status = gp_half_run_phases(gp_op_get(instr->op), &x->calls[n], &worker->lane, room);
  return status ? gp_instr_name_failure(x->program, instr, status) : GP_OK;
}

static gp_status run_group(execution *x) {
  const gp_lane *lane = &x->worker->lane;
  const gp_op first = x->program->instrs[x->group->first].op;
  if (x->program->instrs[x->group->first].gather) {
    const int32_t n = x->group->first;
    return gp_gather_run(x->worker, task_of(x), &x->program->instrs[n], &x->calls[n]);
  }
  if (x->program->instrs[x->group->first].phases) return run_phases(x, x->group->first);
  if (x->worker->threads == 1 && !(gp_op_get(first)->flags & GP_OP_ROWS))
    return lane->work->pieces(lane, x->group->count, run_alone, x);
  gp_piece piece = x->group->side_by_side ? run_beside : run_chain;
  return lane->work->pieces(lane, x->group->pieces, piece, x);
}

static gp_status look_at_group(const execution *x) {
  if (x->worker->spoil) spoil_outputs(x);
  return x->worker->pipeline->finite ? check_finite(x) : GP_OK;
}

/* Run the groups of a program one after the other. */
static gp_status run_groups(void *context) {
  execution *x = context;
  bind_addresses(x);
  for (int32_t g = 0; g < x->program->group_count; g++) {
    x->group = &x->program->groups[g];
    GP_TRY(run_group(x));
    GP_TRY(look_at_group(x));
    if (x->early) GP_TRY(publish_early(x, x->group->first + x->group->count));
  }
  return GP_OK;
}

/* Run the instructions one after the other, for a profile. They have the same pieces as in groups,
 * so the bits are the same. */
static gp_status run_timed(void *context) {
  execution *x = context;
  gp_recorder *recorder = x->worker->recorder;
  gp_group alone = {.count = 1};
  x->group = &alone;
  bind_addresses(x);
  for (; alone.first < x->program->instr_count; alone.first++) {
    const gp_instr *instr = &x->program->instrs[alone.first];
    gp_record record = gp_record_of_instr(x->worker, task_of(x), instr);
    alone.pieces = gp_instr_pieces(instr);
    GP_TRY(gp_record_begin(recorder, &record));
    GP_TRY(run_group(x));
    GP_TRY(gp_record_end(recorder));
    GP_TRY(look_at_group(x));
    if (x->early) GP_TRY(publish_early(x, alone.first + 1));
  }
  return GP_OK;
}

/* ---- whole ops ------------------------------------------------------------------------------- */

/* Enqueue checks of everything that an instruction made. Of several faults the fault word keeps the
 * smallest tag, which is that of the first instruction. */
static gp_status enqueue_checks(const execution *x, int32_t n) {
  const gp_lane *lane = &x->worker->lane;
  const gp_call *call = &x->calls[n];
  for (int k = 0; k < call->n_out; k++)
    if (gp_dtype_is_float(call->out[k].meta->dtype))
      GP_TRY(lane->work->check_finite(lane, &call->out[k], x->fault,
                                      gp_tag_of(x->binding, x->task, n, true)));
  return GP_OK;
}

static gp_status enqueue_spoiling(const execution *x, int32_t n) {
  const gp_instr *instr = &x->program->instrs[n];
  for (int k = 0; k < instr->call.n_out; k++) {
    const gp_arg *out = &x->calls[n].out[k];
    if (leaves(x->worker, instr->out[k].base) && gp_dtype_is_float(out->meta->dtype))
      GP_TRY(gp_lane_fill(&x->worker->lane, out->data, 0xff, gp_meta_bytes(out->meta)));
  }
  return GP_OK;
}

static gp_status launch(const execution *x, int32_t n) {
  const gp_lane *lane = &x->worker->lane;
  const gp_instr *instr = &x->program->instrs[n];
  gp_lane_call call = {.op = instr->op,
                       .call = &x->calls[n],
                       .scratch = x->binding->devices[x->worker->device].scratch,
                       .fault = x->fault,
                       .tag = gp_tag_of(x->binding, x->task, n, false)};
  gp_status status = lane->work->launch(lane, &call);
  return status ? gp_instr_name_failure(x->program, instr, status) : GP_OK;
}

static gp_status enqueue_op(const execution *x, int32_t n) {
  const gp_instr *instr = &x->program->instrs[n];
  if (instr->gather)
    GP_TRY(gp_gather_run(x->worker, task_of(x), instr, &x->calls[n]));
  else
    GP_TRY(launch(x, n));
  if (x->worker->spoil) GP_TRY(enqueue_spoiling(x, n));
  return x->worker->pipeline->finite ? enqueue_checks(x, n) : GP_OK;
}

static gp_status enqueue(void *context) {
  const execution *x = context;
  bind_addresses(x);
  for (int32_t n = 0; n < x->program->instr_count; n++) {
    GP_TRY(enqueue_op(x, n));
    if (x->early) GP_TRY(publish_early(x, n + 1));
  }
  return GP_OK;
}

/* ---- a task ---------------------------------------------------------------------------------- */

/* Run a job in a range that profilers show by the action's name, "2F5". */
static gp_status run_named(const gp_lane *lane, const gp_lane_job *job, gp_action action) {
  char name[GP_ACTION_TEXT];
  lane->reports->range_push(gp_action_print(&action, name), action.micro);
  gp_status status = lane->work->run(lane, job);
  lane->reports->range_pop();
  return status;
}

gp_status gp_execute(gp_worker *worker, const gp_task_run *r) {
  const gp_binding *binding = worker->pipeline->run.binding;
  const gp_lane *lane = &worker->lane;
  const gp_task *first = &binding->plan->tasks[binding->plan->first[worker->device]];
  execution x = {
      .worker = worker,
      .run = r,
      .binding = binding,
      .program = r->task->program,
      .calls = binding->devices[worker->device].calls,
      .states = binding->states[2 * gp_plan_holder(binding->plan, r->task->stage, r->task->copy) +
                                r->task->shape],
      .task = (int32_t)(r->task - first),
      .assigns = gp_task_assigns(r),
      .early = gp_task_has_early(r->task),
      .step = r->block,
      .fault = r->fault};
  gp_lane_job job = {.context = &x,
                     .run = lane->recorder ? run_timed : run_groups,
                     .enqueue = enqueue,
                     .op_count = x.program->instr_count,
                     .ran = r->ran};
  if (!lane->reports->range_push) return lane->work->run(lane, &job);
  return run_named(lane, &job, gp_task_action(binding->plan, r->task, r->micro));
}
