/* ops/function/logarithm.c - the natural logarithm of x, and of 1 + x with the digits of a small x.
 *
 * It gives -inf at 0 and NaN below, as in libm: a script then sees what went wrong. */
#include "ops/elementwise/unary.h"

/* dx = dy / x. */
static gp_status log_vjp(gp_vjp *v) {
  return gp_vjp_op2(v, GP_OP_div, v->dout[0], v->in[0], &v->din[0]);
}

GP_UNARY(log, GP_NO_SET, gp_logf(a), log(a), heavy, .vjp = log_vjp)

GP_SLOPE(log1p, GP_NO_SET, in, a / (b + 1), a / (b + 1), light)
GP_UNARY(log1p, GP_NO_SET, gp_log1pf(a), log1p(a), heavy, .vjp = log1p_vjp)
