/* engine/run/agree.h - how a run over several ranks begins and ends. */
#ifndef GP_ENGINE_AGREE_H
#define GP_ENGINE_AGREE_H

#include "engine/state/pipeline.h"

/* Exchange what this rank's devices have made of the run: failures, losses, counters, outputs. All
 * ranks end with the same. Call it when the workers are done, before gp_run_finish. Errors: only
 * through run->status. */
void gp_run_agree(gp_pipeline *pipeline);
/* Take part in a run that this rank cannot begin: the others fail with this rank's text. */
gp_status gp_run_refuse(gp_pipeline *pipeline, gp_status status);

#endif
