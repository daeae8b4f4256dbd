/* ops/arithmetic/sub.c - a, b -> a - b; shapes broadcast.
 *
 * a + (-b) would give the same bits, but in two passes over memory instead of one. */
#include "ops/elementwise/loops.h"

GP_MAP2(sub_f32, float, float, a - b)
GP_MAP2(sub_f64, double, double, a - b)

/* Unsigned: integers wrap around instead of being undefined. */
GP_MAP2(sub_i64, uint64_t, uint64_t, a - b)
GP_MAP2(sub_i32, uint32_t, uint32_t, a - b)

GP_MAP_NUMBER_KERNEL(sub)

/* da = dy, db = -dy. */
static gp_status vjp(gp_vjp *v) {
  GP_TRY(gp_vjp_set_broadcast(v, 0, v->dout[0]));
  if (!v->need[1]) return GP_OK;
  gp_ref minus;
  GP_TRY(gp_vjp_op1(v, GP_OP_neg, v->dout[0], &minus));
  return gp_vjp_set_broadcast(v, 1, minus);
}

GP_MAP_OP(sub, 2, .infer = gp_map_infer, .vjp = vjp, .cost = gp_map_cost_light)
