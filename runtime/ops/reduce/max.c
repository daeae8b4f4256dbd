/* ops/reduce/max.c - x -> the largest elements along a dim, and their positions; any dtype.
 *
 * Positions are i64 and count from 1. The gradient goes to the one position that was taken, so it
 * needs the positions and not x. */
#include "base/status.h"
#include "ops/axis.h"
#include "ops/gradient.h"
#include "ops/infer.h"
#include "ops/reduce/extreme.h"

static gp_status infer(gp_sig *sig) {
  gp_shape shape;
  GP_TRY(gp_extreme_shape(sig, &shape));
  GP_TRY(gp_infer_out(sig, sig->in[0]->dtype, &shape));
  return gp_infer_out(sig, GP_I64, &shape);
}

static gp_status run(const gp_call *call, gp_span span) {
  gp_extreme_run(call, span, call->out[0].data, call->out[1].data);
  return GP_OK;
}

static gp_status vjp(gp_vjp *v) {
  const int64_t dim = v->attr->max.dim;
  if (v->dout[0] == GP_NONE) return GP_OK;
  const int64_t size = gp_vjp_meta(v, v->in[0])->shape.dim[dim];
  gp_attrs attrs = {.max_dx = {dim, v->attr->max.keep, size}};
  const gp_ref in[] = {v->dout[0], v->out[1]};
  return gp_build(v->builder, GP_OP_max_dx, &attrs, in, 2, &v->din[0]);
}

const gp_op_def gp_def_max = {
    GP_OP_ROW(max),
    .infer = infer,
    .vjp = vjp,
    .cost = gp_extreme_cost,
    .cpu = {.cut = gp_extreme_cut, .run = run},
};
