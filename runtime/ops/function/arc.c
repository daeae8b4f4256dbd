/* ops/function/arc.c - the angles whose sine, cosine or tangent is x, and the angle of a point.
 *
 * The functions are libm's. Slopes have 1 - x^2 as a product, which keeps its digits
 * if x is near 1. */
#include "ops/elementwise/unary.h"

GP_SLOPE(asin, GP_NO_SET, in, a / sqrtf((1 - b) * (1 + b)), a / sqrt((1 - b) * (1 + b)), middle)
GP_UNARY(asin, GP_NO_SET, asinf(a), asin(a), heavy, .vjp = asin_vjp)

GP_SLOPE(acos, GP_NO_SET, in, -a / sqrtf((1 - b) * (1 + b)), -a / sqrt((1 - b) * (1 + b)), middle)
GP_UNARY(acos, GP_NO_SET, acosf(a), acos(a), heavy, .vjp = acos_vjp)

GP_SLOPE(atan, GP_NO_SET, in, a / (1 + b * b), a / (1 + b * b), light)
GP_UNARY(atan, GP_NO_SET, atanf(a), atan(a), heavy, .vjp = atan_vjp)

/* ---- the angle of a point, at height a and width b ----------------------------------------- */

GP_MAP2(atan2_f32, float, float, atan2f(a, b))
GP_MAP2(atan2_f64, double, double, atan2(a, b))
GP_MAP_KERNEL(atan2, atan2_f32, atan2_f64)

/* The part of the gradient a that b gets, if c is the other coordinate. */
GP_MAP3(atan2_dx_f32, float, float, (a * (c / (b * b + c * c))))
GP_MAP3(atan2_dx_f64, double, double, (a * (c / (b * b + c * c))))
GP_MAP_KERNEL(atan2_dx, atan2_dx_f32, atan2_dx_f64)

static gp_status set_share(gp_vjp *v, int mine, gp_ref dy) {
  const gp_attrs none = {0};
  const gp_ref in[] = {dy, v->in[mine], v->in[1 - mine]};
  gp_ref g;
  GP_TRY(gp_build(v->builder, GP_OP_atan2_dx, &none, in, 3, &g));
  return gp_vjp_set_broadcast(v, mine, g);
}

/* The width has the negative gradient: a wider point has a smaller angle. */
static gp_status atan2_vjp(gp_vjp *v) {
  gp_ref minus;
  if (v->need[0]) GP_TRY(set_share(v, 0, v->dout[0]));
  if (!v->need[1]) return GP_OK;
  GP_TRY(gp_vjp_op1(v, GP_OP_neg, v->dout[0], &minus));
  return set_share(v, 1, minus);
}

GP_MAP_OP(atan2, 2, .infer = gp_map_infer, .vjp = atan2_vjp, .cost = gp_map_cost_heavy)
GP_MAP_OP(atan2_dx, 3, .infer = gp_map_infer, .cost = gp_map_cost_light)
