/* ops/function/exponential.c - x -> e^x.
 *
 * The gradient reads the output, so the input need not be kept for the backward pass. */
#include "ops/elementwise/loops.h"

GP_MAP1(exp_f32, float, float, gp_expf(a))
GP_MAP1(exp_f64, double, double, exp(a))

GP_MAP_KERNEL(exp, exp_f32, exp_f64)

/* dx = dy y. */
static gp_status vjp(gp_vjp *v) {
  return gp_vjp_op2(v, GP_OP_mul, v->dout[0], v->out[0], &v->din[0]);
}

GP_MAP_OP(exp, 1, .infer = gp_map_infer, .vjp = vjp, .cost = gp_map_cost_heavy)
