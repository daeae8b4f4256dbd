/* engine/optimizer/skips.h - counts updates that are skipped, because gradients are not finite. */
#ifndef GP_ENGINE_SKIPS_H
#define GP_ENGINE_SKIPS_H

#include "engine/state/pipeline.h"

/* Count an update that is made (finite) or skipped. Errors: GP_EFINITE if gradients have to be
 * finite, or if too many skipped updates follow each other. */
gp_status gp_skips_count(gp_pipeline *pipeline, bool finite);
/* Has a stage skipped too many updates in a row? In a stream, each stage decides for itself. */
bool gp_skips_are_stuck(const gp_pipeline *pipeline);
/* Count the updates that a stream has skipped, when it is over. Errors: GP_EFINITE if a stage is
 * stuck. */
gp_status gp_skips_end_stream(gp_pipeline *pipeline);

#endif
