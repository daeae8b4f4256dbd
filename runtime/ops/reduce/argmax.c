/* ops/reduce/argmax.c - x -> position of the largest element along a dim; any dtype.
 *
 * Positions are i64 and count from 1, as everywhere in scripts; of equal elements the first one
 * counts, and NaN before all others. No gradient flows through a position. */
#include "base/status.h"
#include "ops/infer.h"
#include "ops/reduce/extreme.h"

static gp_status infer(gp_sig *sig) {
  gp_shape shape;
  GP_TRY(gp_extreme_shape(sig, &shape));
  return gp_infer_out(sig, GP_I64, &shape);
}

static gp_status run(const gp_call *call, gp_span span) {
  gp_extreme_run(call, span, NULL, call->out[0].data);
  return GP_OK;
}

const gp_op_def gp_def_argmax = {
    GP_OP_ROW(argmax),
    .infer = infer,
    .cost = gp_extreme_cost,
    .cpu = {.cut = gp_extreme_cut, .run = run},
};
