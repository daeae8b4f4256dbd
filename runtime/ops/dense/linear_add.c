/* ops/dense/linear_add.c - the output of a linear layer plus a value that bypasses it (a residual).
 *
 * The sum is made where the product is written, in the CPU's cache or the GPU's registers. On a CPU
 * it is the sum of the two rounded values, as the two ops give it; in f16, which CPUs compute in
 * f32, the product is not rounded before. */
#include "ops/dense/dense.h"

/* Leave out the addend, which stands before the bias. */
static gp_sig product_of(const gp_sig *sig) {
  gp_sig product = *sig;
  product.in[2] = sig->in[3];
  product.n_in--;
  return product;
}

/* x [.., K], w, r [.., N], optional b -> r + linear(x, w, b). */
static gp_status infer(gp_sig *sig) {
  gp_sig product = product_of(sig);
  GP_TRY(gp_def_linear.infer(&product));
  GP_TRY(gp_operand_shape(sig, GP_OP_linear_add, 2, &product.out[0].shape, 0));
  return gp_infer_like(sig, 2);
}

static gp_cost cost(const gp_sig *sig) {
  gp_sig product = product_of(sig);
  double flop = gp_def_linear.cost(&product).flop;
  return gp_cost_of(sig, flop + (double)gp_meta_numel(&sig->out[0]));
}

static gp_call product_call(const gp_call *call) {
  gp_call product = *call;
  product.in[2] = call->in[3];
  product.n_in--;
  return product;
}

static gp_status run(const gp_call *call, gp_span span) {
  const gp_arg *r = &call->in[2], *y = &call->out[0];
  gp_call product = product_call(call);
  GP_TRY(gp_def_linear.cpu.run(&product, span));
  gp_call sum = {.attr = call->attr, .n_in = 2, .in = {*r, *y}, .n_out = 1, .out = {*y}};
  return gp_follow_rows(&gp_def_add, sum, span);
}

static size_t scratch(const gp_call *call) {
  gp_call product = product_call(call);
  return gp_def_linear.cpu.scratch(&product);
}

const gp_op_def gp_def_linear_add = {
    GP_OP_ROW(linear_add), .row_inputs = 1 | 4, .infer = infer, .cost = cost,
    .cpu = {.cut = gp_cut_whole_rows, .run = run, .scratch = scratch, .halves = GP_HALF_PRODUCTS}};
