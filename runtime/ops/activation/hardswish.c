/* ops/activation/hardswish.c - x -> x min(max(x + 3, 0), 6) / 6, and its gradient.
 *
 * A SiLU made of lines, without an exponential. NaN stays NaN. The gradient reads the input.
 * Source: Howard et al., "Searching for MobileNetV3" (2019), section 5.2. */
#include "ops/elementwise/loops.h"

/* The products come first: -infinity and the numbers below -3 give 0, those above 3 themselves. */
#define VALUE(x, T) ((x) <= (T)-3 ? (T)0 : (x) >= (T)3 ? (x) : (x) * ((x) + (T)3) * ((T)1 / (T)6))

/* x / 3 + 1 / 2 between -3 and 3; at the ends 0 and 1, as what lies beyond them. */
#define SLOPE(x, T) ((x) <= (T)-3 ? (T)0 : (x) >= (T)3 ? (T)1 : (x) * ((T)1 / (T)3) + (T)0.5)

GP_MAP1(hardswish_f32, float, float, VALUE(a, float))
GP_MAP1(hardswish_f64, double, double, VALUE(a, double))
GP_MAP2(hardswish_dx_f32, float, float, (a * SLOPE(b, float)))
GP_MAP2(hardswish_dx_f64, double, double, (a * SLOPE(b, double)))

GP_MAP_KERNEL(hardswish, hardswish_f32, hardswish_f64)

GP_MAP_KERNEL(hardswish_dx, hardswish_dx_f32, hardswish_dx_f64)

static gp_status vjp(gp_vjp *v) {
  return gp_vjp_op2(v, GP_OP_hardswish_dx, v->dout[0], v->in[0], &v->din[0]);
}

GP_MAP_OP(hardswish, 1, .infer = gp_map_infer, .vjp = vjp, .cost = gp_map_cost_light)

GP_MAP_OP(hardswish_dx, 2, .infer = gp_map_dx_infer, .cost = gp_map_cost_light)
