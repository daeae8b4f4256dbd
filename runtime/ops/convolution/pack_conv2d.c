/* ops/convolution/pack_conv2d.c - a convolution's weight in the order that its products want.
 *
 * conv2d reads [KH KW, I, O], conv_transpose2d [KH KW, O, I]: taps outermost, and the channels of
 * the result side by side, in panels where the products read panels (conv_product.c). Groups and
 * strides make no difference. */
#include "base/tensor.h"
#include "ops/cut.h"
#include "ops/convolution/walk/conv_walk.h"
#include "ops/infer.h"

static gp_status infer(gp_sig *sig) {
  static const gp_shape want = {4, {GP_ANY_DIM, GP_ANY_DIM, GP_ANY_DIM, GP_ANY_DIM}};
  GP_TRY(gp_operand_shape(sig, GP_OP_pack_conv2d, 0, &want, -1));
  return gp_infer_packed(sig, gp_meta_bytes(sig->in[0]));
}

static gp_cut cut(const gp_call *call) {
  const gp_shape *w = &call->in[0].meta->shape;
  const int64_t middle = w->dim[call->attr->pack_conv2d.transposed ? 0 : 1];
  return (gp_cut){w->dim[2] * w->dim[3] * middle, GP_ROW_BLOCK};
}

static gp_status run(const gp_call *call, gp_span span) {
  const gp_meta *w = call->in[0].meta;
  gp_conv_pack(&w->shape, call->attr->pack_conv2d.transposed, w->dtype, call->in[0].data,
               call->out[0].data, span);
  return GP_OK;
}

const gp_op_def gp_def_pack_conv2d = {GP_OP_ROW(pack_conv2d), .infer = infer, .cost = gp_cost_copy,
                                      .cpu = {.cut = cut, .run = run}};
