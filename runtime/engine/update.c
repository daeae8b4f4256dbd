/* engine/update.c - reductions and updates as actions of the schedule.
 *
 * With a barrier every device waits until all gradients are there; the last to come adds up what belongs
 * together and clips, and a failure anywhere makes every update a pass-through. Without one a stage is
 * updated by its own device as soon as its own gradients are there.
 */
#include <limits.h>
#include <string.h>

#include "base/tensor.h"
#include "engine/pipeline.h"

/* ---- reductions ---------------------------------------------------------------------------- */

static void add_to(gp_dtype dtype, int64_t n, void *to, const void *from) {
  bool f32 = dtype == GP_F32;
  for (int64_t i = 0; f32 && i < n; i++) ((float *)to)[i] += ((const float *)from)[i];
  for (int64_t i = 0; !f32 && i < n; i++) ((double *)to)[i] += ((const double *)from)[i];
}

static void add_param(const gp_pipeline *p, int32_t i, void *to, const void *from) {
  add_to(gp_tensor_meta(p->grads[i])->dtype, gp_tensor_numel(p->grads[i]), to, from);
}

/* The second copy's gradients to the first's, parameter by parameter. */
static void reduce_copies(gp_pipeline *p) {
  for (int32_t i = 0; p->copy_count > 1 && i < p->param_count; i++) {
    gp_arena *a = &p->arenas[p->param_stage[i]];
    if (p->grads[i]) add_param(p, i, a->grads + p->param_offset[i], a->mirror + p->param_offset[i]);
  }
  for (int32_t x = 0; p->copy_count > 1 && x < p->extra_count; x++) {
    const gp_extra_slot *e = &p->extras[x];
    char *const *extras = p->arenas[e->stage].extras;
    add_param(p, e->param, extras[0] + e->offset, extras[1] + e->offset);
  }
}

/* A parameter that several layers use: add the accumulators in layer order. */
static void reduce_tied(gp_pipeline *p, int32_t stage) {
  for (int32_t layer = 0; layer <= p->layer_count && p->extra_count; layer++)
    for (int32_t x = 0; x < p->extra_count; x++) {
      const gp_extra_slot *e = &p->extras[x];
      if (e->layer != layer || (stage >= 0 && e->stage != stage)) continue;
      add_param(p, e->param, gp_tensor_data(p->grads[e->param]),
                p->arenas[e->stage].extras[0] + e->offset);
    }
}

/* Added once, also when gradients accumulate: what was added is zero afterwards. */
void gp_update_reduce(gp_pipeline *p, int32_t stage) {
  reduce_copies(p);
  reduce_tied(p, stage);
  for (int32_t s = 0; s < p->stage_count; s++) {
    gp_arena *a = &p->arenas[s];
    if (stage >= 0 && s != stage) continue;
    if (a->mirror) memset(a->mirror, 0, a->grad_bytes);
    for (int32_t copy = 0; a->extra_bytes && copy < p->copy_count; copy++)
      memset(a->extras[copy], 0, a->extra_bytes);
  }
}

void gp_update_zero(gp_pipeline *p, int32_t stage) {
  gp_arena *a = &p->arenas[stage];
  if (a->grads) memset(a->grads, 0, a->grad_bytes);
  if (a->mirror) memset(a->mirror, 0, a->grad_bytes);
  for (int32_t copy = 0; a->extra_bytes && copy < p->copy_count; copy++)
    memset(a->extras[copy], 0, a->extra_bytes);
}

/* ---- the barrier --------------------------------------------------------------------------- */

/* By the last device to come. */
static void settle(gp_pipeline *p, gp_run *run) {
  if (atomic_load(&run->failed_order) != INT64_MAX) return;
  gp_update_reduce(p, -1);
  if (p->use.clip_norm > 0) gp_optimizer_clip(p->optimizer, p->use.clip_norm);
}

void gp_update_barrier(gp_worker *worker, gp_run *run, uint32_t step) {
  gp_pipeline *p = worker->pipeline;
  uint32_t wanted = (step + 1) * (uint32_t)run->plan->barrier_parties;
  if (atomic_fetch_add(&run->arrived, 1) + 1 < wanted) {
    gp_worker_await(worker, &run->released, step + 1);
    return;
  }
  settle(p, run);
  atomic_store(&run->released, step + 1);
  for (int32_t d = 0; d < p->device_count; d++) gp_worker_ring(&p->workers[d]);
}

/* ---- updates ------------------------------------------------------------------------------- */

/* Copies share their values on devices that share memory: the first one's device updates them. */
gp_status gp_update_stage(gp_worker *worker, gp_run *run, const gp_task *task, int64_t micro) {
  gp_pipeline *p = worker->pipeline;
  const gp_plan *plan = run->plan;
  const gp_arena *arena = &p->arenas[task->stage];
  const gp_versions *v = &plan->versions[task->stage];
  const gp_feed *feed = &run->feeds[micro / plan->step_micros % run->feed_room];
  int64_t number = micro / gp_run_group(plan);
  size_t replaced = (size_t)(task->version + (micro - task->micro) / gp_run_group(plan));
  if (task->copy || !p->optimizer) return GP_OK;
  if (task->stash && arena->value_bytes)
    memcpy(v->stash + replaced % (size_t)(v->live - 1) * v->stash_bytes, arena->values,
           arena->value_bytes);
  if (plan->batch || plan->update == GP_UPDATE_FREE) gp_update_reduce(p, task->stage);
  atomic_fetch_add(&run->updates, 1);
  GP_TRY(gp_optimizer_update(p->optimizer, worker, task->stage, feed->hyper,
                             run->first_update + number + 1));
  if (worker->spoil && arena->values) memset(arena->values, 0xff, arena->value_bytes);
  if (plan->batch) gp_update_zero(p, task->stage);
  return GP_OK;
}
