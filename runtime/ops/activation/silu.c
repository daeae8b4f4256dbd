/* ops/activation/silu.c - x -> x sigmoid(x), and its gradient.
 *
 * It is one op instead of sigmoid and mul: the factor must be bounded where the sigmoid is exactly
 * 0, and the value between them need not be kept. The gradient reads the input. */
#include "ops/constants.h"
#include "ops/elementwise/loops.h"

/* Bound the factor x where the sigmoid is 0 or 1 exactly: 0 * infinity would be NaN. */
static inline float bounded32(float x, float bound) {
  x = x < -bound ? -bound : x;
  return x > bound ? bound : x;
}

static inline double bounded64(double x, double bound) {
  x = x < -bound ? -bound : x;
  return x > bound ? bound : x;
}

/* Below these bounds the sigmoid is 0 in the type. */
static inline float silu32(float x) {
  return (x < -GP_SIGMOID_BOUND_F32 ? -GP_SIGMOID_BOUND_F32 : x) * gp_sigmoidf(x);
}
static double silu64(double x) {
  return (x < -GP_SIGMOID_BOUND_F64 ? -GP_SIGMOID_BOUND_F64 : x) * gp_sigmoid(x);
}

/* s (1 + x (1 - s)). */
static inline float slope32(float x) {
  float s = gp_sigmoidf(x);
  return s * (1.0f + bounded32(x, GP_SIGMOID_BOUND_F32) * (1.0f - s));
}

static double slope64(double x) {
  double s = gp_sigmoid(x);
  return s * (1.0 + bounded64(x, GP_SIGMOID_BOUND_F64) * (1.0 - s));
}

GP_MAP1(silu_f32, float, float, silu32(a))
GP_MAP1(silu_f64, double, double, silu64(a))
GP_MAP2(silu_dx_f32, float, float, (a * slope32(b)))
GP_MAP2(silu_dx_f64, double, double, (a * slope64(b)))

GP_MAP_KERNEL(silu, silu_f32, silu_f64)

GP_MAP_KERNEL(silu_dx, silu_dx_f32, silu_dx_f64)

/* dx = dy s (1 + x (1 - s)), computed from x again: one value kept instead of two. */
static gp_status vjp(gp_vjp *v) {
  return gp_vjp_op2(v, GP_OP_silu_dx, v->dout[0], v->in[0], &v->din[0]);
}

GP_MAP_OP(silu, 1, .infer = gp_map_infer, .vjp = vjp, .cost = gp_map_cost_heavy)

GP_MAP_OP(silu_dx, 2, .infer = gp_map_dx_infer, .cost = gp_map_cost_heavy)
