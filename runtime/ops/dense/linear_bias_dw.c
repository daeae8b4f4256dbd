/* ops/dense/linear_bias_dw.c - the gradients of a linear layer's weight and bias, from one reading
 * of dy.
 *
 * A GPU's product sums the rows of dy as it reads them (linear_bias_dw.cu). On a CPU, threads take
 * the pieces of the two ops that this one stands for from one list: those of the weight first,
 * which are longer. */
#include "ops/dense/dense.h"

/* dy [.., N], x [.., K] -> dw [N, K], db [N]. */
static gp_status infer(gp_sig *sig) {
  gp_sig sum = {.attr = sig->attr, .n_in = 1, .in = {sig->in[0]}};
  GP_TRY(gp_def_linear_dw.infer(sig));
  GP_TRY(gp_def_sum_rows_dw.infer(&sum));
  sig->out[sig->n_out++] = sum.out[0];
  return GP_OK;
}

static gp_cost cost(const gp_sig *sig) {
  double flop = gp_def_linear_dw.cost(sig).flop;
  return gp_cost_of(sig, flop + (double)gp_meta_numel(sig->in[0]));
}

/* ---- two ops as one ------------------------------------------------------------------------ */

static gp_call weight_call(const gp_call *call) {
  gp_call weight = *call;
  weight.n_out = 1;
  return weight;
}

static gp_call bias_call(const gp_call *call) {
  gp_call bias = *call;
  bias.n_in = bias.n_out = 1, bias.out[0] = call->out[1];
  return bias;
}

static int64_t pieces_of(gp_cut cut) { return (cut.units + cut.grain - 1) / cut.grain; }

/* A unit is a piece of one of the two ops. */
static gp_cut cut(const gp_call *call) {
  gp_call weight = weight_call(call), bias = bias_call(call);
  int64_t units =
      pieces_of(gp_def_linear_dw.cpu.cut(&weight)) + pieces_of(gp_def_sum_rows_dw.cpu.cut(&bias));
  return (gp_cut){units, 1};
}

static gp_status run_piece(const gp_op_def *op, const gp_call *call, int64_t piece, void *scratch) {
  gp_cut cut = op->cpu.cut(call);
  int64_t first = piece * cut.grain, left = cut.units - first;
  return op->cpu.run(call, (gp_span){.first = first,
                                     .last = first + (left < cut.grain ? left : cut.grain),
                                     .scratch = scratch});
}

static gp_status run(const gp_call *call, gp_span span) {
  gp_call weight = weight_call(call), bias = bias_call(call);
  int64_t pieces = pieces_of(gp_def_linear_dw.cpu.cut(&weight));
  for (int64_t unit = span.first; unit < span.last; unit++)
    GP_TRY(unit < pieces ? run_piece(&gp_def_linear_dw, &weight, unit, span.scratch)
                         : run_piece(&gp_def_sum_rows_dw, &bias, unit - pieces, NULL));
  return GP_OK;
}

static size_t scratch(const gp_call *call) { return gp_def_linear_dw.cpu.scratch(call); }

const gp_op_def gp_def_linear_bias_dw = {
    GP_OP_ROW(linear_bias_dw), .infer = infer, .cost = cost,
    .cpu = {.cut = cut, .run = run, .scratch = scratch, .halves = GP_HALF_PRODUCTS}};
