/* engine/update/norm.c - the norm of all gradients, and whether they are finite: NORM and CLIP.
 *
 * NORM runs for each stage: the device that updates a parameter adds up the squares of its gradient
 * or, if no norm is needed, only checks that they are finite. One device receives all sums with the
 * votes and adds one number for each parameter, in the same order for every cut. CLIP then scales
 * the gradients on the same devices, and U updates the parameters or skips it.
 */
#include <math.h>

#include "base/tensor.h"
#include "engine/bind/votes.h"
#include "engine/optimizer/skips.h"
#include "engine/state/pipeline.h"
#include "engine/update/scaling.h"
#include "engine/update/update.h"

/* ---- a stage's part ------------------------------------------------------------------------ */

bool gp_norm_needs_squares(const gp_pipeline *p) {
  return p->scaling.scale > 0 || (p->optimizer && p->use.clip_norm > 0);
}

gp_status gp_norm_stage(gp_pipeline *p, int32_t stage, int32_t copy) {
  gp_gradients *list = &p->arenas[stage].copies[copy].gradients;
  if (!list->count) return GP_OK;
  return gp_norm_needs_squares(p) ? gp_gradients_squares(list) : gp_gradients_look(list);
}

gp_status gp_norm_clip(const gp_gradients *list, const gp_verdict *v) {
  if (!v->goes || !list->count) return GP_OK;
  if (v->unscale != 1) GP_TRY(gp_gradients_scale(list, v->unscale));
  return v->clip != 1 ? gp_gradients_scale(list, v->clip) : GP_OK;
}

/* ---- all of them --------------------------------------------------------------------------- */

/* The sum of squares of one parameter; 0 where it has no gradient. */
static double square_of(const gp_pipeline *p, int32_t i) {
  if (p->grad_place[i] < 0) return 0;
  return gp_vote_sums(p->run.binding, p->param_stage[i], p->layout.at[i].owner)[p->grad_place[i]];
}

/* Return the factor that brings the norm of the optimizer's gradients down to clip_norm. It is 1 if
 * the norm is not above that, or if this pass updates nothing: pipe:backward leaves gradients as
 * they are. */
static double clip_factor(const gp_pipeline *p, double unscale) {
  double sum = 0, max = p->use.clip_norm;
  if (!p->optimizer || max <= 0 || p->run.plan->update == GP_UPDATE_NONE) return 1;
  /* in the order in which the optimizer was given its parameters */
  for (int32_t k = 0; k < p->listed_count; k++) sum += square_of(p, p->listed[k]);
  double norm = sqrt(sum) * unscale;
  return norm > max ? max / (norm + 1e-6) : 1;
}

gp_status gp_norm_settle(gp_pipeline *p, gp_verdict *v) {
  bool finite = true;
  for (int32_t s = 0; s < p->stage_count; s++)
    for (int32_t copy = 0; copy < p->copy_count; copy++)
      finite = finite && gp_sums_are_finite(gp_vote_sums(p->run.binding, s, copy),
                                            p->arenas[s].copies[copy].gradients.count);
  if (p->scaling.scale > 0) {
    v->unscale = 1 / p->scaling.scale;
    GP_TRY(gp_scaling_settle(p, finite));
  } else if (p->check != GP_FINITE_IGNORE) {
    p->overflow = !finite;
    GP_TRY(gp_skips_count(p, finite));
  }
  v->overflow = p->overflow;
  if (!p->overflow) v->clip = clip_factor(p, v->unscale);
  return GP_OK;
}
