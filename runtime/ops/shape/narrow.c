/* ops/shape/narrow.c - positions [start, start + length) of one dim; a view of any dtype.
 *
 * It makes slices, selections and the parts of a concat. */
#include "base/status.h"
#include "base/tensor.h"
#include "ops/gradient.h"
#include "ops/infer.h"

static gp_status infer(gp_sig *sig) {
  const gp_meta *in = sig->in[0];
  const gp_attr_narrow *a = &sig->attr->narrow;
  int64_t dim = a->dim, start = a->start, length = a->length;
  GP_TRY(gp_infer_dim(&in->shape, dim));
  int64_t size = in->shape.dim[dim];
  if (start < 0 || length < 0 || start > size || length > size - start)
    return gp_fail(GP_ERANGE, "%lld elements from %lld leave dimension %lld of size %lld",
                   (long long)length, (long long)(start < INT64_MAX ? start + 1 : start),
                   (long long)dim + 1, (long long)size);
  gp_shape shape = in->shape;
  shape.dim[dim] = length;
  GP_TRY(gp_infer_view(sig, &shape, in->stride));
  /* A view without elements may begin anywhere: offset 0 is surely inside. */
  if (gp_meta_numel(&sig->out[0]) > 0) sig->out[0].offset += start * in->stride[dim];
  return GP_OK;
}

/* What was left out had no influence, so its gradient is zeros around dy. */
static gp_status vjp(gp_vjp *v) {
  int64_t dim = v->attr->narrow.dim;
  int64_t full = gp_vjp_meta(v, v->in[0])->shape.dim[dim];
  gp_attrs pad = {.pad = {dim, v->attr->narrow.start, full}};
  return gp_build(v->builder, GP_OP_pad, &pad, &v->dout[0], 1, &v->din[0]);
}

const gp_op_def gp_def_narrow = {
    GP_OP_ROW(narrow),
    .infer = infer,
    .vjp = vjp,
    .cost = gp_cost_none,
};
