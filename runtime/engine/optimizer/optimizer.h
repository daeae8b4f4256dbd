/* engine/optimizer/optimizer.h - the parameters of an optimizer, and where their moments lie.
 *
 *   optimizer.c   its life, and updates of stages
 *   alone.c       updates and clipping of parameters that no pipeline owns
 *   moments.c     memory beside the values, laid out like them, that follows them from device to
 *   device */
#ifndef GP_ENGINE_OPTIMIZER_H
#define GP_ENGINE_OPTIMIZER_H

#include "base/space.h"
#include "engine/worker/worker.h"
#include "gpipe/optimizer.h"
#include "optim/optim.h"

typedef struct gp_optimizer_member {
  gp_param *param;
  int32_t group, block;
  size_t offset; /* bytes in the moments of its block */
} gp_optimizer_member;

/* Moments of the members whose values lie in the same memory. */
typedef struct gp_moment_block {
  gp_space *space; /* NULL: the host's */
  size_t bytes;
  gp_tensor *moments[GP_OPTIM_MOMENTS]; /* laid out like the members; NULL where none is kept */
} gp_moment_block;

/* One fused pass over neighbours of a stage. */
typedef struct gp_update_pass {
  gp_optim_slice slice;
  int32_t group, stage;
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
  int32_t
      users; /* the script, and a pipeline that makes the updates; both on the script's thread */
};

enum { GP_MOMENT_ALIGNMENT = 64 }; /* bytes: that of the arenas */

/* Where the value lies now; a pipeline may have moved it since the last look. */
const void *gp_optimizer_value(const gp_param *param);
/* Moments for all members, zero. They are there from the start: a state may be loaded before the
 * first step. */
gp_status gp_moments_make(gp_optimizer *optimizer);
void gp_moments_free(gp_optimizer *optimizer);
/* Take the moments to where the values are: a pipeline that was made after the optimizer may have
 * moved those. */
gp_status gp_moments_follow(gp_optimizer *optimizer);
/* Write where a member's moments lie: NULL for those that are not kept. */
void gp_moments_point(const gp_optimizer *optimizer, const gp_optimizer_member *member,
                      gp_optim_slice *slice);

/* As gp_optimizer_step, where no pipeline owns any of the parameters. Errors: GP_ESTATE where none
 * has a gradient. */
gp_status gp_optimizer_step_alone(gp_optimizer *optimizer, const gp_optim_hyper *hyper,
                                  bool *skipped);
/* Of the gradient of a parameter that no pipeline owns: its sum of squares; itself, scaled. */
double gp_alone_squares(const gp_param *param);
void gp_alone_scale(const gp_param *param, double factor);

gp_status gp_optimizer_begin(gp_optimizer *optimizer);
/* A pipeline holds it until its workers are done, and for ever where one of them is lost. */
gp_optimizer *gp_optimizer_retain(gp_optimizer *optimizer);
int32_t gp_optimizer_groups(const gp_optimizer *optimizer);
/* Update a stage on its device; hyper: per group. */
gp_status gp_optimizer_update(gp_optimizer *optimizer, gp_worker *worker, int32_t stage,
                              const gp_optim_hyper *hyper, int64_t step);
/* The places of its parameters among the pipeline's, in the order given; returns how many. */
int32_t gp_optimizer_list(const gp_optimizer *optimizer, const gp_pipeline *pipeline,
                          int32_t *params);
bool gp_optimizer_uses(const gp_optimizer *optimizer, const gp_pipeline *pipeline);

#endif
