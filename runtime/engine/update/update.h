/* engine/update/update.h - what happens to gradients: reduced, clipped, and made into new values.
 *
 *   update.c      reductions and updates as actions of the schedule
 *   optimizer.h   the update of all parameters, and where its moments lie
 *   clip.c        gradients clipped by their norm
 *   scaling.h     the loss scale of f16 */
#ifndef GP_ENGINE_UPDATE_H
#define GP_ENGINE_UPDATE_H

#include "engine/pipeline.h"

/* update.c */
/* Wait for all devices before a reduction or an update; the last to come before updates adds up and clips. */
gp_status gp_update_barrier(gp_worker *worker, gp_run *run, gp_act before);
/* Add the second copy of a stage's gradients to the first. */
gp_status gp_update_copies(gp_worker *worker, int32_t stage);
/* Add up the accumulators of tied parameters, and wait; stage -1: of all stages. */
gp_status gp_update_tied(gp_pipeline *pipeline, int32_t stage);
/* Update a stage: stash what is still read, update, begin the next batch's gradients. */
gp_status gp_update_stage(gp_worker *worker, gp_run *run, const gp_task *task, int64_t micro);
/* Make the second copies that this device holds like the first ones, where they have memory of their own. */
gp_status gp_update_twins(gp_worker *worker);
/* Let the gradients of a stage (copy 1: of its second one) be zero. */
gp_status gp_update_zero(gp_pipeline *pipeline, int32_t stage, int32_t copy);

/* optimizer.c */
gp_status gp_optimizer_begin(gp_optimizer *optimizer);
/* A pipeline holds it until its workers are done, and for ever where one of them is lost. */
gp_optimizer *gp_optimizer_retain(gp_optimizer *optimizer);
int32_t gp_optimizer_groups(const gp_optimizer *optimizer);
gp_status gp_optimizer_update(gp_optimizer *optimizer, gp_worker *worker, int32_t stage,
                              const gp_optim_hyper *hyper, int64_t step);
gp_status gp_optimizer_clip(gp_optimizer *optimizer, double max);
bool gp_optimizer_uses(const gp_optimizer *optimizer, const gp_pipeline *pipeline);

/* clip.c: of all of them that have a gradient; in one order for every cut */
gp_status gp_gradients_squares(gp_param *const *params, int count, double *sum);
gp_status gp_gradients_scale(gp_param *const *params, int count, double factor);

#endif
