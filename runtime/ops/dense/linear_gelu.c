/* ops/dense/linear_gelu.c - a linear layer and the GELU behind it, and the way back, as one op
 * each.
 *
 * What a product writes need not be read again to be changed. On a CPU, a block of rows goes
 * through GELU while it is in the cache, by the loops of the two ops that this one stands for, and
 * so with their bits. On a GPU the product's own epilogue does it if that pays (linear_gelu.cu). */
#include "ops/dense/dense.h"

enum { GELU_FLOP = 30 }; /* an exponential and a division, as the elementwise op counts them */

static const gp_attrs tanh_form = {.gelu = {.mode = GP_GELU_TANH}};
static const gp_attrs tanh_form_dx = {.gelu_dx = {.mode = GP_GELU_TANH}};

/* ---- forward ------------------------------------------------------------------------------- */

/* x, w, b as for linear -> y [.., N], h [.., N]: the gradient reads h. */
static gp_status infer(gp_sig *sig) {
  GP_TRY(gp_def_linear.infer(sig));
  sig->out[sig->n_out++] = sig->out[0];
  return GP_OK;
}

static gp_cost cost(const gp_sig *sig) {
  gp_cost c = gp_def_linear.cost(sig);
  c.flop += GELU_FLOP * (double)gp_meta_numel(&sig->out[0]);
  return c;
}

/* If nothing reads h, it lies where y will. */
static gp_status run(const gp_call *call, gp_span span) {
  const gp_arg *y = &call->out[0], *h = call->n_out == 2 ? &call->out[1] : y;
  gp_call product = *call;
  product.n_out = 1, product.out[0] = *h;
  GP_TRY(gp_def_linear.cpu.run(&product, span));
  gp_call gate = {.attr = &tanh_form, .n_in = 1, .in = {*h}, .n_out = 1, .out = {*y}};
  return gp_follow_rows(&gp_def_gelu, gate, span);
}

static size_t scratch(const gp_call *call) { return gp_def_linear.cpu.scratch(call); }

const gp_op_def gp_def_linear_gelu = {
    GP_OP_ROW(linear_gelu), .row_inputs = 1, .infer = infer, .cost = cost,
    .cpu = {.cut = gp_cut_whole_rows, .run = run, .scratch = scratch, .halves = GP_HALF_PRODUCTS}};

/* ---- gradient of the input ------------------------------------------------------------------ */

/* Leave the product alone, without the last input. */
static gp_sig product_of(const gp_sig *sig) {
  gp_sig product = *sig;
  product.n_in--;
  return product;
}

/* dy [.., N], w [N, K], h [.., K] -> gelu_dx(dy w, h) [.., K]. */
static gp_status infer_dx(gp_sig *sig) {
  gp_sig product = product_of(sig);
  GP_TRY(gp_def_linear_dx.infer(&product));
  GP_TRY(gp_operand_shape(sig, GP_OP_linear_gelu_dx, 2, &product.out[0].shape, 0));
  return gp_infer_like(sig, 2);
}

static gp_cost cost_dx(const gp_sig *sig) {
  gp_sig product = product_of(sig);
  double flop = gp_def_linear_dx.cost(&product).flop;
  return gp_cost_of(sig, flop + GELU_FLOP * (double)gp_meta_numel(&sig->out[0]));
}

static gp_status run_dx(const gp_call *call, gp_span span) {
  const gp_arg *h = &call->in[2], *dh = &call->out[0];
  gp_call product = *call;
  product.n_in = 2;
  GP_TRY(gp_def_linear_dx.cpu.run(&product, span));
  gp_call slope = {.attr = &tanh_form_dx, .n_in = 2, .in = {*dh, *h}, .n_out = 1, .out = {*dh}};
  return gp_follow_rows(&gp_def_gelu_dx, slope, span);
}

static size_t scratch_dx(const gp_call *call) { return gp_def_linear_dx.cpu.scratch(call); }

const gp_op_def gp_def_linear_gelu_dx = {GP_OP_ROW(linear_gelu_dx), .row_inputs = 1 | 4,
                                         .infer = infer_dx, .cost = cost_dx,
                                         .cpu = {.cut = gp_cut_whole_rows,
                                                 .run = run_dx,
                                                 .scratch = scratch_dx,
                                                 .halves = GP_HALF_PRODUCTS}};
