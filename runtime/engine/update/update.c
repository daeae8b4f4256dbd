/* engine/update/update.c - what ends a mini-batch, as actions of the schedule: sums of gradients
 * (sums.c), norms, updates.
 *
 * What a task reads from other devices has come by links (plan/edge/step_edges.h). In a synchronous
 * plan all stages are updated, or none: vote.h. In a stream each device updates a stage as soon as
 * that stage's gradients are complete.
 */

#include "base/memory.h"
#include "base/tensor.h"
#include "engine/bind/step_links.h"
#include "engine/bind/votes.h"
#include "engine/memory/halves.h"
#include "engine/optimizer/optimizer.h"
#include "engine/optimizer/skips.h"
#include "engine/state/pipeline.h"
#include "engine/update/sums.h"
#include "engine/update/update.h"
#include "engine/update/vote.h"
#include "gpipe/run.h"

/* ---- zeros -------------------------------------------------------------------------------- */

gp_status gp_update_zero(gp_pipeline *p, int32_t stage, int32_t copy) {
  const gp_arena *a = &p->arenas[stage];
  const gp_arena_copy *own = &a->copies[copy];
  const gp_lane *lane = gp_stage_lane(p, stage, copy);
  if (own->grads) GP_TRY(gp_lane_fill(lane, own->grads, 0, a->grad_bytes));
  return own->extras ? gp_lane_fill(lane, own->extras, 0, a->extra_bytes) : GP_OK;
}

/* Zero gradients in host memory. After Ctrl-C this must not take as long as writing all of them:
 * gp_memory_clear gives pages back instead. */
static void clear_host(const gp_arena *a, int32_t copy) {
  const gp_arena_copy *own = &a->copies[copy];
  if (own->grads) gp_memory_clear(own->grads, a->grad_bytes);
  if (own->extras) gp_memory_clear(own->extras, a->extra_bytes);
}

/* Runs on the script's thread, while the workers rest. In a step, each worker zeroes the gradients
 * of its own stages. */
void gp_pipeline_zero_grad(gp_pipeline *p) {
  bool mine = !p->closed && !p->watch.lost;
  p->overflow = false;
  for (int32_t s = 0; mine && s < p->stage_count; s++)
    for (int32_t copy = 0; copy < p->copy_count; copy++) {
      const gp_lane *lane = gp_stage_lane(p, s, copy);
      if (!lane->space) clear_host(&p->arenas[s], copy);
      if (lane->space) gp_update_zero(p, s, copy);
      gp_lane_sync(lane);
    }
}

/* Zero bytes from .. to - 1 of an area; do nothing if the area is absent. */
static gp_status clear(const gp_lane *lane, char *area, size_t from, size_t to) {
  return area && to > from ? gp_lane_fill(lane, area + from, 0, to - from) : GP_OK;
}

/* Zero an area, except where the program writes. */
static gp_status clear_rest(const gp_lane *lane, const gp_program *program, int32_t base,
                            char *area, size_t bytes) {
  size_t from = 0;
  for (int32_t i = 0; i < program->opened_count; i++) {
    const gp_gradient_part *part = &program->opened[i];
    if (part->base != base) continue;
    GP_TRY(clear(lane, area, from, part->offset));
    /* the rest of a gradient's last cache line is always zero */
    GP_TRY(gp_size_align(part->offset + part->bytes, GP_GRADIENT_ALIGNMENT, &from));
  }
  return clear(lane, area, from, bytes);
}

/* Accumulators that later plans have asked for are not this plan's, so they stay as they are. */
gp_status gp_update_open(const gp_worker *worker, const gp_task *task) {
  const size_t extras = worker->pipeline->run.plan->asked[task->stage].extras;
  const gp_arena *a = &worker->pipeline->arenas[task->stage];
  const gp_program *program = task->program;
  const gp_lane *lane = &worker->lane;
  GP_TRY(clear_rest(lane, program, GP_BASE_GRAD, worker->frame[GP_BASE_GRAD], a->grad_bytes));
  return clear_rest(lane, program, GP_BASE_EXTRA, worker->frame[GP_BASE_EXTRA], extras);
}

/* Second copies and extra accumulators begin anew, because they have been added to the main
 * gradients. Replicas own parts of them, so they add to earlier ones apart (earlier.h). */
