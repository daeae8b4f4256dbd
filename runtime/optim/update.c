/* optim/update.c - checks and the choice of the element type around the loops of kernels.inc.
 *
 * A parameter's update reads and writes one element alone, so slices may be cut anywhere and handed
 * to any thread: no bit depends on it. */
#include "optim/optim.h"
#include "optim/rate.h"

#include <math.h>
#include <string.h>

enum {
  LANES = 16,    /* one 512-bit vector of f32 */
  SUM_LANES = 64 /* the fixed order of sums, as in ops/math/lanes.h */
};

/* ---- loops, once per type ------------------------------------------------------------------- */

#define REAL       float
#define BITS       uint32_t
#define INF_BITS   UINT32_C(0x7f800000)
#define SQRT       sqrtf
#define NAME(stem) stem##_f32
#include "optim/kernels.inc"
#undef REAL
#undef BITS
#undef INF_BITS
#undef SQRT
#undef NAME

#define REAL       double
#define BITS       uint64_t
#define INF_BITS   UINT64_C(0x7ff0000000000000)
#define SQRT       sqrt
#define NAME(stem) stem##_f64
#include "optim/kernels.inc"
#undef REAL
#undef BITS
#undef INF_BITS
#undef SQRT
#undef NAME

/* ---- checks --------------------------------------------------------------------------------- */

int gp_optim_moments(const gp_optim_hyper *h) {
  switch (h->kind) {
  case GP_OPTIM_SGD: return h->momentum != 0;
  case GP_OPTIM_ADAM:
  case GP_OPTIM_ADAMW: return 2 + h->amsgrad;
  case GP_OPTIM_ADAMAX:
  case GP_OPTIM_ADADELTA:
  case GP_OPTIM_NADAM:
  case GP_OPTIM_RADAM:
  case GP_OPTIM_RPROP: return 2;
  case GP_OPTIM_RMSPROP: return 1 + (h->momentum != 0) + h->centered;
  case GP_OPTIM_ADAGRAD:
  case GP_OPTIM_LION: return 1;
  }
  return GP_OPTIM_MOMENTS;
}

/* Refuse hyperparameters that would turn every value into NaN, or that torch refuses. */
static gp_status check_hyper(const gp_optim_hyper *h) {
  if (!(h->lr >= 0) || !(h->weight_decay >= 0) || !isfinite(h->lr) || !isfinite(h->weight_decay))
    return gp_fail(GP_EINVAL, "optimizer: lr is %g and weight_decay %g, expected finite and >= 0",
                   h->lr, h->weight_decay);
  if (!(h->momentum >= 0) || (h->nesterov && h->momentum == 0))
    return gp_fail(GP_EINVAL, "optimizer: momentum is %g, expected %s", h->momentum,
                   h->nesterov ? "> 0 for Nesterov" : ">= 0");
  if (h->kind == GP_OPTIM_RPROP && !(h->shrink > 0 && h->shrink < 1 && h->grow > 1 &&
                                     isfinite(h->grow) && h->least > 0 && h->least <= h->most))
    return gp_fail(
        GP_EINVAL,
        "optimizer: etas are %g and %g, step_sizes %g and %g, expected 0 < eta < 1 < eta "
        "and sizes above 0 that rise",
        h->shrink, h->grow, h->least, h->most);
  if (!(h->lr_decay >= 0) || !isfinite(h->lr_decay))
    return gp_fail(GP_EINVAL, "optimizer: lr_decay is %g, expected finite and >= 0", h->lr_decay);
  if (!(h->momentum_decay >= 0) || !isfinite(h->momentum_decay))
    return gp_fail(GP_EINVAL, "optimizer: momentum_decay is %g, expected finite and >= 0",
                   h->momentum_decay);
  if (!(h->beta1 >= 0 && h->beta1 < 1) || !(h->beta2 >= 0 && h->beta2 < 1) || !(h->eps >= 0))
    return gp_fail(GP_EINVAL,
                   "optimizer: betas are %g and %g, eps %g, expected betas in [0, 1) and eps >= 0",
                   h->beta1, h->beta2, h->eps);
  return GP_OK;
}

static bool has_moments(const gp_optim_slice *s, int count) {
  for (int k = 0; k < count; k++)
    if (!s->moments[k]) return false;
  return true;
}

/* A slice needs only the moments that the kind and its settings read. */
static gp_status check_slice(const gp_optim_hyper *hyper, const gp_optim_slice *s) {
  int moments = gp_optim_moments(hyper);
  if (s->dtype != GP_F32 && s->dtype != GP_F64)
    return gp_fail(GP_EDTYPE, "optimizer: values are %s, expected f32 or f64",
                   gp_dtype_name(s->dtype));
  if (s->n && (!s->value || !s->grad || !has_moments(s, moments)))
    return gp_fail(GP_EINVAL, "optimizer: a slice lacks its values, gradients or moments (%d)",
                   moments);
  return GP_OK;
}

/* ---- what the engine calls ------------------------------------------------------------------ */

/* The checks cost nothing beside a slice; engines call this once per slice and thread. */
gp_status gp_optim_update(const gp_optim_hyper *hyper, int64_t step, const gp_optim_slice *slice,
                          int64_t first, int64_t last) {
  GP_TRY(check_hyper(hyper));
  GP_TRY(check_slice(hyper, slice));
  if (step - hyper->since < 1 || first < 0 || last < first || last > slice->n)
    return gp_fail(GP_ERANGE, "optimizer: step %lld, elements %lld to %lld of %lld",
                   (long long)step, (long long)first, (long long)last, (long long)slice->n);
  if (slice->dtype == GP_F32)
    update_f32(hyper, step, slice, first, last);
  else
    update_f64(hyper, step, slice, first, last);
  return GP_OK;
}

/* Sum in double precision for f32 too: the norm of a large model must not lose its
 * small gradients. */
double gp_optim_sum_squares(gp_dtype dtype, int64_t n, const void *data) {
  GP_ASSERT(dtype == GP_F32 || dtype == GP_F64);
  return dtype == GP_F32 ? sum_squares_f32(data, n) : sum_squares_f64(data, n);
}

/* Look at the exponents alone, by comparing integers: a quarter of the time of the squares. */
bool gp_optim_is_finite(gp_dtype dtype, int64_t n, const void *data) {
  GP_ASSERT(dtype == GP_F32 || dtype == GP_F64);
  return dtype == GP_F32 ? is_finite_f32(data, n) : is_finite_f64(data, n);
}

/* Scale, for clipping: one factor for all gradients of a model. */
void gp_optim_scale(gp_dtype dtype, int64_t n, void *data, double factor) {
  GP_ASSERT(dtype == GP_F32 || dtype == GP_F64);
  if (dtype == GP_F32)
    scale_f32(data, n, (float)factor);
  else
    scale_f64(data, n, factor);
}
