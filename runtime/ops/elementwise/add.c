/* ops/elementwise/add.c - a, b -> a + b; shapes broadcast.
 *
 * The most frequent op of all (biases, residuals), so its three fast layouts matter most. */
#include "base/status.h"
#include "ops/elementwise/loops.h"
GP_MAP2(add_f32, float, float, a + b)
GP_MAP2(add_f64, double, double, a + b)

static gp_status run(const gp_call *call, gp_span span) {
  return gp_map_float(call, span, add_f32, add_f64);
}

/* da = db = dy, each summed over the dims along which it was repeated. */
static gp_status vjp(gp_vjp *v) {
  GP_TRY(gp_vjp_set_broadcast(v, 0, v->dout[0]));
  return gp_vjp_set_broadcast(v, 1, v->dout[0]);
}

const gp_op_def gp_def_add = {
    .name = "add",
    .min_in = 2,
    .max_in = 2,
    .flags = GP_MAP_FLAGS,
    .row_inputs = 3,
    .infer = gp_map_infer,
    .vjp = vjp,
    .cost = gp_map_cost_light,
    .cpu = {.cut = gp_rows_cut, .run = run},
};
