/* gpipe/optimizer.h - moments and updates of parameters. See gpipe.h for what holds everywhere. */
#ifndef GP_PUBLIC_OPTIMIZER_H
#define GP_PUBLIC_OPTIMIZER_H

#include "gpipe/param.h"
#include "gpipe/update.h"

/* Moments and the number of steps, for parameters of one pipeline or of none. */
typedef struct gp_optimizer gp_optimizer;

/* Parameters that share hyper-parameters. */
typedef struct gp_optim_group {
  gp_param *const *params; /* retained */
  int count;
} gp_optim_group;

/* Make an optimizer whose moments are zero. moments: how many each element has, 0 to
 * GP_OPTIM_MOMENTS; as many as the rule of any of its groups reads. Errors: GP_ENOMEM. */
gp_status gp_optimizer_new(int moments, const gp_optim_group *groups, int group_count,
                           gp_optimizer **optimizer);
void gp_optimizer_free(gp_optimizer *optimizer);
/* Update every parameter that has a gradient; hyper[] has one entry per group. The workers of the
 * stages make the update; the calling thread updates parameters that no pipeline owns, from the
 * gradients that gp_history_backward left. Nothing is updated if gradients of the pipeline are not
 * finite (gp_finite), which *skipped receives, or if the loss scale overflowed (gp_loss_scale).
 * Errors: GP_ESTATE if they belong to two pipelines, or none has a gradient; GP_EINVAL for
 * hyper-parameters out of range or for a rule that reads more moments than there are; GP_EFINITE if
 * gradients are not finite and the pipeline refuses that, or has seen it for too long. Source:
 * optim/optim.h. */
gp_status gp_optimizer_step(gp_optimizer *optimizer, const gp_optim_hyper *hyper, bool *skipped);
/* Updates so far: Adam's bias correction depends on it. */
int64_t gp_optimizer_steps(const gp_optimizer *optimizer);
void gp_optimizer_set_steps(gp_optimizer *optimizer, int64_t steps);
/* Return the k-th moment (0-based) of a parameter, NULL if there is none. Ownership: receives a new
 * reference to memory that lives as long as the optimizer. Errors: GP_ENOMEM. */
gp_status gp_optimizer_moment(const gp_optimizer *optimizer, const gp_param *param, int k,
                              gp_tensor **moment);
/* Scale all gradients so that their global Euclidean norm is at most max; norm receives the norm
 * before that. The sum has one order for every cut; each device of a pipeline does its share. A
 * stream is drained first. */
gp_status gp_clip_grad_norm(gp_param *const *params, int count, double max, double *norm);

#endif
