/* engine/update/update.h - what happens to gradients: reduced, clipped, and made into new values.
 *
 *   update.c      reductions and updates as actions of the schedule
 *   vote.h        whether all stages are updated
 *   norm.c        the norm of all gradients, and whether they are numbers
 *   scaling.h     the loss scale of f16 */
#ifndef GP_ENGINE_UPDATE_H
#define GP_ENGINE_UPDATE_H

#include "engine/state/pipeline.h"

/* update.c */
/* Run a task that ends a mini-batch (gp_act_ends); a stage's on the device of its first copy. */
gp_status gp_update_task(gp_worker *worker, gp_run *run, const gp_task *task, int64_t micro);
/* Let the gradients of a stage (copy 1: of its second one) be zero. */
gp_status gp_update_zero(gp_pipeline *pipeline, int32_t stage, int32_t copy);
/* Let those of the task's stage that its program does not write be zero. */
gp_status gp_update_open(const gp_worker *worker, const gp_task *task);
/* Let a backward pass add to those that are there: bring them to the loss scale of what is
 * added. */
gp_status gp_update_resume(gp_pipeline *pipeline, int32_t stage, int32_t copy);

/* norm.c */
/* Is a norm needed, or only whether the gradients are finite? */
bool gp_norm_needs_squares(const gp_pipeline *pipeline);
/* A stage's part of it, on its device; when all votes are there: what becomes of the step; scale
 * accordingly. */
gp_status gp_norm_stage(gp_pipeline *pipeline, int32_t stage);
gp_status gp_norm_settle(gp_pipeline *pipeline, gp_verdict *verdict);
gp_status gp_norm_clip(const gp_pipeline *pipeline, int32_t stage, const gp_verdict *verdict);

#endif
