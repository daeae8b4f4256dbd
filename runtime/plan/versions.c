/* plan/versions.c - which version of the weights a task reads, and how many live at once.
 *
 * The newest version of a stage lies in its arena, where scripts see it. U changes it in place; if
 * a later task still reads it or an older one, a copy goes to the stash first. Version v lies in
 * stash slot v mod (live - 1): the versions there are consecutive, so no two meet. (A plan stores a
 * part of a stream; by this rule the part repeats itself up to the last mini-batches.) Each replica
 * has all of that for itself.
 * Source: weight stashing of PipeDream (Narayanan et al. 2019); two versions: PipeDream-2BW (2021).
 */
#include "base/memory.h"
#include "plan/make.h"
#include "schedule/access/access.h"

static bool reads_weights(const gp_task *task) { return task->op <= GP_ACT_R; }

/* ---- accesses ------------------------------------------------------------------------------ */

/* A copy of a stage on its device. */
typedef struct stage_versions {
  gp_plan *plan;
  int32_t stage, holder, begin, end; /* tasks of its device */
  int32_t alive;
  gp_access_list list;
} stage_versions;

/* List the versions that a task touches. A backward pass has the version of its forward pass; a
 * task that lowering added has that of the action that it was made for; the others see the
 * newest. */
static gp_status touch(stage_versions *v, gp_task *task, int32_t *newest) {
  gp_access_list_begin(&v->list, false);
  if (task->stage != v->stage) return GP_OK;
  if (task->op == GP_ACT_U) {
    task->version = (*newest)++;
    GP_TRY(gp_access_list_add(&v->list, 0, task->version, GP_ACCESS_READ));
    return gp_access_list_add(&v->list, 0, *newest, GP_ACCESS_REPLACE);
  }
  if (!reads_weights(task)) task->version = *newest;
  task->newest = task->version == *newest;
  return reads_weights(task) ? gp_access_list_add(&v->list, 0, task->version, GP_ACCESS_READ)
                             : GP_OK;
}

static gp_status list_accesses(stage_versions *v) {
  gp_buffer *buffer;
  int32_t newest = 0;
  GP_TRY(gp_alloc(sizeof *buffer, (void **)&buffer));
  *buffer = (gp_buffer){.class = GP_BUFFER_VERSION, .stage = v->stage, .in_order = true};
  /* one update per micro-batch at most, and the version before the first */
  GP_TRY(gp_access_list_new(v->end - v->begin, v->plan->micro_count + 2, buffer, 1, &v->list));
  for (int32_t t = v->begin; t < v->end; t++) GP_TRY(touch(v, &v->plan->tasks[t], &newest));
  return GP_OK;
}

/* ---- the stash ----------------------------------------------------------------------------- */

/* Count the versions that are alive at once, and mark the updates that must stash the one they
 * replace. */
static gp_status born(void *context, const gp_lifetime *life) {
  stage_versions *v = context;
  gp_task *task = &v->plan->tasks[v->begin + life->task];
  gp_versions *versions = &v->plan->versions[v->holder];
  const bool made = task->op == GP_ACT_U && life->instance == task->version + 1;
  task->stash |= made && life->replaces < 0;
  if (++v->alive > versions->live) versions->live = v->alive;
  return GP_OK;
}

static void dead(void *context, const gp_lifetime *life) {
  (void)life;
  ((stage_versions *)context)->alive--;
}

static gp_status count_versions(gp_plan *plan, int32_t holder) {
  int32_t device = plan->placement[holder];
  stage_versions v = {.plan = plan,
                      .stage = holder / plan->copy_count,
                      .holder = holder,
                      .begin = plan->first[device],
                      .end = plan->first[device + 1]};
  gp_status status = list_accesses(&v);
  if (!status) status = gp_access_watch(&v.list, &(gp_lifetime_watch){&v, born, dead});
  gp_access_list_free(&v.list);
  return status;
}

/* Refuse a parameter of another stage: it would have to be there in the same version, and stages
 * update at different times. */
static gp_status refuse_tie(int32_t stage, int32_t owner) {
  return gp_fail(GP_EINVAL,
                 "schedule: stage %d reads a parameter of stage %d, and stages are updated at "
                 "different times: layers that share a parameter must lie in one stage (choose "
                 "another balance, or a schedule with a barrier)",
                 (int)stage, (int)owner);
}

/* Refuse a task that reads a parameter of another stage in place. */
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

/* Refuse a parameter that comes from another device. Buffers may: they have no versions. */
static gp_status check_crossings(const gp_shape_plan *shape, const gp_layout *layout) {
  for (int32_t i = 0; i < shape->crossing_count; i++) {
    const gp_crossing *c = &shape->crossings[i];
    if (layout->at[c->param].region != GP_REGION_BUFFER)
      return refuse_tie(c->stage, layout->at[c->param].stage);
  }
  return GP_OK;
}

static gp_status check_ties(const gp_plan *plan, const gp_plan_env *env) {
  for (int32_t t = 0; t < plan->first[plan->device_count]; t++)
    GP_TRY(check_reads(plan, &plan->tasks[t]));
  for (int k = 0; k < 2; k++) GP_TRY(check_crossings(&plan->shapes[k], env->layout));
  return GP_OK;
}

gp_status gp_plan_add_versions(gp_plan *plan, const gp_plan_env *env) {
  const int32_t holders = plan->stage_count * plan->copy_count;
  for (int32_t h = 0; h < holders; h++) plan->versions[h].live = 1;
  if (gp_plan_streams(plan)) GP_TRY(check_ties(plan, env));
  for (int32_t h = 0; plan->batch && h < holders; h++) GP_TRY(count_versions(plan, h));
  return GP_OK;
}
