/* engine/run/weights.h - what a run takes over from the one before, if the weights have not changed
 * in between.
 *
 *   prepared.c    makes what depends on the weights alone once per change of them
 *   unchanged.c   checks that a backward half reads what the forward half read */
#ifndef GP_ENGINE_WEIGHTS_H
#define GP_ENGINE_WEIGHTS_H

#include "gpipe/run.h"

/* Call these around a run that makes no updates and is neither a stream nor a backward half. */
void gp_prepared_begin(gp_pipeline *pipeline);
void gp_prepared_end(gp_pipeline *pipeline);

/* Note what a forward half reads; check it before the backward half. Errors: GP_ESTATE. */
void gp_unchanged_note(gp_pipeline *pipeline, const gp_run_args *args);
gp_status gp_unchanged_check(const gp_pipeline *pipeline, const gp_run_args *args);

#endif
