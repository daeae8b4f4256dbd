/* ops/loss/loss_seed.c - the gradient that a backward pass starts from.
 *
 * It is 1 / (count of the whole mini-batch), which changes from step to step and lies in the step
 * block, or a constant; times the loss scale of f16, which lies there too. */
#include "base/status.h"
#include "ops/cut.h"
#include "ops/infer.h"

static gp_status infer(gp_sig *sig) {
  const gp_dtype dtype = sig->attr->loss_seed.dtype;
  if (dtype != GP_F32 && dtype != GP_F64)
    return gp_fail(GP_EDTYPE, "dtype is %s, expected f32 or f64", gp_dtype_name(dtype));
  return gp_infer_out(sig, dtype, &(gp_shape){0});
}

static gp_status run(const gp_call *call, gp_span span) {
  (void)span;
  const gp_attr_loss_seed *a = &call->attr->loss_seed;
  double value = a->counted ? call->step->inverse_count : a->value;
  value *= call->step->scale;
  if (call->out[0].meta->dtype == GP_F32)
    *(float *)call->out[0].data = (float)value;
  else
    *(double *)call->out[0].data = value;
  return GP_OK;
}

const gp_op_def gp_def_loss_seed = {GP_OP_ROW(loss_seed), .infer = infer, .cost = gp_cost_copy,
                                    .cpu = {.cut = gp_cut_once, .run = run}};
