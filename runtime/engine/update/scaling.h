/* engine/update/scaling.h - the loss scale of f16: gradients are made larger, so that small ones do
 * not vanish, and brought back before anybody reads them.
 *
 * The scale stays the same through a run: it goes out with the step blocks, and what the run's
 * gradients are divided by is the same number. Where they are not finite nothing is updated. */
#ifndef GP_ENGINE_SCALING_H
#define GP_ENGINE_SCALING_H

#include "gpipe/pipeline.h"

/* Note whether the gradients are finite and settle the scale of the next run. Errors: GP_EFINITE
 * where the smallest scale did not help for too long. */
gp_status gp_scaling_settle(gp_pipeline *pipeline, bool finite);

#endif
