/* engine/update/scaling.h - the loss scale of f16: gradients are made larger, so that small ones do not vanish, and
 * brought back before anybody reads them.
 *
 * The scale stays the same through a run: it goes out with the step blocks, and what the run's gradients are
 * divided by is the same number. Where they are not finite nothing is updated. */
#ifndef GP_ENGINE_SCALING_H
#define GP_ENGINE_SCALING_H

#include "gpipe/pipeline.h"

/* Divide the gradients by the scale if they are finite, note it if they are not, and settle the scale of the
 * next run. The devices rest. Errors: GP_EFINITE where the smallest scale did not help for too long. */
gp_status gp_scaling_settle(gp_pipeline *pipeline);
/* Before a run that adds to gradients: let them have the scale of what it adds. */
gp_status gp_scaling_resume(gp_pipeline *pipeline);

#endif
