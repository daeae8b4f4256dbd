/* ops/activation/gelu.c - x times the normal distribution function of x, and its gradient.
 *
 * There is the erf form, and the tanh form of the original paper, written as a sigmoid because
 * (1 + tanh u) / 2 = sigmoid(2 u) keeps its digits where x is far below 0.
 * Source: Hendrycks and Gimpel, "Gaussian error linear units" (2016), section 2. */
#include "ops/constants.h"
#include "ops/elementwise/loops.h"

/* The factor is bounded where the result is x or 0 exactly: 0 * infinity would be NaN. */
static inline float bounded32(float x) {
  x = x < -GP_GELU_BOUND_F32 ? -GP_GELU_BOUND_F32 : x;
  return x > GP_GELU_BOUND_F32 ? GP_GELU_BOUND_F32 : x;
}

static inline double bounded64(double x) {
  x = x < -GP_GELU_BOUND_F64 ? -GP_GELU_BOUND_F64 : x;
  return x > GP_GELU_BOUND_F64 ? GP_GELU_BOUND_F64 : x;
}

/* P(x), the normal distribution function: below 0 the double form keeps its digits. */
static inline float normal32(float x) { return 0.5f * (1.0f + gp_erff(x * (float)GP_ROOT_HALF)); }
static double normal64(double x) { return 0.5 * erfc(-x * GP_ROOT_HALF); }

static inline float gate32(float x) {
  return gp_sigmoidf((float)GP_TWICE_SLOPE * (x + (float)GP_GELU_CUBIC * x * x * x));
}

static double gate64(double x) {
  return 1.0 / (1.0 + exp(-GP_TWICE_SLOPE * (x + GP_GELU_CUBIC * x * x * x)));
}

static inline float low32(float x) { return x < -GP_GELU_BOUND_F32 ? -GP_GELU_BOUND_F32 : x; }
static inline double low64(double x) { return x < -GP_GELU_BOUND_F64 ? -GP_GELU_BOUND_F64 : x; }

GP_MAP1(erf_f32, float, float, low32(a) * normal32(a))
GP_MAP1(erf_f64, double, double, low64(a) * normal64(a))
GP_MAP1(tanh_f32, float, float, low32(a) * gate32(a))
GP_MAP1(tanh_f64, double, double, low64(a) * gate64(a))

/* P(x) + x p(x). */
static inline float erf_slope32(float x) {
  x = bounded32(x);
  return normal32(x) + x * (float)GP_ROOT_2_PI * gp_expf(-0.5f * x * x);
}

static double erf_slope64(double x) {
  x = bounded64(x);
  return normal64(x) + x * GP_ROOT_2_PI * exp(-0.5 * x * x);
}

/* s + x s (1 - s) d(2 u)/dx. */
static inline float tanh_slope32(float x) {
  x = bounded32(x);
  float s = gate32(x);
  return s +
         x * s * (1.0f - s) * (float)GP_TWICE_SLOPE * (1.0f + 3.0f * (float)GP_GELU_CUBIC * x * x);
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
