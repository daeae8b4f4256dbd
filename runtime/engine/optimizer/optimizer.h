/* engine/optimizer/optimizer.h - the parameters of an optimizer, and where their moments lie.
 *
 *   optimizer.c   its life, and updates of stages
 *   alone.c       updates and clipping of parameters that no pipeline owns
 *   moments.c     memory beside the values, laid out like them, which follows them to other devices
 *   clip.c        clipping between steps, by the script
 *   skips.h       updates that are skipped, because gradients are not finite */
#ifndef GP_ENGINE_OPTIMIZER_H
#define GP_ENGINE_OPTIMIZER_H

#include "base/space.h"
#include "engine/worker/worker.h"
#include "gpipe/optimizer.h"
#include "optim/optim.h"

typedef struct gp_optimizer_member {
  gp_param *param;
  int32_t group, block;
  int32_t holder; /* the rank that held the value in the last step; -1: none, or all do */
  size_t offset;  /* bytes in the moments of its block */
} gp_optimizer_member;

/* Moments of the members whose values lie in the same memory space. */
typedef struct gp_moment_block {
  gp_space *space; /* NULL: the host's */
  size_t bytes;
  gp_tensor *moments[GP_OPTIM_MOMENTS]; /* laid out like the members; NULL where none is kept */
} gp_moment_block;

/* One fused pass over parameters that lie next to each other in a stage's arena. */
typedef struct gp_update_pass {
  gp_optim_slice slice;
  int32_t group, holder; /* holder: the stage and its copy that updates */
} gp_update_pass;

struct gp_optimizer {
  int moments;                  /* kept for each element */
  gp_optimizer_member *members; /* ordered by address of their values: the order of the arenas */
  gp_param **listed;            /* as they were given; borrowed from the members */
  int32_t member_count, group_count;
  gp_moment_block *blocks;
  int32_t block_count;
  gp_update_pass *passes; /* room for one per member; made anew for every step */
  int32_t pass_count;
  int64_t steps;
  int32_t users; /* references: of the script and of a pipeline, both on the script's thread */
};

enum { GP_MOMENT_ALIGNMENT = 64 }; /* bytes: that of the arenas */

/* Return where the value lies now; a pipeline may have moved it since the last call. */
const void *gp_optimizer_value(const gp_param *param);
/* Allocate zeroed moments for all members. They exist from the start, because a state may be loaded
 * before the first step. */
gp_status gp_moments_make(gp_optimizer *optimizer);
void gp_moments_free(gp_optimizer *optimizer);
/* Move the moments to where the values are: a pipeline that was made after the optimizer may have
 * moved the values. */
gp_status gp_moments_follow(gp_optimizer *optimizer);
/* Set slice->moments to the addresses of a member's moments; NULL for those that are not kept. */
void gp_moments_point(const gp_optimizer *optimizer, const gp_optimizer_member *member,
                      gp_optim_slice *slice);

/* Do what gp_optimizer_step does, for parameters that no pipeline owns. Errors: GP_ESTATE if none
 * has a gradient. */
gp_status gp_optimizer_step_alone(gp_optimizer *optimizer, const gp_optim_hyper *hyper,
                                  bool *skipped);
/* Add up the squares of the gradient of a parameter that no pipeline owns; scale the gradient. */
double gp_alone_squares(const gp_param *param);
void gp_alone_scale(const gp_param *param, double factor);

/* What an update is made with. */
typedef struct gp_update_settings {
  double lr; /* of the first group */
  int64_t step;
  uint64_t hash; /* of the hyper-parameters, and of which parameter is in which group */
} gp_update_settings;
gp_update_settings gp_optimizer_settings(const gp_optimizer *optimizer, const gp_pipeline *owner,
                                         const gp_optim_hyper *hyper);
/* Fail if rank 0 and another rank would make different updates; who: the call, for the text. */
gp_status gp_update_settings_compare(const char *who, const gp_update_settings *first,
                                     const gp_update_settings *other, int rank);

/* Prepare the updates of a step: move the moments, and merge neighbours into passes. */
gp_status gp_optimizer_begin(gp_optimizer *optimizer);
/* Add a reference: a pipeline holds one until its workers are done, and for ever if it loses one of
 * them. */
gp_optimizer *gp_optimizer_retain(gp_optimizer *optimizer);
int32_t gp_optimizer_groups(const gp_optimizer *optimizer);
/* Update what a copy of a stage owns, on its device; hyper: per group. */
gp_status gp_optimizer_update(gp_optimizer *optimizer, gp_worker *worker, int32_t holder,
                              const gp_optim_hyper *hyper, int64_t step);
/* Write the places of its parameters among the pipeline's, in the order given; returns how many. */
int32_t gp_optimizer_list(const gp_optimizer *optimizer, const gp_pipeline *pipeline,
                          int32_t *params);
/* Does the pipeline own all of its parameters? */
bool gp_optimizer_uses(const gp_optimizer *optimizer, const gp_pipeline *pipeline);

#endif
