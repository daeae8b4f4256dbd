/* ops/shape/pad.c - zeros before and behind a value along one dim; any dtype.
 *
 * It exists as the gradient of narrow. */
#include <string.h>

#include "base/status.h"
#include "ops/axis.h"
#include "ops/gradient.h"
#include "ops/infer.h"

static gp_status infer(gp_sig *sig) {
  int64_t dim = sig->attr->pad.dim, start = sig->attr->pad.start, full = sig->attr->pad.full;
  gp_shape shape = sig->in[0]->shape;
  GP_TRY(gp_infer_dim(&shape, dim));
  if (start < 0 || full < 0 || start > full || shape.dim[dim] > full - start)
    return gp_fail(GP_ERANGE, "%lld elements behind %lld others do not fit into %lld",
                   (long long)shape.dim[dim], (long long)start, (long long)full);
  shape.dim[dim] = full;
  return gp_infer_out(sig, sig->in[0]->dtype, &shape);
}

static gp_cut cut(const gp_call *call) { return gp_cut_outer(call, call->attr->pad.dim); }

/* A unit is zeros | x | zeros. In all dtypes 0 is zero bits. */
static gp_status run(const gp_call *call, gp_span span) {
  size_t item = gp_dtype_size(call->out[0].meta->dtype);
  gp_axis to = gp_axis_of(&call->out[0].meta->shape, call->attr->pad.dim);
  int64_t size = call->in[0].meta->shape.dim[call->attr->pad.dim], start = call->attr->pad.start;
  size_t step = (size_t)to.inner * item, x = (size_t)size * step;
  size_t before = (size_t)start * step, after = (size_t)(to.size - start - size) * step;
  if (before + x + after == 0) return GP_OK;
  for (int64_t unit = span.first; unit < span.last; unit++) {
    char *out = (char *)call->out[0].data + (size_t)unit * (before + x + after);
    memset(out, 0, before);
    if (x > 0) memcpy(out + before, (const char *)call->in[0].data + (size_t)unit * x, x);
    memset(out + before + x, 0, after);
  }
  return GP_OK;
}

/* The zeros are constants: dx is the middle of dy. */
static gp_status vjp(gp_vjp *v) {
  int64_t dim = v->attr->pad.dim;
  int64_t length = gp_vjp_meta(v, v->in[0])->shape.dim[dim];
  gp_attrs narrow = {.narrow = {dim, v->attr->pad.start, length}};
  return gp_build(v->builder, GP_OP_narrow, &narrow, &v->dout[0], 1, &v->din[0]);
}

const gp_op_def gp_def_pad = {
    GP_OP_ROW(pad),
    .infer = infer,
    .vjp = vjp,
    .cost = gp_cost_copy,
    .cpu = {.cut = cut, .run = run},
};
