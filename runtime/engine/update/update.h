/* engine/update/update.h - what happens to gradients: they are added up, clipped and applied.
 *
 *   update.c      updates as actions of the schedule
 *   sums.h        sums of gradients over copies, layers and micro-batches
 *   vote.h        whether all stages are updated
 *   values.h      replicas of a stream take over the values that others have updated
 *   norm.c        the norm of all gradients, and whether they are finite
 *   scaling.h     the loss scale of f16 */
#ifndef GP_ENGINE_UPDATE_H
#define GP_ENGINE_UPDATE_H

#include "engine/state/pipeline.h"

/* update.c */
/* Run a task that ends a mini-batch (gp_act_ends). Each copy of a stage does so for what it
 * owns. */
gp_status gp_update_task(gp_worker *worker, gp_run *run, const gp_task *task, int64_t micro);
/* Zero the gradients of one copy of a stage. */
gp_status gp_update_zero(gp_pipeline *pipeline, int32_t stage, int32_t copy);
/* Zero the gradients of the task's stage that its program does not write. */
gp_status gp_update_open(const gp_worker *worker, const gp_task *task);
/* Prepare gradients for a backward pass that adds to them: bring them to the loss scale of what is
 * added. */
gp_status gp_update_resume(gp_pipeline *pipeline, int32_t stage, int32_t copy);

/* norm.c */
/* Are sums of squares needed, or only a check that the gradients are finite? */
bool gp_norm_needs_squares(const gp_pipeline *pipeline);
/* Compute the sums of squares of the gradients that a copy of a stage owns, or check them, on its
 * device. */
gp_status gp_norm_stage(gp_pipeline *pipeline, int32_t stage, int32_t copy);
/* Decide what becomes of the gradients, when all votes are there. */
gp_status gp_norm_settle(gp_pipeline *pipeline, gp_verdict *verdict);
/* Scale gradients as the verdict says. */
gp_status gp_norm_clip(const gp_gradients *gradients, const gp_verdict *verdict);

#endif
