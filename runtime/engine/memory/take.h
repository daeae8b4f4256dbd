/* engine/memory/take.h - allocates and frees memory of a pipeline's devices, counted per device. */
#ifndef GP_ENGINE_TAKE_H
#define GP_ENGINE_TAKE_H

#include "engine/state/pipeline.h"

/* Is memory for this lane pinned? It is if the lane works in host memory and a lane of the pipeline
 * copies from there: such copies then block no thread. */
bool gp_pipeline_pins(const gp_pipeline *pipeline, const gp_lane *lane);
/* Allocate zeroed memory for a lane; free it. */
gp_status gp_pipeline_take(const gp_pipeline *pipeline, const gp_lane *lane, size_t bytes,
                           void **memory);
void gp_pipeline_give(const gp_pipeline *pipeline, const gp_lane *lane, void *memory, size_t bytes);

#endif
