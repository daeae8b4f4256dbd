/* ops/elementwise/sigmoid.c - x -> 1 / (1 + e^-x), and its gradient.
 *
 * Only exponentials of negative numbers are taken, so far values are small and right instead of
 * overflowing. The gradient reads the output. */
#include "ops/elementwise/loops.h"
/* Of a negative number only, so that nothing overflows. */
static double sigmoid(double x) {
  double e = exp(-fabs(x));
  return (x < 0 ? e : 1.0) / (1.0 + e);
}

GP_MAP1(sigmoid_f32, float, float, gp_sigmoidf(a))
GP_MAP1(sigmoid_f64, double, double, sigmoid(a))
GP_MAP2(sigmoid_dx_f32, float, float, a *b *(1.0f - b))
GP_MAP2(sigmoid_dx_f64, double, double, a *b *(1.0 - b))

static gp_status run(const gp_call *call, gp_span span) {
  return gp_map_float(call, span, sigmoid_f32, sigmoid_f64);
}

static gp_status run_dx(const gp_call *call, gp_span span) {
  return gp_map_float(call, span, sigmoid_dx_f32, sigmoid_dx_f64);
}

/* dx = dy y (1 - y). */
static gp_status vjp(gp_vjp *v) {
  return gp_vjp_op2(v, GP_OP_sigmoid_dx, v->dout[0], v->out[0], &v->din[0]);
}

const gp_op_def gp_def_sigmoid = {
    .name = "sigmoid",
    .min_in = 1,
    .max_in = 1,
    .flags = GP_MAP_FLAGS,
    .row_inputs = 1,
    .infer = gp_map_infer,
    .vjp = vjp,
    .cost = gp_map_cost_heavy,
    .cpu = {.cut = gp_rows_cut, .run = run},
};

const gp_op_def gp_def_sigmoid_dx = {
    .name = "sigmoid_dx",
    .min_in = 2,
    .max_in = 2,
    .flags = GP_MAP_FLAGS,
    .row_inputs = 3,
    .infer = gp_map_dx_infer,
    .cost = gp_map_cost_light,
    .cpu = {.cut = gp_rows_cut, .run = run_dx},
};
