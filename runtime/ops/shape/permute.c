/* ops/shape/permute.c - dims in another order; a view of any dtype.
 *
 * Dim d of the result is dim order[d] of the input. The gradient is the inverse order. */
#include "base/status.h"
#include "ops/infer.h"

/* Check that the order names every dim exactly once. */
static gp_status check_order(const gp_list *order, int rank) {
  unsigned seen = 0;
  if (order->count != rank)
    return gp_fail(GP_ESHAPE, "%d positions for a value of %d dimensions", order->count, rank);
  for (int d = 0; d < rank; d++) {
    int64_t from = order->at[d];
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
  GP_TRY(check_order(&sig->attr->permute.order, in->shape.rank));
  for (int d = 0; d < shape.rank; d++) {
    shape.dim[d] = in->shape.dim[sig->attr->permute.order.at[d]];
    stride[d] = in->stride[sig->attr->permute.order.at[d]];
  }
  return gp_infer_view(sig, &shape, stride);
}

/* Dim order[d] of dx is dim d of dy. */
static gp_status vjp(gp_vjp *v) {
  const gp_list *order = &v->attr->permute.order;
  gp_attrs inverse = {.permute = {.order = {.count = order->count}}};
  for (int d = 0; d < order->count; d++) inverse.permute.order.at[order->at[d]] = d;
  return gp_build(v->builder, GP_OP_permute, &inverse, &v->dout[0], 1, &v->din[0]);
}

const gp_op_def gp_def_permute = {
    GP_OP_ROW(permute),
    .infer = infer,
    .vjp = vjp,
    .cost = gp_cost_none,
};
