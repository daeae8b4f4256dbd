/* plan/outline.c - what a rank knows of the devices of other ranks.
 *
 * A rank plans its own devices in full: their programs, tasks, accesses and memory. Of the others
 * it keeps an outline: the lowered actions while the plan is made (for slots of edges, and for the
 * order in which failures are reported), edges with who makes and reads them, and who runs the
 * first and the last stage. The hash covers what all shares are made from, so that ranks can
 * compare plans of which none of them holds the whole.
 */
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "graph/graph.h"
#include "plan/make.h"

/* ---- the hash -------------------------------------------------------------------------------- */

static void mix(uint64_t *hash, uint64_t word) { *hash = gp_hash_fold(gp_hash_word(*hash, word)); }

static void mix_action(uint64_t *hash, const gp_action *action) {
  mix(hash, (uint64_t)action->op << 56 ^ (uint64_t)(uint32_t)action->stage << 32 ^
                (uint32_t)action->micro);
}

static uint64_t hash_of(const gp_plan *plan, const gp_lowered *lowered) {
  uint64_t hash = GP_HASH_START;
  for (int k = 0; k < 2; k++)
    if (plan->shapes[k].trace) hash = gp_graph_hash(&plan->shapes[k].trace->graph, hash);
  for (int32_t h = 0; h < plan->stage_count * plan->copy_count; h++)
    mix(&hash, (uint64_t)plan->placement[h]);
  for (int32_t d = 0; d < lowered->device_count; d++)
    for (int32_t i = lowered->first[d]; i < lowered->first[d + 1]; i++)
      mix_action(&hash, &lowered->actions[i]);
  return hash;
}

/* ---- who runs what --------------------------------------------------------------------------- */

static void find_runners(gp_plan *plan, const gp_lowered *lowered) {
  for (int32_t d = 0; d < lowered->device_count; d++)
    for (int32_t i = lowered->first[d]; i < lowered->first[d + 1]; i++) {
      const gp_action *action = &lowered->actions[i];
      if (action->op != GP_ACT_F) continue;
      const int32_t own = action->micro % plan->step_micros;
      if (action->stage == 0) plan->runners[0][own] = d;
      if (action->stage == plan->stage_count - 1) plan->runners[1][own] = d;
    }
}

gp_status gp_plan_add_outline(gp_plan *plan, const gp_lowered *lowered) {
  for (int end = 0; end < 2; end++)
    GP_TRY(gp_alloc_array((size_t)plan->step_micros + 1, sizeof *plan->runners[end],
                          (void **)&plan->runners[end]));
  find_runners(plan, lowered);
  plan->action_count = lowered->first[lowered->device_count];
  plan->outline = hash_of(plan, lowered);
  return GP_OK;
}

/* ---- shares ---------------------------------------------------------------------------------- */

/* Do two devices with memory of their own belong to different ranks? */
static bool has_far_gpus(const gp_plan_env *env) {
  int32_t first = -1; /* the rank of the first device with memory of its own */
  for (int32_t d = 0; d < env->device_count; d++) {
    if (!env->devices[d].space) continue;
    if (first >= 0 && env->devices[d].rank != first) return true;
    first = env->devices[d].rank;
  }
  return false;
}

static bool gathers(const gp_graph *graph) {
  for (int32_t n = 0; n < graph->node_count; n++)
    if (graph->nodes[n].op == GP_OP_replica_gather) return true;
  return false;
}

/* Do some of its edges follow from programs, so that every rank needs those of all stages? */
static bool needs_programs(const gp_plan_env *env, const gp_plan_spec *spec) {
  const gp_shape_spec shape = {.env = env, .plan = spec};
  char text[GP_WHY_LATE];
  for (int k = 0; k < 2; k++) {
    const gp_trace *trace = spec->shapes[k].trace;
    if (!trace) continue;
    if (gathers(&trace->graph) || gp_shape_why_late(&shape, &trace->graph, text)) return true;
  }
  return false;
}

static bool has_shares(const gp_plan_env *env, const gp_plan_spec *spec) {
  return !has_far_gpus(env) && !needs_programs(env, spec);
}

int32_t gp_plan_share_of_rank(const gp_plan_env *env, const gp_plan_spec *spec, int32_t rank) {
  return has_shares(env, spec) ? -1 - rank : 0;
}

int32_t gp_plan_share_of_shown(const gp_plan_env *env, const gp_plan_spec *spec) {
  return has_shares(env, spec) ? GP_SHARE_SHOWN : 0;
}
