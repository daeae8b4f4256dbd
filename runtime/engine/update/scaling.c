/* engine/update/scaling.c - see scaling.h.
 *
 * Whether gradients are finite is read off the sum of their squares, which is there for clipping
 * anyway: in double precision no sum of squares of finite f32 values overflows.
 * Source: Micikevicius et al., "Mixed Precision Training" (2018), section 3.2; torch.amp.GradScaler
 * for the names and the defaults. */
#include "engine/update/scaling.h"

#include <math.h>

#include "engine/state/pipeline.h"

/* The largest scale: gradients of zero would let it grow for ever. */
static const double largest = 0x1p40;

static void grow(gp_loss_scale *s) {
  s->stuck = 0;
  if (++s->good < s->window) return;
  s->good = 0;
  s->scale = fmin(s->scale * s->growth, largest);
}

/* Make the scale smaller. Fails after too many steps at the smallest one, because then no scale
 * helps. */
static gp_status back_off(gp_loss_scale *s) {
  s->good = 0;
  s->skipped++;
  if (s->scale <= s->min && ++s->stuck >= GP_SKIPS_MOST)
    return gp_fail(
        GP_EFINITE,
        "loss scale: the gradients of %d steps in a row were not finite at the smallest scale, %g; "
        "the f32 or bf16 precision, a smaller learning rate or loss_scale.min may help",
        (int)GP_SKIPS_MOST, s->scale);
  s->scale = fmax(s->scale * s->backoff, s->min);
  return GP_OK;
}

gp_status gp_scaling_settle(gp_pipeline *p, bool finite) {
  /* adding to gradients that are not finite gives no finite ones: the overflow counts once */
  bool before = p->overflow && p->resumed;
  p->overflow = !finite;
  if (finite) return grow(&p->scaling), GP_OK;
  return before ? GP_OK : back_off(&p->scaling);
}

void gp_pipeline_loss_scale(const gp_pipeline *p, gp_loss_scale *scale) { *scale = p->scaling; }

void gp_pipeline_set_loss_scale(gp_pipeline *p, const gp_loss_scale *scale) { p->scaling = *scale; }
