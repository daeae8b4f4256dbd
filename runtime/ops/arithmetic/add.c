/* ops/arithmetic/add.c - a, b -> a + b; shapes broadcast.
 *
 * The most frequent op of all (biases, residuals), so its three fast layouts matter most. */
#include "ops/elementwise/loops.h"

GP_MAP2(add_f32, float, float, a + b)
GP_MAP2(add_f64, double, double, a + b)

/* Unsigned: integers wrap around instead of being undefined. */
GP_MAP2(add_i64, uint64_t, uint64_t, a + b)
GP_MAP2(add_i32, uint32_t, uint32_t, a + b)

GP_MAP_NUMBER_KERNEL(add)

/* da = db = dy, each summed over the dims along which it was repeated. */
static gp_status vjp(gp_vjp *v) {
  GP_TRY(gp_vjp_set_broadcast(v, 0, v->dout[0]));
  return gp_vjp_set_broadcast(v, 1, v->dout[0]);
}

GP_MAP_OP(add, 2, .infer = gp_map_infer, .vjp = vjp, .cost = gp_map_cost_light)
