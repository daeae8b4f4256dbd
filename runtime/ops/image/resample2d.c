/* ops/image/resample2d.c - averages over windows, samples and padding of images, and the gradient
 * of all of them.
 *
 * One kernel serves all: lines.h tells which elements meet, in either direction. The channels of
 * one position are added at once, as they lie in memory. */
#include <string.h>

#include "base/tensor.h"
#include "ops/image/infer_lines.h"

#define GP_REAL_SOURCE "ops/image/resample2d.inc"
#include "ops/math/real.h"

static gp_lines_wish wish_of(const gp_attr_resample2d *a) {
  return (gp_lines_wish){GP_RESAMPLE_ATTRS(*a), &a->size, a->ceil};
}

static gp_lines_wish wish_of_dx(const gp_attr_resample2d_dx *a) {
  return (gp_lines_wish){GP_RESAMPLE_ATTRS(*a), &a->size, a->ceil};
}

/* Count an addition and a product for each element that is met. */
static gp_cost cost(const gp_sig *sig) {
  const double in = (double)gp_meta_numel(sig->in[0]), out = (double)gp_meta_numel(&sig->out[0]);
  return gp_cost_of(sig, 2 * (in > out ? in : out));
}

/* ---- forward -------------------------------------------------------------------------------- */

static gp_status infer(gp_sig *sig) {
  gp_shape out;
  GP_TRY(gp_lines_check_image(sig, GP_OP_resample2d));
  GP_TRY(gp_lines_infer(wish_of(&sig->attr->resample2d), &sig->in[0]->shape, &out));
  return gp_infer_channels_last(sig, sig->in[0]->dtype, &out);
}

static gp_status vjp(gp_vjp *v) {
  const gp_attr_resample2d *a = &v->attr->resample2d;
  const gp_shape x = gp_vjp_meta(v, v->in[0])->shape;
  const gp_attrs attrs = {.resample2d_dx = {.mode = a->mode,
                                            .size = a->size,
                                            .kernel = a->kernel,
                                            .stride = a->stride,
                                            .padding = a->padding,
                                            .ceil = a->ceil,
                                            .inside = a->inside,
                                            .image = {2, {x.dim[2], x.dim[3]}}}};
  if (v->dout[0] == GP_NONE) return GP_OK;
  return gp_build(v->builder, GP_OP_resample2d_dx, &attrs, &v->dout[0], 1, &v->din[0]);
}

static gp_status run(const gp_call *call, gp_span span) {
  const gp_lines_attrs a = GP_RESAMPLE_ATTRS(call->attr->resample2d);
  GP_BY_REAL(call->out[0].meta->dtype, resample)(call, span, a);
  return GP_OK;
}

const gp_op_def gp_def_resample2d = {GP_OP_ROW(resample2d), .infer = infer, .vjp = vjp,
                                     .cost = cost, .cpu = {.cut = gp_lines_cut, .run = run}};

/* ---- gradient ------------------------------------------------------------------------------- */

static gp_status infer_dx(gp_sig *sig) {
  const gp_attr_resample2d_dx *a = &sig->attr->resample2d_dx;
  gp_shape out;
  GP_TRY(gp_lines_infer_dx(sig, GP_OP_resample2d_dx, wish_of_dx(a), &a->image, &out));
  return gp_infer_channels_last(sig, sig->in[0]->dtype, &out);
}

static gp_status run_dx(const gp_call *call, gp_span span) {
  const gp_lines_attrs a = GP_RESAMPLE_ATTRS(call->attr->resample2d_dx);
  GP_BY_REAL(call->out[0].meta->dtype, resample_dx)(call, span, a);
  return GP_OK;
}

const gp_op_def gp_def_resample2d_dx = {GP_OP_ROW(resample2d_dx), .infer = infer_dx, .cost = cost,
                                        .cpu = {.cut = gp_lines_cut, .run = run_dx}};
