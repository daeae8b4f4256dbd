/* ops/shape/cast.c - x -> the same values in another dtype; all pairs.
 *
 * The rules are those of gp_tensor_copy: rounding to nearest even, truncation to integers. It is
 * the only op that changes a dtype; no other one converts silently. */
#include "base/status.h"
#include "ops/gradient.h"
#include "ops/infer.h"
#include "ops/cut.h"
#include "ops/shape/boxes.h"

static gp_status infer(gp_sig *sig) {
  return gp_infer_out(sig, sig->attr->cast.dtype, &sig->in[0]->shape);
}

/* Cast back to the input's dtype, unless dy has it already; integers have no gradient. */
static gp_status vjp(gp_vjp *v) {
  gp_dtype from = gp_vjp_meta(v, v->in[0])->dtype;
  if (!v->need[0] || !gp_dtype_is_float(from)) return GP_OK;
  if (gp_vjp_meta(v, v->dout[0])->dtype == from) return v->din[0] = v->dout[0], GP_OK;
  gp_attrs attrs = {.cast = {.dtype = from}};
  return gp_build(v->builder, GP_OP_cast, &attrs, &v->dout[0], 1, &v->din[0]);
}

const gp_op_def gp_def_cast = {
    GP_OP_ROW(cast), .row_inputs = 1,      .infer = infer,
    .vjp = vjp,      .cost = gp_cost_copy, .cpu = {.cut = gp_cut_rows, .run = gp_copy_run},
};
