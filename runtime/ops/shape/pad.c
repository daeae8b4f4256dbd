/* ops/shape/pad.c - zeros before and behind a value along one dim; any dtype.
 *
 * Attributes: i[0] dim, i[1] start of x in the result, i[2] size of the dim in the result. It exists
 * as the gradient of narrow. */
#include <string.h>

#include "base/status.h"
#include "ops/axis.h"
#include "ops/gradient.h"
#include "ops/infer.h"

static gp_status infer(gp_sig *sig) {
  int64_t dim = sig->attr->i[0], start = sig->attr->i[1], full = sig->attr->i[2];
  gp_shape shape = sig->in[0]->shape;
  GP_TRY(gp_infer_dim(&shape, dim));
  if (start < 0 || full < 0 || start > full || shape.dim[dim] > full - start)
    return gp_fail(GP_ERANGE, "%lld elements from %lld do not fit into %lld",
                   (long long)shape.dim[dim], (long long)start + 1, (long long)full);
  shape.dim[dim] = full;
  return gp_infer_out(sig, sig->in[0]->dtype, &shape);
}

/* A unit is zeros | x | zeros. All dtypes have 0 as zero bits. */
static gp_status run(const gp_call *call, gp_span span) {
  size_t item = gp_dtype_size(call->out[0].meta->dtype);
  gp_axis to = gp_axis_of(&call->out[0].meta->shape, call->attr->i[0]);
  int64_t size = call->in[0].meta->shape.dim[call->attr->i[0]], start = call->attr->i[1];
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
  int64_t dim = v->attr->i[0];
  gp_attrs narrow = {.i = {dim, v->attr->i[1], gp_vjp_meta(v, v->in[0])->shape.dim[dim]}};
  return gp_build(v->builder, GP_OP_narrow, &narrow, &v->dout[0], 1, &v->din[0]);
}

const gp_op_def gp_def_pad = {
    .name = "pad",
    .min_in = 1,
    .max_in = 1,
    .flags = GP_OP_HALVES,
    .infer = infer,
    .vjp = vjp,
    .cost = gp_cost_copy,
    .cpu = {.cut = gp_cut_outer, .run = run},
};
