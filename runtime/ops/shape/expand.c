/* ops/shape/expand.c - repeat a value along dims of size 1 and along new leading dims.
 *
 * It is a view with stride 0 in those dims, so the repetition costs no memory. The gradient
 * sums over them. */
#include "base/status.h"
#include "ops/infer.h"

static gp_status refuse(const gp_shape *from, const gp_shape *to) {
  char a[GP_SHAPE_TEXT], b[GP_SHAPE_TEXT];
  return gp_fail(GP_ESHAPE, "shape %s does not broadcast to %s", gp_shape_print(from, a, sizeof a),
                 gp_shape_print(to, b, sizeof b));
}

/* Dims are compared from the last one backwards, as in NumPy. */
static gp_status infer(gp_sig *sig) {
  const gp_meta *in = sig->in[0];
  const gp_shape to = sig->attr->expand.to;
  int64_t stride[GP_MAX_RANK] = {0};
  GP_TRY(gp_infer_rank(&to));
  int extra = to.rank - in->shape.rank;
  if (extra < 0) return refuse(&in->shape, &to);
  for (int d = 0; d < in->shape.rank; d++) {
    if (in->shape.dim[d] == to.dim[extra + d]) {
      stride[extra + d] = in->stride[d];
    } else if (in->shape.dim[d] != 1) {
      return refuse(&in->shape, &to);
    }
  }
  return gp_infer_view(sig, &to, stride);
}

static gp_status vjp(gp_vjp *v) { return gp_vjp_set_broadcast(v, 0, v->dout[0]); }

const gp_op_def gp_def_expand = {
    GP_OP_ROW(expand),
    .infer = infer,
    .vjp = vjp,
    .cost = gp_cost_none,
};