gp_status gp_update_resume(gp_pipeline *p, int32_t stage, int32_t copy) {
  gp_arena *a = &p->arenas[stage];
  const gp_lane *lane = gp_stage_lane(p, stage, copy);
  if (copy) return gp_update_zero(p, stage, copy);
  if (a->extra_bytes) GP_TRY(gp_lane_fill(lane, a->copies[0].extras, 0, a->extra_bytes));
  return p->scaling.scale > 0 ? gp_gradients_scale(&a->copies[0].gradients, p->scaling.scale)
                              : GP_OK;
}

/* ---- updates ------------------------------------------------------------------------------- */

/* Are the gradients that a copy of a stage owns finite? */
static gp_status look(const gp_pipeline *p, const gp_task *task, bool *finite) {
  gp_gradients *list = &p->arenas[task->stage].copies[task->copy].gradients;
  *finite = true;
  if (!list->count) return GP_OK;
  GP_TRY(gp_gradients_look(list));
  *finite = gp_gradients_are_finite(list);
  return GP_OK;
}

/* What NORM of a copy of the stage has found, as a device made or received it; NULL: that copy owns
 * no gradients. */
static gp_step_check *check_of(const gp_binding *b, int32_t stage, int32_t copy, int32_t device) {
  const gp_plan *plan = b->plan;
  for (int32_t e = 0; e < plan->step_edge_count; e++) {
    const gp_step_edge *edge = &plan->step_edges[e];
    if (edge->value == GP_STEP_CHECK && edge->stage == stage && edge->copy == copy)
      return (gp_step_check *)(void *)gp_step_edge_address(b, e, device);
  }
  return NULL;
}

/* Are the gradients of all copies finite? */
static bool is_agreed(const gp_worker *worker, int32_t stage) {
  const gp_binding *b = worker->pipeline->run.binding;
  bool finite = true;
  for (int32_t copy = 0; copy < b->plan->copy_count; copy++) {
    const gp_step_check *check = check_of(b, stage, copy, worker->device);
    if (check) finite = finite && check->finite;
  }
  return finite;
}

/* Decide on the update of a stage in a plan in which no stage waits for another. */
static gp_status judge(const gp_worker *worker, const gp_plan *plan, const gp_task *task,
                       bool *skip) {
  gp_pipeline *p = worker->pipeline;
  gp_stage_run *made = &p->run.stages[gp_plan_holder(plan, task->stage, task->copy)];
  bool finite = true;
  if (p->check == GP_FINITE_IGNORE) return GP_OK;
  if (plan->checks)
    finite = is_agreed(worker, task->stage);
  else
    GP_TRY(look(p, task, &finite));
  if (!finite && p->check == GP_FINITE_RAISE) return gp_skips_count(p, false);
  made->row = finite ? 0 : made->row + 1;
  made->skipped += !finite;
  *skip = !finite;
  return GP_OK;
}

/* Complete a stage's gradients in a stream, and decide on its update without other stages. Replicas
 * have completed theirs before (REDUCE). */
static gp_status prepare_alone(gp_worker *worker, const gp_plan *plan, const gp_task *task,
                               bool *skip) {
  if (plan->replicas == 1) GP_TRY(gp_sum_tied(worker, plan, task->stage, 0));
  return judge(worker, plan, task, skip);
}

/* Update the values that a copy of a stage owns by their gradients. */
static gp_status apply(gp_worker *worker, const gp_run *run, const gp_task *task, int64_t micro) {
  gp_pipeline *p = worker->pipeline;
  gp_arena *arena = &p->arenas[task->stage];
  const int32_t holder = gp_plan_holder(run->plan, task->stage, task->copy);
  gp_stage_run *made = &p->run.stages[holder];
  const gp_optim_hyper *hyper = gp_run_minibatch(run, micro)->hyper;
  /* moments are corrected for the updates that were made: skipped ones do not count */
  int64_t step = run->first_update + made->updates - made->skipped + 1;
  gp_status status = gp_optimizer_update(p->optimizer, worker, holder, hyper, step);
  made->torn = status != GP_OK;
  GP_TRY(status);
  const gp_layout_slice *own = &p->layout.slices[holder];
  if (!worker->spoil || !own->values) return GP_OK;
  if (p->copy_count == 1) gp_halves_spoil(arena);
  char *values = arena->copies[task->copy].values + own->begin;
  return gp_lane_fill(&worker->lane, values, 0xff, own->values);
}

/* Begin the next batch's gradients, where tasks add to them and none opens them. */
static gp_status begin_next(gp_pipeline *p, const gp_plan *plan, const gp_task *task) {
  const int32_t holder = gp_plan_holder(plan, task->stage, task->copy);
  const bool opened = !plan->active[holder] || plan->opened[holder];
  return plan->batch && !opened ? gp_update_zero(p, task->stage, task->copy) : GP_OK;
}

