/* ops/arithmetic/neg.c - x -> -x.
 *
 * It is an op of its own, not a product with -1: the gradients of sub and div are made of it, and
 * it keeps the sign of zero. */
#include "ops/elementwise/loops.h"

GP_MAP1(neg_f32, float, float, -a)
GP_MAP1(neg_f64, double, double, -a)

/* Unsigned: integers wrap around instead of being undefined. */
GP_MAP1(neg_i64, uint64_t, uint64_t, 0 - a)
GP_MAP1(neg_i32, uint32_t, uint32_t, 0 - a)

GP_MAP_NUMBER_KERNEL(neg)

/* dx = -dy. */
static gp_status vjp(gp_vjp *v) { return gp_vjp_op1(v, GP_OP_neg, v->dout[0], &v->din[0]); }

GP_MAP_OP(neg, 1, .infer = gp_map_infer, .vjp = vjp, .cost = gp_map_cost_light)
