/* engine/update/earlier.c - see earlier.h. */
#include "engine/update/earlier.h"

#include "engine/memory/take.h"
#include "engine/update/sums.h"

static const gp_layout_slice *slice_of(const gp_pipeline *p, int32_t holder) {
  return &p->layout.slices[holder];
}

static gp_arena_copy *copy_of(const gp_pipeline *p, int32_t holder) {
  return &p->arenas[holder / p->copy_count].copies[holder % p->copy_count];
}

gp_status gp_earlier_take(gp_pipeline *p) {
  for (int32_t h = 0; h < p->stage_count * p->copy_count; h++) {
    const size_t bytes = slice_of(p, h)->grads;
    const gp_lane *lane = gp_stage_lane(p, h / p->copy_count, h % p->copy_count);
    if (bytes && !copy_of(p, h)->earlier)
      GP_TRY(gp_pipeline_take(p, lane, bytes, (void **)&copy_of(p, h)->earlier));
  }
  return GP_OK;
}

/* Does the worker's device own gradients there? */
static bool is_own(const gp_worker *worker, int32_t holder) {
  const gp_pipeline *p = worker->pipeline;
  return p->placement[holder] == worker->device && slice_of(p, holder)->grads > 0;
}

gp_status gp_earlier_keep(const gp_worker *worker) {
  const gp_pipeline *p = worker->pipeline;
  for (int32_t h = 0; h < p->stage_count * p->copy_count; h++) {
    const gp_layout_slice *slice = slice_of(p, h);
    const gp_arena_copy *own = copy_of(p, h);
    if (is_own(worker, h))
      GP_TRY(gp_lane_copy(&worker->lane, own->earlier, own->grads + slice->begin, slice->grads));
  }
  return GP_OK;
}

gp_status gp_earlier_add(const gp_worker *worker) {
  const gp_pipeline *p = worker->pipeline;
  for (int32_t h = 0; h < p->stage_count * p->copy_count; h++) {
    if (!is_own(worker, h)) continue;
    /* as if all of the stage's gradients lay there */
    const uintptr_t area = (uintptr_t)copy_of(p, h)->earlier - slice_of(p, h)->begin;
    GP_TRY(gp_sum_owned(worker, h / p->copy_count, h % p->copy_count, (const char *)area));
  }
  return GP_OK;
}
