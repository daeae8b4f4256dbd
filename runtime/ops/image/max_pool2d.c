/* ops/image/max_pool2d.c - the largest element of each window of an image, and its gradient.
 *
 * The position of each largest element is kept, in a byte where that is enough (taps.h): the
 * gradient goes there, and the image itself is not needed. */
#include <string.h>

#include "base/tensor.h"
#include "ops/image/infer_lines.h"
#include "ops/image/taps.h"

#define GP_REAL_SOURCE "ops/image/max_pool2d.inc"
#include "ops/math/real.h"

static gp_status check_mode(gp_resample_mode mode) {
  if (mode == GP_RESAMPLE_WINDOW || mode == GP_RESAMPLE_ADAPTIVE) return GP_OK;
  return gp_fail(GP_EINVAL, "mode is no window, expected \"window\" or \"adaptive\"");
}

/* Count about one comparison for each element of the image. */
static gp_cost cost(const gp_sig *sig) {
  const double in = (double)gp_meta_numel(sig->in[0]), out = (double)gp_meta_numel(&sig->out[0]);
  return gp_cost_of(sig, in > out ? in : out);
}

/* ---- forward -------------------------------------------------------------------------------- */

static gp_status infer(gp_sig *sig) {
  const gp_attr_max_pool2d *a = &sig->attr->max_pool2d;
  const gp_lines_wish wish = {GP_POOL_ATTRS(*a), &a->size, a->ceil};
  gp_shape out;
  GP_TRY(check_mode(a->mode));
  GP_TRY(gp_lines_check_image(sig, GP_OP_max_pool2d));
  GP_TRY(gp_lines_infer(wish, &sig->in[0]->shape, &out));
  const gp_lines h = gp_lines_of(wish.attrs, 0, &sig->in[0]->shape, &out);
  const gp_lines w = gp_lines_of(wish.attrs, 1, &sig->in[0]->shape, &out);
  GP_TRY(gp_infer_channels_last(sig, sig->in[0]->dtype, &out));
  return gp_infer_channels_last(sig, gp_taps_fit(&h, &w) ? GP_U8 : GP_I64, &out);
}

static gp_status vjp(gp_vjp *v) {
  const gp_attr_max_pool2d *a = &v->attr->max_pool2d;
  const gp_shape x = gp_vjp_meta(v, v->in[0])->shape;
  const gp_attrs attrs = {.max_pool2d_dx = {.mode = a->mode,
                                            .size = a->size,
                                            .kernel = a->kernel,
                                            .stride = a->stride,
                                            .padding = a->padding,
                                            .dilation = a->dilation,
                                            .ceil = a->ceil,
                                            .image = {2, {x.dim[2], x.dim[3]}}}};
  GP_TRY(gp_vjp_first_output_only(v));
  if (v->dout[0] == GP_NONE) return GP_OK;
  return gp_build(v->builder, GP_OP_max_pool2d_dx, &attrs, (const gp_ref[]){v->dout[0], v->out[1]},
                  2, &v->din[0]);
}

static gp_status run(const gp_call *call, gp_span span) {
  if (call->out[1].meta->dtype == GP_U8)
    GP_BY_REAL(call->out[0].meta->dtype, pool_byte)(call, span);
  else
    GP_BY_REAL(call->out[0].meta->dtype, pool)(call, span);
  return GP_OK;
}

const gp_op_def gp_def_max_pool2d = {GP_OP_ROW(max_pool2d), .infer = infer, .vjp = vjp,
                                     .cost = cost, .cpu = {.cut = gp_lines_cut, .run = run}};

/* ---- gradient ------------------------------------------------------------------------------- */

static gp_status infer_dx(gp_sig *sig) {
  const gp_attr_max_pool2d_dx *a = &sig->attr->max_pool2d_dx;
  const gp_lines_wish wish = {GP_POOL_ATTRS(*a), &a->size, a->ceil};
  gp_shape out;
  GP_TRY(check_mode(a->mode));
  GP_TRY(gp_lines_infer_dx(sig, GP_OP_max_pool2d_dx, wish, &a->image, &out));
  GP_TRY(gp_operand_shape(sig, GP_OP_max_pool2d_dx, 1, &sig->in[0]->shape, 0));
  const gp_lines h = gp_lines_of(wish.attrs, 0, &out, &sig->in[0]->shape);
  const gp_lines w = gp_lines_of(wish.attrs, 1, &out, &sig->in[0]->shape);
  const gp_dtype kept = sig->in[1]->dtype;
  if (kept != GP_I64 && !(kept == GP_U8 && gp_taps_fit(&h, &w)))
    return gp_fail(GP_EDTYPE, "positions are %s, expected those that max_pool2d keeps",
                   gp_dtype_name(kept));
  return gp_infer_channels_last(sig, sig->in[0]->dtype, &out);
}

static gp_status run_dx(const gp_call *call, gp_span span) {
  if (call->in[1].meta->dtype == GP_U8)
    GP_BY_REAL(call->out[0].meta->dtype, pool_dx_byte)(call, span);
  else
    GP_BY_REAL(call->out[0].meta->dtype, pool_dx)(call, span);
  return GP_OK;
}

const gp_op_def gp_def_max_pool2d_dx = {GP_OP_ROW(max_pool2d_dx), .infer = infer_dx, .cost = cost,
                                        .cpu = {.cut = gp_lines_cut, .run = run_dx}};
