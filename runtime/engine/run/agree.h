/* engine/run/agree.h - how a run over several ranks begins and ends. */
#ifndef GP_ENGINE_AGREE_H
#define GP_ENGINE_AGREE_H

#include "engine/state/pipeline.h"

/* Exchange what this rank's devices have made of the run: failures, losses, counters, outputs. All
 * ranks end with the same. Call it when the workers are done, before gp_run_finish. Errors: only
 * through run->status. */
void gp_run_agree(gp_pipeline *pipeline);
/* Meet the other ranks after a mini-batch of a stream was given: share the losses up to the
 * `known`-th one, and find out whether a rank has to end the stream. interrupted receives whether
 * one was interrupted. Errors: only through the run, which has failed then. */
bool gp_stream_meet(gp_pipeline *pipeline, const gp_minibatch *batch, int64_t known,
                    bool *interrupted);
/* Fail the run unless a rank has been given the same mini-batch as rank 0, and updates as it does.
 * Returns whether it has failed. */
bool gp_run_parts(gp_pipeline *pipeline, int32_t rank, bool same_batch, bool same_update);
/* Seconds to wait for the others: after the watchdog's time they have given up, too. */
double gp_run_patience(const gp_pipeline *pipeline);
/* A run whose end is not agreed upon is over for good: the ranks may have gone different ways. */
void gp_run_lose(gp_pipeline *pipeline, gp_status status);
/* Take part in a run that this rank cannot begin: the others fail with this rank's text. */
gp_status gp_run_refuse(gp_pipeline *pipeline, gp_status status);

#endif
