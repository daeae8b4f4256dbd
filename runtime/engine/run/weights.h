/* engine/run/weights.h - what a run may take over from the one before, because nobody wrote to the
 * weights in between.
 *
 *   prepared.c    what depends on the weights alone is made once per change of them
 *   unchanged.c   what a backward half reads again is what the forward half read */
#ifndef GP_ENGINE_WEIGHTS_H
#define GP_ENGINE_WEIGHTS_H

#include "gpipe/run.h"

/* Around a run without updates and streams that is no backward half. */
void gp_prepared_begin(gp_pipeline *pipeline);
void gp_prepared_end(gp_pipeline *pipeline);

/* Of the forward half; before the backward half. Errors: GP_ESTATE. */
void gp_unchanged_note(gp_pipeline *pipeline, const gp_run_args *args);
gp_status gp_unchanged_check(const gp_pipeline *pipeline, const gp_run_args *args);

#endif
