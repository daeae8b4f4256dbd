/* ops/arithmetic/div.c - a, b -> a / b; shapes broadcast. Division by 0 follows IEEE 754.
 *
 * The gradient of b is made from that of a and the output, which saves a second division. */
#include "ops/elementwise/loops.h"

GP_MAP2(div_f32, float, float, a / b)
GP_MAP2(div_f64, double, double, a / b)

GP_MAP_KERNEL(div, div_f32, div_f64)

/* da = dy / b; db = -da y. */
static gp_status vjp(gp_vjp *v) {
  gp_ref da, db;
  GP_TRY(gp_vjp_op2(v, GP_OP_div, v->dout[0], v->in[1], &da));
  GP_TRY(gp_vjp_set_broadcast(v, 0, da));
  if (!v->need[1]) return GP_OK;
  GP_TRY(gp_vjp_op2(v, GP_OP_mul, da, v->out[0], &db));
  GP_TRY(gp_vjp_op1(v, GP_OP_neg, db, &db));
  return gp_vjp_set_broadcast(v, 1, db);
}

GP_MAP_OP(div, 2, .infer = gp_map_infer, .vjp = vjp, .cost = gp_map_cost_light)
