/* plan/versions.c - which version of the weights a task reads, and how many live at once.
 *
 * The newest version of a stage lies in its arena, where scripts see it; U changes it in place,
 * after a copy went to the stash if somebody still has to read it. Version v lies in stash slot v
 * mod (live - 1):
 * live versions are consecutive, so no two meet.
 * Source: weight stashing of PipeDream (Narayanan et al. 2019); two versions: PipeDream-2BW (2021).
 */
#include "base/memory.h"
#include "plan/make.h"

static bool reads_weights(const gp_task *task) { return task->op <= GP_ACT_R; }

/* Each U's version receives the oldest that a later task of the stage still reads, from behind in
 * one pass; INT32_MAX: none. */
static void look_ahead(gp_plan *plan, int32_t stage, int32_t begin, int32_t end) {
  int32_t oldest = INT32_MAX;
  for (int32_t t = end; t-- > begin;) {
    gp_task *task = &plan->tasks[t];
    if (task->stage != stage) continue;
    if (task->op == GP_ACT_U) task->version = oldest;
    if (reads_weights(task) && task->version < oldest) oldest = task->version;
  }
}

/* Backward passes have the version of their forward pass; tasks that lowering added have that of
 * the action that they were made for. */
static void count_versions(gp_plan *plan, int32_t stage) {
  int32_t device = plan->placement[gp_plan_holder(plan, stage, 0)];
  int32_t begin = plan->first[device], end = plan->first[device + 1], newest = 0;
  gp_versions *v = &plan->versions[stage];
  v->live = 1;
  look_ahead(plan, stage, begin, end);
  for (int32_t t = begin; t < end; t++) {
    gp_task *task = &plan->tasks[t];
    if (task->stage != stage) continue;
    if (task->op == GP_ACT_U) {
      int32_t oldest = task->version <= newest ? task->version : newest + 1;
      task->version = newest++;
      task->stash = oldest < newest;
      if (newest - oldest + 1 > v->live) v->live = newest - oldest + 1;
    } else {
      if (!reads_weights(task)) task->version = newest;
      task->newest = task->version == newest;
    }
  }
}

/* A parameter of another stage would have to be there in the same version: stages update at
 * different times. */
static gp_status refuse_tie(int32_t stage, int32_t owner) {
  return gp_fail(GP_EINVAL,
                 "schedule: stage %d reads a parameter of stage %d, and stages are updated at "
                 "different times: layers that share a parameter must lie in one stage (choose "
                 "another balance, or a schedule with a barrier)",
                 (int)stage, (int)owner);
}

/* Where the stage reads it in place. */
static gp_status check_reads(const gp_plan *plan, const gp_task *task) {
  for (int32_t n = 0; task->program && n < task->program->instr_count; n++) {
    const gp_instr *instr = &task->program->instrs[n];
    for (int i = 0; i < instr->call.n_in; i++) {
      int32_t owner = instr->in[i].base - GP_BASE_VALUE;
      if (owner < 0 || owner >= plan->stage_count || owner == task->stage) continue;
      return refuse_tie(task->stage, owner);
    }
  }
  return GP_OK;
}

/* Where the stage reads a copy of it, because its device cannot reach it. */
static gp_status check_replicas(const gp_plan *plan, const gp_plan_env *env, int32_t stage, int k) {
  const gp_shape_plan *shape = &plan->shapes[k];
  if (!shape->programs) return GP_OK;
  const gp_stage_programs *own = &shape->programs[stage];
  const gp_graph *graph = &shape->trace->graph;
  for (int32_t i = 0; i < own->replica_count; i++) {
    const gp_value *value = &graph->values[own->replicas[i].value];
    if (value->kind != GP_VALUE_PARAM || gp_param_is_buffer(graph->params[value->index])) continue;
    return refuse_tie(
        stage, env->layout->at[gp_layout_find(env->layout, graph->params[value->index])].stage);
  }
  return GP_OK;
}

static gp_status check_ties(const gp_plan *plan, const gp_plan_env *env) {
  for (int32_t t = 0; t < plan->first[plan->device_count]; t++)
    GP_TRY(check_reads(plan, &plan->tasks[t]));
  for (int32_t s = 0; s < plan->stage_count; s++)
    for (int k = 0; k < 2; k++) GP_TRY(check_replicas(plan, env, s, k));
  return GP_OK;
}

gp_status gp_plan_add_versions(gp_plan *plan, const gp_plan_env *env) {
  for (int32_t s = 0; s < plan->stage_count; s++) plan->versions[s].live = 1;
  if (gp_plan_streams(plan)) GP_TRY(check_ties(plan, env));
  for (int32_t s = 0; plan->batch && s < plan->stage_count; s++) count_versions(plan, s);
  return GP_OK;
}
