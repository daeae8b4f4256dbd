/* engine/execute.c - run one program: groups in order, the pieces of a group on the device's threads. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/tensor.h"
#include "engine/pipeline.h"
#include "gpipe/process.h"

typedef struct execution {
  gp_worker *worker;
  gp_program *program;
  const gp_group *group;
} execution;

/* Integer arithmetic: the base of absolute places is NULL, to which C may add nothing. */
static void *address(const gp_worker *worker, gp_place place) {
  return (void *)((uintptr_t)worker->frame[place.base] + place.offset);
}

void gp_execute_bind(const gp_worker *worker, gp_program *program, const gp_step_block *step) {
  for (int32_t n = 0; n < program->instr_count; n++) {
    gp_instr *instr = &program->instrs[n];
    instr->call.step = step;
    for (int i = 0; i < instr->call.n_in; i++)
      instr->call.in[i].data = address(worker, instr->in[i]);
    for (int k = 0; k < instr->call.n_out; k++)
      instr->call.out[k].data = address(worker, instr->out[k]);
  }
}

/* The module that applied the op, "3.fc (Linear 256 -> 10)": what every failure names first. */
static const char *label_of(const gp_program *program, const gp_instr *instr) {
  return program->graph->labels[program->graph->nodes[instr->node].label];
}

/* Kernels know the numbers, this knows the layer: put it before their text. */
gp_status gp_execute_name_failure(const gp_program *program, const gp_instr *instr,
                                  gp_status status) {
  char prefix[256];
  snprintf(prefix, sizeof prefix, "%s", label_of(program, instr));
  return gp_fail_prefix(status, prefix);
}

/* Units of one piece of an instruction; threads have scratch of their own. */
static gp_status run_instr(const execution *x, const gp_instr *instr, int64_t piece, int member) {
  int64_t first = piece * instr->cut.grain, last = first + instr->cut.grain;
  char *scratch = x->worker->scratch;
  gp_span span = {.first = first,
                  .last = last < instr->cut.units ? last : instr->cut.units,
                  .scratch = scratch ? scratch + (size_t)member * x->worker->scratch_bytes : NULL};
  gp_status status = gp_op_get(instr->op)->cpu.run(&instr->call, span);
  return status ? gp_execute_name_failure(x->program, instr, status) : GP_OK;
}

/* A group may be long: between its pieces an interrupt is seen. Nothing that a program makes outlives the run
 * when it ends so. */
static gp_status look_for_interrupt(void) {
  return gp_interrupt_pending() ? gp_fail(GP_EINTERRUPT, "interrupted") : GP_OK;
}

/* A block of rows goes through every instruction of the chain. */
static gp_status run_chain(void *context, int64_t piece, int member) {
  const execution *x = context;
  GP_TRY(look_for_interrupt());
  for (int32_t n = x->group->first; n < x->group->first + x->group->count; n++)
    GP_TRY(run_instr(x, &x->program->instrs[n], piece, member));
  return GP_OK;
}

/* Pieces are numbered through the instructions one after the other. */
static gp_status run_beside(void *context, int64_t piece, int member) {
  const execution *x = context;
  GP_TRY(look_for_interrupt());
  const gp_instr *instr = &x->program->instrs[x->group->first];
  for (; piece >= gp_instr_pieces(instr); instr++) piece -= gp_instr_pieces(instr);
  return run_instr(x, instr, piece, member);
}

/* ---- finite = true ------------------------------------------------------------------------- */

/* Integers are always finite; other dtypes than f32 and f64 do not compute. */
static bool all_finite(const gp_arg *arg) {
  int64_t n = gp_meta_numel(arg->meta);
  const float *f = arg->data;
  const double *d = arg->data;
  for (int64_t i = 0; arg->meta->dtype == GP_F32 && i < n; i++)
    if (!isfinite(f[i])) return false;
  for (int64_t i = 0; arg->meta->dtype == GP_F64 && i < n; i++)
    if (!isfinite(d[i])) return false;
  return true;
}

gp_status gp_execute_not_finite(const gp_program *program, const gp_instr *instr) {
  bool backward = program->graph->nodes[instr->node].phase == GP_BACKWARD;
  return gp_fail(GP_EFINITE, "%s: %s made a value that is not finite%s", label_of(program, instr),
                 gp_op_name(instr->op), backward ? " in the backward pass" : "");
}

/* In order of the instructions, so that the first one that made such a value is named and not one
 * that it spread to. Reads everything once more: only with finite = true. */
static gp_status check_finite(const execution *x) {
  for (int32_t n = x->group->first; n < x->group->first + x->group->count; n++) {
    const gp_instr *instr = &x->program->instrs[n];
    for (int k = 0; k < instr->call.n_out; k++)
      if (!all_finite(&instr->call.out[k])) return gp_execute_not_finite(x->program, instr);
  }
  return GP_OK;
}

/* ---- GPIPE_FAULT=action=nan ------------------------------------------------------------------ */

/* Bytes of ones are no number in any float dtype. */
static void spoil(const gp_arg *arg) {
  if (gp_dtype_is_float(arg->meta->dtype)) memset(arg->data, 0xff, gp_meta_bytes(arg->meta));
}

/* What other tasks or the script read: gradients, losses and outputs, edges, what R and I make. */
bool gp_execute_leaves(const gp_worker *worker, int32_t base) {
  return (base >= GP_BASE_RECOMPUTED && base < GP_BASE_INPUT && base != GP_BASE_INVARIANT &&
          base != GP_BASE_GUEST && base != GP_BASE_OUT_GRAD) ||
         base >= GP_BASE_VALUE + worker->pipeline->stage_count;
}

/* Before what was made is looked at: the failure names the layer that made it. */
static void spoil_outputs(const execution *x) {
  for (int32_t n = x->group->first; n < x->group->first + x->group->count; n++) {
    const gp_instr *instr = &x->program->instrs[n];
    for (int k = 0; k < instr->call.n_out; k++)
      if (gp_execute_leaves(x->worker, instr->out[k].base)) spoil(&instr->call.out[k]);
  }
}

/* Groups one after the other: the hand-out to the team is also the barrier between them. */
gp_status gp_execute(gp_worker *worker, gp_program *program, const gp_step_block *step) {
  execution x = {.worker = worker, .program = program};
  gp_execute_bind(worker, program, step);
  for (int32_t g = 0; g < program->group_count; g++) {
    x.group = &program->groups[g];
    gp_piece piece = x.group->side_by_side ? run_beside : run_chain;
    GP_TRY(gp_team_run(worker->lane.team, x.group->pieces, piece, &x));
    if (worker->spoil) spoil_outputs(&x);
    if (worker->pipeline->finite) GP_TRY(check_finite(&x));
  }
  return GP_OK;
}
