/* ops/activation/relu.c - x -> max(x, 0), and its gradient.
 *
 * It keeps NaN, which fmaxf would hide: a broken value should show where it arises. The gradient
 * reads the output, whose sign is all that it needs. */
#include "ops/elementwise/loops.h"

GP_MAP1(relu_f32, float, float, a <= 0.0f ? 0.0f : a)
GP_MAP1(relu_f64, double, double, a <= 0.0 ? 0.0 : a)
GP_MAP2(relu_dx_f32, float, float, b <= 0.0f ? 0.0f : a)
GP_MAP2(relu_dx_f64, double, double, b <= 0.0 ? 0.0 : a)

GP_MAP_KERNEL(relu, relu_f32, relu_f64)

GP_MAP_KERNEL(relu_dx, relu_dx_f32, relu_dx_f64)

/* dx = dy where y > 0; at 0 the slope is taken as 0. */
static gp_status vjp(gp_vjp *v) {
  return gp_vjp_op2(v, GP_OP_relu_dx, v->dout[0], v->out[0], &v->din[0]);
}

GP_MAP_OP(relu, 1, .infer = gp_map_infer, .vjp = vjp, .cost = gp_map_cost_light)

GP_MAP_OP(relu_dx, 2, .infer = gp_map_dx_infer, .cost = gp_map_cost_light)
