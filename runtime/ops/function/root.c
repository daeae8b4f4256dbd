/* ops/function/root.c - the square root, correctly rounded, and its inverse.
 *
 * The inverse is a root and a division, rounded twice: the processors' approximate instructions are
 * faster, but they differ between makers, and bits are promised. The gradients read the output, so
 * the input need not be kept; that of the root is infinite at 0. */
#include "ops/elementwise/unary.h"
#include "ops/gradient.h"

/* dx = dy / (2 y). */
static gp_status sqrt_vjp(gp_vjp *v) {
  gp_ref twice;
  GP_TRY(gp_vjp_op2(v, GP_OP_add, v->out[0], v->out[0], &twice));
  return gp_vjp_op2(v, GP_OP_div, v->dout[0], twice, &v->din[0]);
}

GP_UNARY(sqrt, GP_NO_SET, sqrtf(a), sqrt(a), middle, .vjp = sqrt_vjp)

/* dx = -1/2 dy y^3. */
static gp_status rsqrt_vjp(gp_vjp *v) {
  gp_ref g;
  GP_TRY(gp_vjp_op2(v, GP_OP_mul, v->out[0], v->out[0], &g));
  GP_TRY(gp_vjp_op2(v, GP_OP_mul, g, v->out[0], &g));
  GP_TRY(gp_vjp_op2(v, GP_OP_mul, v->dout[0], g, &g));
  return gp_vjp_scale(v, g, -0.5, &v->din[0]);
}

GP_UNARY(rsqrt, GP_NO_SET, 1 / sqrtf(a), 1 / sqrt(a), middle, .vjp = rsqrt_vjp)
