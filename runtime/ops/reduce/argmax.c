/* ops/reduce/argmax.c - x -> position of the largest element along dim i[0]; any dtype.
 *
 * Positions are i64 and count from 1, as everywhere in scripts; of equals the first one, NaN before
 * all others. i[1]: keep the dim as 1. No gradient flows through a position. */
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
    .name = "argmax",
    .min_in = 1,
    .max_in = 1,
    .flags = GP_OP_HALVES,
    .infer = infer,
    .cost = gp_extreme_cost,
    .cpu = {.cut = gp_extreme_cut, .run = run},
};
