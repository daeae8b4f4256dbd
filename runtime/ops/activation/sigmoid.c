/* ops/activation/sigmoid.c - x -> 1 / (1 + e^-x), and its gradient.
 *
 * Only exponentials of negative numbers are taken, so far values are small and right instead of
 * overflowing. The gradient reads the output. */
#include "ops/elementwise/loops.h"

GP_MAP1(sigmoid_f32, float, float, gp_sigmoidf(a))
GP_MAP1(sigmoid_f64, double, double, gp_sigmoid(a))
GP_MAP2(sigmoid_dx_f32, float, float, (a * b * (1.0f - b)))
GP_MAP2(sigmoid_dx_f64, double, double, (a * b * (1.0 - b)))

GP_MAP_KERNEL(sigmoid, sigmoid_f32, sigmoid_f64)

GP_MAP_KERNEL(sigmoid_dx, sigmoid_dx_f32, sigmoid_dx_f64)

/* dx = dy y (1 - y). */
static gp_status vjp(gp_vjp *v) {
  return gp_vjp_op2(v, GP_OP_sigmoid_dx, v->dout[0], v->out[0], &v->din[0]);
}

GP_MAP_OP(sigmoid, 1, .infer = gp_map_infer, .vjp = vjp, .cost = gp_map_cost_heavy)

GP_MAP_OP(sigmoid_dx, 2, .infer = gp_map_dx_infer, .cost = gp_map_cost_light)
