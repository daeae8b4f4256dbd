/* engine/memory/take.h - memory of a pipeline's devices, counted per device. */
#ifndef GP_ENGINE_TAKE_H
#define GP_ENGINE_TAKE_H

#include "engine/state/pipeline.h"

/* Memory of a lane, zeroed. What lies in the host's memory is taken from the lanes that copy from
 * there, where the pipeline has such: copies then hold nobody up. */
bool gp_pipeline_pins(const gp_pipeline *pipeline, const gp_lane *lane);
gp_status gp_pipeline_take(const gp_pipeline *pipeline, const gp_lane *lane, size_t bytes,
                           void **memory);
void gp_pipeline_give(const gp_pipeline *pipeline, const gp_lane *lane, void *memory, size_t bytes);

#endif
