/* ops/elementwise/tanh.c - the hyperbolic tangent, and its gradient.
 *
 * The gradient reads the output, so the input need not be kept and nothing is computed twice. */
#include "ops/elementwise/loops.h"
GP_MAP1(tanh_f32, float, float, gp_tanhf(a))
GP_MAP1(tanh_f64, double, double, tanh(a))
GP_MAP2(tanh_dx_f32, float, float, a *(1.0f - b * b))
GP_MAP2(tanh_dx_f64, double, double, a *(1.0 - b * b))

static gp_status run(const gp_call *call, gp_span span) {
  return gp_map_float(call, span, tanh_f32, tanh_f64);
}

/* Inputs: dy, y. */
static gp_status run_dx(const gp_call *call, gp_span span) {
  return gp_map_float(call, span, tanh_dx_f32, tanh_dx_f64);
}

/* dx = dy (1 - y y). */
static gp_status vjp(gp_vjp *v) {
  return gp_vjp_op2(v, GP_OP_tanh_dx, v->dout[0], v->out[0], &v->din[0]);
}

const gp_op_def gp_def_tanh = {
    .name = "tanh",
    .min_in = 1,
    .max_in = 1,
    .flags = GP_MAP_FLAGS,
    .row_inputs = 1,
    .infer = gp_map_infer,
    .vjp = vjp,
    .cost = gp_map_cost_heavy,
    .cpu = {.cut = gp_rows_cut, .run = run},
};

const gp_op_def gp_def_tanh_dx = {
    .name = "tanh_dx",
    .min_in = 2,
    .max_in = 2,
    .flags = GP_MAP_FLAGS,
    .row_inputs = 3,
    .infer = gp_map_dx_infer,
    .cost = gp_map_cost_light,
    .cpu = {.cut = gp_rows_cut, .run = run_dx},
};
