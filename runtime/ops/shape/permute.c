/* ops/shape/permute.c - dims in another order; a view of any dtype.
 *
 * Attributes: rank, order; dim d of the result is dim order[d] of the input. The gradient is the
 * inverse order. */
#include "base/status.h"
#include "ops/infer.h"

/* Every dim exactly once. */
static gp_status check_order(const gp_attrs *attrs, int rank) {
  unsigned seen = 0;
  if (attrs->i[0] != rank)
    return gp_fail(GP_ESHAPE, "%lld positions for a value of %d dimensions", (long long)attrs->i[0],
                   rank);
  for (int d = 0; d < rank; d++) {
    int64_t from = attrs->i[1 + d];
    if (from < 0 || from >= rank)
      return gp_fail(GP_ERANGE, "dimension %lld is outside 1 .. %d", (long long)from + 1, rank);
    if (seen >> from & 1)
      return gp_fail(GP_EINVAL, "dimension %lld is named twice", (long long)from + 1);
    seen |= 1u << from;
  }
  return GP_OK;
}

static gp_status infer(gp_sig *sig) {
  const gp_meta *in = sig->in[0];
  gp_shape shape = {.rank = in->shape.rank};
  int64_t stride[GP_MAX_RANK];
  GP_TRY(check_order(sig->attr, in->shape.rank));
  for (int d = 0; d < shape.rank; d++) {
    shape.dim[d] = in->shape.dim[sig->attr->i[1 + d]];
    stride[d] = in->stride[sig->attr->i[1 + d]];
  }
  return gp_infer_view(sig, &shape, stride);
}

/* Dim order[d] of dx is dim d of dy. */
static gp_status vjp(gp_vjp *v) {
  gp_attrs inverse = {.i = {v->attr->i[0]}};
  for (int d = 0; d < v->attr->i[0]; d++) inverse.i[1 + v->attr->i[1 + d]] = d;
  return gp_build(v->builder, GP_OP_permute, &inverse, &v->dout[0], 1, &v->din[0]);
}

const gp_op_def gp_def_permute = {
    .name = "permute",
    .min_in = 1,
    .max_in = 1,
    .flags = GP_OP_VIEW,
    .infer = infer,
    .vjp = vjp,
    .cost = gp_cost_none,
};
