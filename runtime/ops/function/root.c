/* ops/function/root.c - the square root, correctly rounded.
 *
 * The gradient reads the output, so the input need not be kept; it is infinite at 0. */
#include "ops/elementwise/loops.h"

GP_MAP1(sqrt_f32, float, float, sqrtf(a))
GP_MAP1(sqrt_f64, double, double, sqrt(a))

GP_MAP_KERNEL(sqrt, sqrt_f32, sqrt_f64)

/* dx = dy / (2 y). */
static gp_status vjp(gp_vjp *v) {
  gp_ref twice;
  GP_TRY(gp_vjp_op2(v, GP_OP_add, v->out[0], v->out[0], &twice));
  return gp_vjp_op2(v, GP_OP_div, v->dout[0], twice, &v->din[0]);
}

GP_MAP_OP(sqrt, 1, .infer = gp_map_infer, .vjp = vjp, .cost = gp_map_cost_middle)
