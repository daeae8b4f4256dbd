/* ops/activation/gelu.c - x times the normal distribution function of x, and its gradient.
 *
 * There is the erf form, and the tanh form of the original paper, written as a sigmoid because
 * (1 + tanh u) / 2 = sigmoid(2 u) keeps its digits where x is far below 0.
 * Source: Hendrycks and Gimpel, "Gaussian error linear units" (2016), section 2. */
#include "ops/constants.h"
#include "ops/elementwise/loops.h"
#include "ops/math/falling_exp.h"

/* Bound the factor where the result is x or 0 exactly: 0 * infinity would be NaN. */
static inline double bounded64(double x) {
  x = x < -GP_GELU_BOUND_F64 ? -GP_GELU_BOUND_F64 : x;
  return x > GP_GELU_BOUND_F64 ? GP_GELU_BOUND_F64 : x;
}

/* The normal distribution function P(-u) for u >= 0, 0 from 9 on (1.1e-19 there): half of 2^-t(u).
 * Errors stay below 6e-8, those of P(-3) below 2e-6 of it.
 * Source: t / u is a minimax fit of -log2(erfc(u / sqrt(2))) / u, weighted for it. */
static inline float tail32(float u) {
  float t = -6.717909007e-10f;
  t = GP_MADDF(t, u, 3.279814464e-8f);
  t = GP_MADDF(t, u, -6.905980285e-7f);
  t = GP_MADDF(t, u, 8.130060451e-6f);
  t = GP_MADDF(t, u, -5.675132343e-5f);
  t = GP_MADDF(t, u, 2.055047662e-4f);
  t = GP_MADDF(t, u, 1.601228432e-4f);
  t = GP_MADDF(t, u, -7.142430637e-3f);
  t = GP_MADDF(t, u, 5.256734043e-2f);
  t = GP_MADDF(t, u, 4.591837823e-1f);
  t = GP_MADDF(t, u, 1.151107669f);
  const float half = 0.5f * gp_falling_exp2f(-t * u);
  return u > 9.0f ? 0.0f : half;
}

/* P(x), which keeps its digits below 0. */
static inline float normal32(float x) {
  const float tail = tail32(fabsf(x));
  return x < 0.0f ? tail : 1.0f - tail;
}
static double normal64(double x) { return 0.5 * erfc(-x * GP_ROOT_HALF); }

/* exp(-2 u) for x >= 0, by a power of two: the factor is in the constants. */
static inline float beyond32(float x) {
  const float line = (float)(GP_TWICE_SLOPE * GP_LOG2_E);
  const float cube = (float)(GP_TWICE_SLOPE * GP_LOG2_E * GP_GELU_CUBIC);
  return gp_falling_exp2f(-x * GP_MADDF(x * x, cube, line));
}

static double gate64(double x) {
  return 1.0 / (1.0 + exp(-GP_TWICE_SLOPE * (x + GP_GELU_CUBIC * x * x * x)));
}

static inline float low32(float x) { return x < -GP_GELU_BOUND_F32 ? -GP_GELU_BOUND_F32 : x; }
static inline double low64(double x) { return x < -GP_GELU_BOUND_F64 ? -GP_GELU_BOUND_F64 : x; }

GP_MAP1(erf_f32, float, float, low32(a) * normal32(a))
GP_MAP1(erf_f64, double, double, low64(a) * normal64(a))
/* x / (1 + e) above 0, x e / (1 + e) below, where e is small. */
static inline float tanh32(float x) {
  const float e = beyond32(fabsf(x)), low = low32(x), part = low * e;
  return (x < 0.0f ? part : low) / (1.0f + e);
}

GP_MAP1(tanh_f32, float, float, tanh32(a))
GP_MAP1(tanh_f64, double, double, low64(a) * gate64(a))

/* P(x) + x p(x). */
static inline float erf_slope32(float x) {
  float size = fabsf(x);
  size = size > GP_GELU_BOUND_F32 ? GP_GELU_BOUND_F32 : size;
  const float half_log2_e = (float)(0.5 * GP_LOG2_E);
  const float density = (float)GP_ROOT_2_PI * gp_falling_exp2f(-half_log2_e * size * size);
  return normal32(x) + copysignf(size * density, x);
}

static double erf_slope64(double x) {
  x = bounded64(x);
  return normal64(x) + x * GP_ROOT_2_PI * exp(-0.5 * x * x);
}

/* s + x s (1 - s) d(2 u)/dx. */
static inline float tanh_slope32(float x) {
  float size = fabsf(x);
  size = size > GP_GELU_BOUND_F32 ? GP_GELU_BOUND_F32 : size;
  const float e = beyond32(size), upper = 1.0f / (1.0f + e), lower = e * upper;
  const float rise = (float)(3.0 * GP_TWICE_SLOPE * GP_GELU_CUBIC);
  const float du = copysignf(size * GP_MADDF(size * size, rise, (float)GP_TWICE_SLOPE), x);
  return GP_MADDF(du, upper * lower, x < 0.0f ? lower : upper);
}

static double tanh_slope64(double x) {
  x = bounded64(x);
  double s = gate64(x);
  return s + x * s * (1.0 - s) * GP_TWICE_SLOPE * (1.0 + 3.0 * GP_GELU_CUBIC * x * x);
}

GP_MAP2(erf_dx_f32, float, float, (a * erf_slope32(b)))
GP_MAP2(erf_dx_f64, double, double, (a * erf_slope64(b)))
GP_MAP2(tanh_dx_f32, float, float, (a * tanh_slope32(b)))
GP_MAP2(tanh_dx_f64, double, double, (a * tanh_slope64(b)))

/* ---- the ops ------------------------------------------------------------------------------- */

static gp_status run_gelu(const gp_call *call, gp_span span) {
  if (call->attr->gelu.mode == GP_GELU_TANH) return gp_map_float(call, span, tanh_f32, tanh_f64);
  return gp_map_float(call, span, erf_f32, erf_f64);
}

static gp_status run_gelu_dx(const gp_call *call, gp_span span) {
  if (call->attr->gelu_dx.mode == GP_GELU_TANH)
    return gp_map_float(call, span, tanh_dx_f32, tanh_dx_f64);
  return gp_map_float(call, span, erf_dx_f32, erf_dx_f64);
}

static gp_status vjp(gp_vjp *v) {
  const gp_ref in[] = {v->dout[0], v->in[0]};
  const gp_attrs attrs = {.gelu_dx = {.mode = v->attr->gelu.mode}};
  return gp_build(v->builder, GP_OP_gelu_dx, &attrs, in, 2, &v->din[0]);
}

GP_MAP_OP(gelu, 1, .infer = gp_map_infer, .vjp = vjp, .cost = gp_map_cost_heavy)

GP_MAP_OP(gelu_dx, 2, .infer = gp_map_dx_infer, .cost = gp_map_cost_heavy)
