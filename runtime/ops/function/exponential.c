/* ops/function/exponential.c - e^x, and e^x - 1 with the digits of a small x.
 *
 * The gradients read the output, so the input need not be kept for the backward pass. */
#include "ops/elementwise/unary.h"

/* dx = dy y. */
static gp_status exp_vjp(gp_vjp *v) {
  return gp_vjp_op2(v, GP_OP_mul, v->dout[0], v->out[0], &v->din[0]);
}

GP_UNARY(exp, GP_NO_SET, gp_expf(a), exp(a), heavy, .vjp = exp_vjp)

GP_SLOPE(expm1, GP_NO_SET, out, (a * (b + 1)), (a * (b + 1)), light)
GP_UNARY(expm1, GP_NO_SET, gp_expm1f(a), expm1(a), heavy, .vjp = expm1_vjp)
