/* ops/state/accumulate.c - slot, g -> slot += g, in the slot's own memory; out[0] is the slot. If
 * call->fresh, slot = g.
 *
 * It adds up gradients of several micro-batches, or of several readers of a value. The shapes are
 * equal: sums over repeated dims are made before. */
#include "base/tensor.h"
#include "ops/elementwise/loops.h"

GP_MAP2(accumulate_f32, float, float, a + b)
GP_MAP2(accumulate_f64, double, double, a + b)
/* Add to zero, so that a fresh slot holds the bits of one that was filled with zeros: no -0. */
GP_MAP1(first_f32, float, float, 0 + a)
GP_MAP1(first_f64, double, double, 0 + a)

static gp_status infer(gp_sig *sig) {
  GP_TRY(gp_infer_same_shape(sig, 0, 1));
  sig->out[0] = *sig->in[0];
  sig->n_out = 1;
  return GP_OK;
}

static gp_status run(const gp_call *call, gp_span span) {
  if (call->fresh) {
    gp_call first = *call;
    first.in[0] = call->in[1];
    first.n_in = 1;
    return gp_map_float(&first, span, first_f32, first_f64);
  }
  return gp_map_float(call, span, accumulate_f32, accumulate_f64);
}

const gp_op_def gp_def_accumulate = {
    GP_OP_ROW(accumulate),
    .row_inputs = 3,
    .infer = infer,
    .cost = gp_map_cost_light,
    .cpu = {.cut = gp_cut_rows, .run = run},
};
