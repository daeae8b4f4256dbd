/* engine/optimizer/skips.h - updates that are left out, because gradients are not finite. */
#ifndef GP_ENGINE_SKIPS_H
#define GP_ENGINE_SKIPS_H

#include "engine/state/pipeline.h"

/* Count an update that is made, or left out. Errors: GP_EFINITE where that is refused, or too many
 * follow each other. */
gp_status gp_skips_count(gp_pipeline *pipeline, bool finite);
/* In a stream, stages decide for themselves: has one of them left out too many updates in a row?
 * When it is over, count those that were left out. Errors: GP_EFINITE where they were too many. */
bool gp_skips_are_stuck(const gp_pipeline *pipeline);
gp_status gp_skips_end_stream(gp_pipeline *pipeline);

#endif
