/* engine/update/scaling.c - see scaling.h.
 *
 * Whether gradients are finite is read off the sum of their squares, which is there for clipping anyway: in
 * double precision no sum of squares of finite f32 values overflows.
 * Source: Micikevicius et al., "Mixed Precision Training" (2018), section 3.2; torch.amp.GradScaler for the
 * names and the defaults. */
#include "engine/update/scaling.h"

#include <math.h>

#include "engine/pipeline.h"
#include "engine/update/update.h"

enum { STUCK = 20 }; /* runs in a row at the smallest scale: no scale will help then */

/* Gradients of zero would let it grow for ever. */
static const double largest = 0x1p40;

static bool is_scaled(const gp_pipeline *p) { return p->scaling.scale > 0; }

static void grow(gp_loss_scale *s) {
  s->stuck = 0;
  if (++s->good < s->window) return;
  s->good = 0;
  s->scale = fmin(s->scale * s->growth, largest);
}

static gp_status back_off(gp_loss_scale *s) {
  s->good = 0;
  s->skipped++;
  if (s->scale <= s->min && ++s->stuck >= STUCK)
    return gp_fail(
        GP_EFINITE,
        "loss scale: the gradients of %d steps in a row were not finite at the smallest scale, %g; "
        "the f32 or bf16 precision, a smaller learning rate or loss_scale.min may help",
        STUCK, s->scale);
  s->scale = fmax(s->scale * s->backoff, s->min);
  return GP_OK;
}

/* Whoever adds to gradients after an overflow gets no finite ones any more: that counts once. */
gp_status gp_scaling_settle(gp_pipeline *p) {
  bool before = p->overflow && p->resumed;
  double squares;
  if (!is_scaled(p)) return GP_OK;
  GP_TRY(gp_gradients_squares(p->params, p->param_count, &squares));
  p->overflow = !isfinite(squares);
  GP_TRY(gp_gradients_scale(p->params, p->param_count, 1 / p->scaling.scale));
  if (!p->overflow) return grow(&p->scaling), GP_OK;
  return before ? GP_OK : back_off(&p->scaling);
}

gp_status gp_scaling_resume(gp_pipeline *p) {
  if (!is_scaled(p)) return GP_OK;
  return gp_gradients_scale(p->params, p->param_count, p->scaling.scale);
}

void gp_pipeline_loss_scale(const gp_pipeline *p, gp_loss_scale *scale) { *scale = p->scaling; }

void gp_pipeline_set_loss_scale(gp_pipeline *p, const gp_loss_scale *scale) { p->scaling = *scale; }
