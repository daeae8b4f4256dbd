/* ops/function/rsqrt.c - 1 / sqrt(x).
 *
 * A root and a division, rounded twice: the processors' approximate instructions are faster, but
 * they differ between makers, and bits are promised. */
#include "ops/elementwise/loops.h"
#include "ops/gradient.h"
GP_MAP1(rsqrt_f32, float, float, 1.0f / sqrtf(a))
GP_MAP1(rsqrt_f64, double, double, 1.0 / sqrt(a))

GP_MAP_KERNEL(rsqrt, rsqrt_f32, rsqrt_f64)

/* dx = -1/2 dy y^3. */
static gp_status vjp(gp_vjp *v) {
  gp_ref g;
  GP_TRY(gp_vjp_op2(v, GP_OP_mul, v->out[0], v->out[0], &g));
  GP_TRY(gp_vjp_op2(v, GP_OP_mul, g, v->out[0], &g));
  GP_TRY(gp_vjp_op2(v, GP_OP_mul, v->dout[0], g, &g));
  return gp_vjp_scale(v, g, -0.5, &v->din[0]);
}

GP_MAP_OP(rsqrt, 1, .infer = gp_map_infer, .vjp = vjp, .cost = gp_map_cost_middle)
