/* ops/function/logarithm.c - the natural logarithm of x.
 *
 * -inf at 0 and NaN below, as in libm: what a script then sees says what went wrong. */
#include "ops/elementwise/loops.h"

GP_MAP1(log_f32, float, float, gp_logf(a))
GP_MAP1(log_f64, double, double, log(a))

GP_MAP_KERNEL(log, log_f32, log_f64)

/* dx = dy / x. */
static gp_status vjp(gp_vjp *v) {
  return gp_vjp_op2(v, GP_OP_div, v->dout[0], v->in[0], &v->din[0]);
}

GP_MAP_OP(log, 1, .infer = gp_map_infer, .vjp = vjp, .cost = gp_map_cost_heavy)
