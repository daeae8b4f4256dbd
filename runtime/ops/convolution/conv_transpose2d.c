/* ops/convolution/conv_transpose2d.c - the transposed convolution, from a map to an image.
 *
 * It is the gradient of conv2d's input, and a layer of its own. A position of the result meets only
 * taps of one remainder by the stride, so the result is made lattice by lattice (conv_walk.h):
 * nothing is multiplied by zeros between the elements of the map. */
#include "base/tensor.h"
#include "ops/cut.h"
#include "ops/convolution/walk/conv_call.h"
#include "ops/convolution/infer_conv.h"

/* Check that in[0] is the map of an image of the size that is asked for. */
static gp_status check_size(const gp_sig *sig, const gp_shape *w) {
  const gp_attr_conv_transpose2d *a = &sig->attr->conv_transpose2d;
  gp_shape want = {4, {GP_ANY_DIM, w->dim[0], 0, 0}};
  GP_TRY(gp_image_list(&a->size, "size", 2, 0));
  if (a->size.count == 0) return gp_fail(GP_EINVAL, "size has 0 numbers, expected 2");
  for (int d = 0; d < 2; d++)
    GP_TRY(gp_conv_places(GP_CONV_ATTRS(*a), d, a->size.at[d], w->dim[2 + d], &want.dim[2 + d]));
  return gp_operand_shape(sig, GP_OP_conv_transpose2d, 0, &want, a->packed.rank ? -1 : 1);
}

/* x [N, O, h, w], w [O, I / groups, KH, KW] -> y [N, I, size]. */
static gp_status infer(gp_sig *sig) {
  const gp_attr_conv_transpose2d *a = &sig->attr->conv_transpose2d;
  gp_shape w;
  GP_TRY(gp_conv_check(GP_CONV_ATTRS(*a)));
  GP_TRY(gp_conv_infer_weight(sig, GP_OP_conv_transpose2d, &a->packed, &w));
  GP_TRY(check_size(sig, &w));
  if (w.dim[0] % a->groups != 0)
    return gp_fail(GP_ESHAPE, "%lld inputs in %lld groups, expected equal groups",
                   (long long)w.dim[0], (long long)a->groups);
  gp_shape out = {4,
                  {sig->in[0]->shape.dim[0], w.dim[1] * a->groups, a->size.at[0], a->size.at[1]}};
  if (sig->n_in == 3)
    GP_TRY(gp_operand_shape(sig, GP_OP_conv_transpose2d, 2, &(gp_shape){1, {out.dim[1]}}, -1));
  return gp_infer_channels_last(sig, sig->in[0]->dtype, &out);
}

/* It is conv2d the other way around: the image is dy, the map is x. */
static gp_status vjp(gp_vjp *v) {
  const gp_attr_conv_transpose2d *a = &v->attr->conv_transpose2d;
  const gp_ref dy = v->dout[0];
  if (dy == GP_NONE) return GP_OK;
  const gp_shape w = gp_vjp_meta(v, v->in[1])->shape;
  if (v->need[0]) {
    const gp_attrs attrs = {.conv2d = {.stride = a->stride,
                                       .padding = a->padding,
                                       .dilation = a->dilation,
                                       .groups = a->groups}};
    GP_TRY(
        gp_build(v->builder, GP_OP_conv2d, &attrs, (const gp_ref[]){dy, v->in[1]}, 2, &v->din[0]));
  }
  if (v->need[1]) {
    const gp_attrs attrs = {.conv2d_dw = {.kernel = {2, {w.dim[2], w.dim[3]}},
                                          .stride = a->stride,
                                          .padding = a->padding,
                                          .dilation = a->dilation,
                                          .groups = a->groups}};
    GP_TRY(gp_build(v->builder, GP_OP_conv2d_dw, &attrs, (const gp_ref[]){v->in[0], dy}, 2,
                    &v->din[1]));
  }
  if (v->n_in == 3 && v->need[2]) GP_TRY(gp_conv_bias_gradient(v, dy, &v->din[2]));
  return GP_OK;
}

static gp_cost cost(const gp_sig *sig) {
  const gp_shape *packed = &sig->attr->conv_transpose2d.packed;
  return gp_conv_cost(sig, &sig->in[0]->shape, packed->rank ? packed : &sig->in[1]->shape);
}

static gp_cut cut(const gp_call *call) { return gp_conv_cut(call, true); }

static size_t scratch(const gp_call *call) { return gp_conv_call_scratch(call, true); }

static gp_status run(const gp_call *call, gp_span span) { return gp_conv_run(call, true, span); }

const gp_op_def gp_def_conv_transpose2d = {GP_OP_ROW(conv_transpose2d), .infer = infer, .vjp = vjp,
                                           .cost = cost,
                                           .cpu = {.cut = cut, .run = run, .scratch = scratch}};
