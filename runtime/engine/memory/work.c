/* engine/memory/work.c - see work.h. */
#include "engine/memory/work.h"

#include "engine/memory/take.h"

static gp_status grow(gp_pipeline *p, int32_t device, size_t bytes) {
  gp_work *work = &p->work[device];
  const gp_lane *lane = gp_device_lane(p, device);
  void *larger;
  GP_TRY(gp_pipeline_take(p, lane, bytes, &larger));
  gp_pipeline_give(p, lane, work->memory, work->bytes);
  *work = (gp_work){larger, bytes};
  return GP_OK;
}

gp_status gp_work_grow(gp_pipeline *p, const gp_plan *plan, bool *moved) {
  for (int32_t d = 0; plan->shares && d < plan->device_count; d++) {
    const size_t bytes = plan->devices[d].work.bytes;
    if (bytes <= p->work[d].bytes) continue;
    GP_TRY(grow(p, d, bytes));
    *moved = true;
  }
  return GP_OK;
}

void gp_work_shrink(gp_pipeline *p) {
  for (int32_t i = 0; i < p->binding_count; i++)
    if (p->bindings[i]->plan->shares) return;
  gp_work_free(p);
}

void gp_work_free(gp_pipeline *p) {
  for (int32_t d = 0; p->work && d < p->device_count; d++) {
    gp_pipeline_give(p, gp_device_lane(p, d), p->work[d].memory, p->work[d].bytes);
    p->work[d] = (gp_work){0};
  }
}
