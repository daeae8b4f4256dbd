/* engine/memory/work.h - the work areas of devices (plan/memory/work.h): memory that the plans of a
 * pipeline lend to each other, because only one of them runs at a time. */
#ifndef GP_ENGINE_WORK_H
#define GP_ENGINE_WORK_H

#include "engine/state/binding.h"
#include "engine/state/pipeline.h"

/* Make the shared work areas as large as the plan needs them. Contents are lost; *moved: an area
 * lies elsewhere now. On failure the old ones stay. Errors: GP_ENOMEM. */
gp_status gp_work_grow(gp_pipeline *pipeline, const gp_plan *plan, bool *moved);
/* Free the areas if no plan of the pipeline shares them. */
void gp_work_shrink(gp_pipeline *pipeline);
void gp_work_free(gp_pipeline *pipeline);

/* The work area of a device, as the tasks of a plan use it. */
static inline char *gp_work_area(const gp_binding *b, int32_t device) {
  if (b->plan->shares) return b->pipeline->work[device].memory;
  return b->devices[device].block + b->plan->devices[device].work.offset;
}

#endif