/* Keep the values that an update replaces, if later tasks still read them. */
static gp_status stash(const gp_worker *worker, const gp_run *run, const gp_task *task,
                       int64_t micro) {
  const gp_plan *plan = run->plan;
  const gp_arena *arena = &worker->pipeline->arenas[task->stage];
  const int32_t holder = gp_plan_holder(plan, task->stage, task->copy);
  const gp_versions *v = &plan->versions[holder];
  size_t replaced = (size_t)(task->version + (micro - task->micro) / gp_run_group(plan));
  if (!task->stash || !arena->value_bytes) return GP_OK;
  return gp_lane_copy(&worker->lane,
                      run->binding->stash[holder] +
                          replaced % (size_t)(v->live - 1) * v->stash_bytes,
                      arena->copies[task->copy].values, arena->value_bytes);
}

/* Update a stage: stash what is still read, update, begin the next batch's gradients. */
static gp_status update_stage(gp_worker *worker, const gp_run *run, const gp_task *task,
                              int64_t micro) {
  gp_pipeline *p = worker->pipeline;
  const gp_plan *plan = run->plan;
  const gp_verdict *verdict = plan->decides ? gp_vote_verdict(run->binding, worker->device) : NULL;
  bool skip = verdict && verdict->overflow;
  if (!p->optimizer || (verdict && !verdict->goes)) return GP_OK;
  GP_TRY(stash(worker, run, task, micro));
  if (gp_plan_streams(plan)) GP_TRY(prepare_alone(worker, plan, task, &skip));
  if (!skip) GP_TRY(apply(worker, run, task, micro));
  p->run.stages[gp_plan_holder(plan, task->stage, task->copy)].updates++;
  return begin_next(p, plan, task);
}

/* Add up the gradients that a copy of a stage owns. In a stream each stage adds those of its layers
 * then, too. */
static gp_status reduce(const gp_worker *worker, const gp_plan *plan, const gp_task *task) {
  GP_TRY(gp_sum_copies(worker, plan, task->stage, task->copy));
  return plan->batch ? gp_sum_tied(worker, plan, task->stage, task->copy) : GP_OK;
}

/* Take a copy's part of the norm of all gradients; in a stream, look whether it is finite. */
static gp_status take_norm(gp_worker *worker, const gp_plan *plan, const gp_task *task) {
  gp_pipeline *p = worker->pipeline;
  if (!plan->checks) return gp_norm_stage(p, task->stage, task->copy);
  gp_step_check *check = check_of(p->run.binding, task->stage, task->copy, worker->device);
  bool finite;
  if (!check) return GP_OK;
  GP_TRY(look(p, task, &finite));
  check->finite = finite;
  return GP_OK;
}

gp_status gp_update_task(gp_worker *worker, gp_run *run, const gp_task *task, int64_t micro) {
  gp_pipeline *p = worker->pipeline;
  if (task->op == GP_ACT_VOTE) return gp_vote_cast(worker, run);
  if (task->op == GP_ACT_DECIDE) return gp_vote_decide(worker, run);
  switch (task->op) {
  case GP_ACT_REDUCE: return reduce(worker, run->plan, task);
  case GP_ACT_TIE: return gp_sum_tied(worker, run->plan, task->stage, task->copy);
  case GP_ACT_NORM: return take_norm(worker, run->plan, task);
  case GP_ACT_CLIP:
    return gp_norm_clip(&p->arenas[task->stage].copies[task->copy].gradients,
                        gp_vote_verdict(run->binding, worker->device));
  default: return update_stage(worker, run, task, micro);
  }
}

/* ---- choosing an optimizer ------------------------------------------------------------------- */

gp_status gp_pipeline_use(gp_pipeline *p, gp_optimizer *optimizer, const gp_use_options *options) {
  GP_TRY(gp_pipeline_drain(p));
  if (optimizer && !gp_optimizer_uses(optimizer, p))
    return gp_fail(GP_EINVAL, "use: the optimizer has parameters of another pipeline, expected "
                              "those of this one");
  if (options->update == GP_UPDATE_NONE) optimizer = NULL;
  gp_optimizer_retain(optimizer);
  gp_optimizer_free(p->optimizer);
  p->optimizer = optimizer;
  p->use = *options;
  p->listed_count = optimizer ? gp_optimizer_list(optimizer, p, p->listed) : 0;
  return GP_OK;
}
