/* ops/convolution/conv2d.c - y = x * w + b: windows of an image weighed by a kernel.
 *
 * The map is made in blocks of positions, each by a few products (conv_walk.h). A plan packs the
 * weight once for every change of it; each piece of the work packs a weight that is not packed. */
#include "base/tensor.h"
#include "ops/cut.h"
#include "ops/convolution/walk/conv_call.h"
#include "ops/convolution/infer_conv.h"

/* x [N, I, H, W], w [O, I / groups, KH, KW] -> y [N, O, OH, OW]. */
static gp_status infer(gp_sig *sig) {
  const gp_attr_conv2d *a = &sig->attr->conv2d;
  const gp_conv_attrs attrs = GP_CONV_ATTRS(*a);
  gp_shape w;
  GP_TRY(gp_conv_check(attrs));
  GP_TRY(gp_conv_infer_weight(sig, GP_OP_conv2d, &a->packed, &w));
  const gp_shape *x = &sig->in[0]->shape;
  const gp_shape want = {4, {GP_ANY_DIM, w.dim[1] * a->groups, GP_ANY_DIM, GP_ANY_DIM}};
  GP_TRY(gp_operand_shape(sig, GP_OP_conv2d, 0, &want, a->packed.rank ? -1 : 1));
  if (w.dim[0] % a->groups != 0)
    return gp_fail(GP_ESHAPE, "%lld outputs in %lld groups, expected equal groups",
                   (long long)w.dim[0], (long long)a->groups);
  if (sig->n_in == 3)
    GP_TRY(gp_operand_shape(sig, GP_OP_conv2d, 2, &(gp_shape){1, {w.dim[0]}}, -1));
  gp_shape out = {4, {x->dim[0], w.dim[0]}};
  for (int d = 0; d < 2; d++)
    GP_TRY(gp_conv_places(attrs, d, x->dim[2 + d], w.dim[2 + d], &out.dim[2 + d]));
  return gp_infer_channels_last(sig, sig->in[0]->dtype, &out);
}

/* Reads x and w. The gradient of x is the transposed convolution of dy. */
static gp_status vjp(gp_vjp *v) {
  const gp_attr_conv2d *a = &v->attr->conv2d;
  const gp_ref dy = v->dout[0];
  if (dy == GP_NONE) return GP_OK;
  const gp_shape x = gp_vjp_meta(v, v->in[0])->shape, w = gp_vjp_meta(v, v->in[1])->shape;
  if (v->need[0]) {
    const gp_attrs attrs = {.conv_transpose2d = {.size = {2, {x.dim[2], x.dim[3]}},
                                                 .stride = a->stride,
                                                 .padding = a->padding,
                                                 .dilation = a->dilation,
                                                 .groups = a->groups}};
    GP_TRY(gp_build(v->builder, GP_OP_conv_transpose2d, &attrs, (const gp_ref[]){dy, v->in[1]}, 2,
                    &v->din[0]));
  }
  if (v->need[1]) {
    const gp_attrs attrs = {.conv2d_dw = {.kernel = {2, {w.dim[2], w.dim[3]}},
                                          .stride = a->stride,
                                          .padding = a->padding,
                                          .dilation = a->dilation,
                                          .groups = a->groups}};
    GP_TRY(gp_build(v->builder, GP_OP_conv2d_dw, &attrs, (const gp_ref[]){dy, v->in[0]}, 2,
                    &v->din[1]));
  }
  if (v->n_in == 3 && v->need[2]) GP_TRY(gp_conv_bias_gradient(v, dy, &v->din[2]));
  return GP_OK;
}

static gp_cost cost(const gp_sig *sig) {
  const gp_shape *packed = &sig->attr->conv2d.packed;
  return gp_conv_cost(sig, &sig->out[0].shape, packed->rank ? packed : &sig->in[1]->shape);
}

static gp_cut cut(const gp_call *call) { return gp_conv_cut(call, false); }

static size_t scratch(const gp_call *call) { return gp_conv_call_scratch(call, false); }

static gp_status run(const gp_call *call, gp_span span) { return gp_conv_run(call, false, span); }

const gp_op_def gp_def_conv2d = {GP_OP_ROW(conv2d), .infer = infer, .vjp = vjp, .cost = cost,
                                 .cpu = {.cut = cut, .run = run, .scratch = scratch}};
