/* plan/ties.c - accumulators of tied weights that need no sum at the end of a mini-batch.
 *
 * A parameter that two layers use has an accumulator for each, and the sum of both is its gradient:
 * so the bits are the same wherever the model is cut. With several micro-batches nothing else gives
 * them: each accumulator is a sum of its own. With one micro-batch both hold a single contribution,
 * and the second may be added to the first where that lies, in the main accumulator, as long as its
 * kernel sums all of it before: a + b either way.
 *
 * Only where the mini-batch begins its gradients: where it adds to what is there, that comes first.
 */
#include "base/memory.h"
#include "plan/make.h"

/* The instruction that alone adds to a gradient, and may write it; -1. */
static int32_t writer_of(const gp_program *p, gp_place place, int *output) {
  int32_t found = -1;
  for (int32_t n = 0; n < p->instr_count; n++)
    for (int k = 0; k < p->instrs[n].call.n_out; k++) {
      const gp_place *out = &p->instrs[n].out[k];
      if (out->base != place.base || out->offset != place.offset) continue;
      if (found >= 0 || !p->instrs[n].opens) return -1;
      found = n;
      *output = k;
    }
  return found;
}

/* Two layers and no more: of three sums the order would count. */
static bool has_one_extra(const gp_layout *layout, int32_t param) {
  int count = 0;
  for (size_t x = 0; x < layout->extra_count; x++) count += layout->extras[x].param == param;
  return count == 1;
}

/* May what the task adds to an accumulator of its stage go to the main one? */
static bool find_tie(const gp_layout *layout, const gp_task *task, int32_t x, gp_tie *tie) {
  const gp_layout_extra *extra = &layout->extras[x];
  const gp_layout_param *owner = &layout->at[extra->param];
  gp_place to = {GP_BASE_GRAD, owner->offset}, from = {GP_BASE_EXTRA, extra->offset};
  int ignored;
  *tie = (gp_tie){.stage = task->stage, .extra = x, .to = to};
  if (extra->stage != task->stage || owner->stage != task->stage) return false;
  if (!has_one_extra(layout, extra->param)) return false;
  tie->writer = writer_of(task->program, from, &tie->output);
  int32_t other = writer_of(task->program, to, &ignored);
  if (tie->writer < 0 || other < 0 || tie->writer == other) return false;
  tie->adder = tie->writer > other ? tie->writer : other;
  return gp_op_get(task->program->instrs[tie->adder].op)->flags & GP_OP_ADDS_ONCE;
}

static void find_ties(gp_plan *plan, const gp_layout *layout, const gp_task *task) {
  for (size_t x = 0; x < layout->extra_count; x++)
    plan->tie_count += find_tie(layout, task, (int32_t)x, &plan->ties[plan->tie_count]);
}

gp_status gp_plan_add_ties(gp_plan *plan, const gp_layout *layout) {
  if (!layout->extra_count || plan->copy_count > 1 || plan->micro_count > 1) return GP_OK;
  GP_TRY(gp_alloc_array(layout->extra_count + 1, sizeof(gp_tie), (void **)&plan->ties));
  for (int32_t d = 0; d < plan->device_count; d++)
    for (int32_t t = plan->first[d]; !gp_plan_on_host(plan, d) && t < plan->first[d + 1]; t++)
      if (plan->tasks[t].opens) find_ties(plan, layout, &plan->tasks[t]);
  return GP_OK;
}
