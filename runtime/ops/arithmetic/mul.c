/* ops/arithmetic/mul.c - a, b -> a * b; shapes broadcast.
 *
 * An input is kept for the gradient of the other, if that is wanted. */
#include "ops/elementwise/loops.h"

GP_MAP2(mul_f32, float, float, (a * b))
GP_MAP2(mul_f64, double, double, (a * b))

/* Unsigned: integers wrap around instead of being undefined. */
GP_MAP2(mul_i64, uint64_t, uint64_t, (a * b))
GP_MAP2(mul_i32, uint32_t, uint32_t, (a * b))

GP_MAP_NUMBER_KERNEL(mul)

/* da = dy b, db = dy a. */
static gp_status vjp(gp_vjp *v) {
  for (int i = 0; i < 2; i++) {
    if (!v->need[i]) continue;
    gp_ref g;
    GP_TRY(gp_vjp_op2(v, GP_OP_mul, v->dout[0], v->in[1 - i], &g));
    GP_TRY(gp_vjp_set_broadcast(v, i, g));
  }
  return GP_OK;
}

GP_MAP_OP(mul, 2, .infer = gp_map_infer, .vjp = vjp, .cost = gp_map_cost_light)
