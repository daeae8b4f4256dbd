/* engine/update/scaling.h - the loss scale of f16: it makes gradients larger, so that small ones do
 * not vanish, and they are divided by it before they are used.
 *
 * The scale stays the same during a run: it goes out with the step blocks, and the run's gradients
 * are divided by the same number. If they are not finite, nothing is updated. */
#ifndef GP_ENGINE_SCALING_H
#define GP_ENGINE_SCALING_H

#include "gpipe/pipeline.h"

/* Note whether the gradients are finite and set the scale of the next run. Errors: GP_EFINITE if
 * too many steps in a row have failed at the smallest scale. */
gp_status gp_scaling_settle(gp_pipeline *pipeline, bool finite);

#endif
