/* engine/update.c - reductions and updates as actions of the schedule.
 *
 * With a barrier every device waits until all gradients are there; the last to come adds up what tied
 * parameters have and clips, and a failure anywhere makes every update a pass-through. Without one a stage
 * is updated by its own device as soon as its own gradients are there.
 */
#include <limits.h>
#include <string.h>

#include "base/tensor.h"
#include "engine/pipeline.h"

/* ---- reductions ---------------------------------------------------------------------------- */

enum { PIECE = 16384 }; /* elements that one thread adds at a time */

/* n elements of one type to be added, from one memory to another. */
typedef struct sum {
  gp_dtype dtype;
  int64_t n;
  void *to, *from;
} sum;

static void add_range(const sum *s, int64_t first, int64_t last) {
  float *to32 = s->to;
  double *to64 = s->to;
  const float *from32 = s->from;
  const double *from64 = s->from;
  for (int64_t i = first; s->dtype == GP_F32 && i < last; i++) to32[i] += from32[i];
  for (int64_t i = first; s->dtype != GP_F32 && i < last; i++) to64[i] += from64[i];
}

static gp_status add_piece(void *context, int64_t index, int thread) {
  const sum *s = context;
  int64_t last = (index + 1) * PIECE;
  (void)thread;
  add_range(s, index * PIECE, last < s->n ? last : s->n);
  return GP_OK;
}

/* On the threads of the device. */
static void add_with(gp_worker *worker, sum s) {
  gp_team_run(worker->team, (s.n + PIECE - 1) / PIECE, add_piece, &s);
}

/* Of the gradient of param i. */
static sum sum_of(const gp_pipeline *p, int32_t i, void *to, void *from) {
  return (sum){gp_tensor_meta(p->grads[i])->dtype, gp_tensor_numel(p->grads[i]), to, from};
}

/* The second copy's gradients of a stage to the first's, parameter by parameter. */
void gp_update_copies(gp_worker *worker, int32_t stage) {
  const gp_pipeline *p = worker->pipeline;
  const gp_arena *a = &p->arenas[stage];
  for (int32_t i = 0; i < p->param_count; i++) {
    size_t at = p->param_offset[i];
    if (p->param_stage[i] == stage && p->grads[i])
      add_with(worker, sum_of(p, i, a->grads + at, a->mirror + at));
  }
  for (int32_t x = 0; x < p->extra_count; x++) {
    const gp_extra_slot *e = &p->extras[x];
    if (e->stage == stage)
      add_with(worker, sum_of(p, e->param, a->extras[0] + e->offset, a->extras[1] + e->offset));
  }
  gp_update_zero(worker->pipeline, stage, 1);
}

/* A parameter that several layers use: add the accumulators in layer order. Added once, also when gradients
 * accumulate: what was added is zero afterwards. */
void gp_update_tied(gp_pipeline *p, int32_t stage) {
  for (int32_t layer = 0; layer <= p->layer_count && p->extra_count; layer++)
    for (int32_t x = 0; x < p->extra_count; x++) {
      const gp_extra_slot *e = &p->extras[x];
      if (e->layer != layer || (stage >= 0 && e->stage != stage)) continue;
      sum s = sum_of(p, e->param, gp_tensor_data(p->grads[e->param]),
                     p->arenas[e->stage].extras[0] + e->offset);
      add_range(&s, 0, s.n);
    }
  for (int32_t s = 0; s < p->stage_count; s++)
    if ((stage < 0 || s == stage) && p->arenas[s].extra_bytes)
      memset(p->arenas[s].extras[0], 0, p->arenas[s].extra_bytes);
}

void gp_update_zero(gp_pipeline *p, int32_t stage, int32_t copy) {
  const gp_arena *a = &p->arenas[stage];
  char *grads = copy ? a->mirror : a->grads;
  if (grads) memset(grads, 0, a->grad_bytes);
  if (a->extra_bytes) memset(a->extras[copy], 0, a->extra_bytes);
}

/* ---- the barrier --------------------------------------------------------------------------- */

/* By the last device to come, where updates follow. */
static void settle(gp_pipeline *p, gp_run *run) {
  if (atomic_load(&run->failed_order) != INT64_MAX) return;
  gp_update_tied(p, -1);
  if (p->use.clip_norm > 0) gp_optimizer_clip(p->optimizer, p->use.clip_norm);
}

/* Every worker counts the barriers that it has come to; all come to the same ones. */
void gp_update_barrier(gp_worker *worker, gp_run *run, gp_act before) {
  gp_pipeline *p = worker->pipeline;
  uint32_t mine = ++worker->barriers, wanted = mine * (uint32_t)run->plan->barrier_parties;
  if (atomic_fetch_add(&run->arrived, 1) + 1 < wanted) {
    gp_worker_await(worker, &run->released, mine);
    return;
  }
  if (before == GP_ACT_U) settle(p, run);
  atomic_store(&run->released, mine);
  for (int32_t d = 0; d < p->device_count; d++) gp_worker_ring(&p->workers[d]);
}

/* ---- updates ------------------------------------------------------------------------------- */

/* Copies share their values on devices that share memory: the first one's device updates them. */
gp_status gp_update_stage(gp_worker *worker, gp_run *run, const gp_task *task, int64_t micro) {
  gp_pipeline *p = worker->pipeline;
  const gp_plan *plan = run->plan;
  gp_arena *arena = &p->arenas[task->stage];
  const gp_versions *v = &plan->versions[task->stage];
  const gp_feed *feed = &run->feeds[micro / plan->step_micros % run->feed_room];
  int64_t number = micro / gp_run_group(plan);
  size_t replaced = (size_t)(task->version + (micro - task->micro) / gp_run_group(plan));
  if (task->copy || !p->optimizer) return GP_OK;
  if (task->stash && arena->value_bytes)
    memcpy(v->stash + replaced % (size_t)(v->live - 1) * v->stash_bytes, arena->values,
           arena->value_bytes);
  if (gp_plan_streams(plan)) gp_update_tied(p, task->stage);
  gp_status status = gp_optimizer_update(p->optimizer, worker, task->stage, feed->hyper,
                                         run->first_update + number + 1);
  arena->torn = status != GP_OK;
  GP_TRY(status);
  arena->updates++;
  if (worker->spoil && arena->values) memset(arena->values, 0xff, arena->value_bytes);
  if (plan->batch) gp_update_zero(p, task->stage, task->copy);
  return GP_OK;
}
