/* ops/activation/tanh.c - the hyperbolic tangent, and its gradient.
 *
 * The gradient reads the output, so the input need not be kept and nothing is computed twice. */
#include "ops/elementwise/loops.h"

GP_MAP1(tanh_f32, float, float, gp_tanhf(a))
GP_MAP1(tanh_f64, double, double, tanh(a))
GP_MAP2(tanh_dx_f32, float, float, (a * (1.0f - b * b)))
GP_MAP2(tanh_dx_f64, double, double, (a * (1.0 - b * b)))

GP_MAP_KERNEL(tanh, tanh_f32, tanh_f64)

/* Inputs: dy, y. */
GP_MAP_KERNEL(tanh_dx, tanh_dx_f32, tanh_dx_f64)

/* dx = dy (1 - y y). */
static gp_status vjp(gp_vjp *v) {
  return gp_vjp_op2(v, GP_OP_tanh_dx, v->dout[0], v->out[0], &v->din[0]);
}

GP_MAP_OP(tanh, 1, .infer = gp_map_infer, .vjp = vjp, .cost = gp_map_cost_heavy)

GP_MAP_OP(tanh_dx, 2, .infer = gp_map_dx_infer, .cost = gp_map_cost_light)
