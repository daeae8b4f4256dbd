/* ops/image/infer_lines.c - see infer_lines.h. */
#include "ops/image/infer_lines.h"

#include "base/status.h"
#include "base/tensor.h"
#include "ops/convolution/infer_conv.h"

enum { GRAIN = 4 }; /* lines: a megabyte of a wide image */

static bool wants_size(gp_resample_mode mode) {
  return mode == GP_RESAMPLE_ADAPTIVE || mode == GP_RESAMPLE_NEAREST ||
         mode == GP_RESAMPLE_BILINEAR;
}

static gp_status check_lists(const gp_lines_wish *w) {
  const gp_lines_attrs *a = &w->attrs;
  GP_TRY(gp_image_list(w->size, "size", 2, 1));
  GP_TRY(gp_image_list(a->kernel, "kernel", 2, 1));
  GP_TRY(gp_image_list(a->stride, "stride", 2, 1));
  GP_TRY(gp_image_list(a->padding, "padding", 4, 0));
  if (a->dilation) GP_TRY(gp_image_list(a->dilation, "dilation", 2, 1));
  if (wants_size(a->mode) && w->size->count == 0)
    return gp_fail(GP_EINVAL, "size has 0 numbers, expected 2");
  if (a->mode == GP_RESAMPLE_WINDOW && a->kernel->count == 0)
    return gp_fail(GP_EINVAL, "kernel has 0 numbers, expected 2");
  return GP_OK;
}

/* Check that padding is at most half a window: with more, a window could meet no element at all. */
static gp_status check_window(const gp_lines *l, const char *axis) {
  const int64_t window = l->dilation * (l->kernel - 1) + 1;
  const int64_t padded = l->image + l->before + l->behind;
  if (2 * l->before > window || 2 * l->behind > window)
    return gp_fail(GP_ERANGE, "padding is %lld, expected at most half of the window of %lld",
                   (long long)gp_lines_most(l->before, l->behind), (long long)window);
  if (padded >= window) return GP_OK;
  return gp_fail(GP_ESHAPE, "a window of %lld does not fit into the padded %s of %lld",
                 (long long)window, axis, (long long)padded);
}

/* Count the windows. A last window that is not whole must begin in the image or before it. */
static int64_t windows(const gp_lines *l, bool ceil) {
  const int64_t rest = l->image + l->before + l->behind - l->dilation * (l->kernel - 1) - 1;
  int64_t count = (ceil ? gp_lines_up(rest, l->stride) : rest / l->stride) + 1;
  if (ceil && (count - 1) * l->stride >= l->image + l->before) count--;
  return count;
}

static gp_status infer_axis(const gp_lines_wish *w, int axis, const gp_shape *image,
                            int64_t *size) {
  const char *name = axis ? "width" : "height";
  const gp_lines l = gp_lines_of(w->attrs, axis, image, image);
  if (l.image < 1 && l.mode != GP_RESAMPLE_ZERO)
    return gp_fail(GP_ESHAPE, "the image has no %s", name);
  *size = l.image + l.before + l.behind;
  if (wants_size(l.mode)) *size = w->size->at[axis];
  if (l.mode == GP_RESAMPLE_REFLECT && gp_lines_most(l.before, l.behind) >= l.image)
    return gp_fail(GP_ESHAPE, "padding is %lld, expected less than the %s of %lld",
                   (long long)gp_lines_most(l.before, l.behind), name, (long long)l.image);
  if (l.mode != GP_RESAMPLE_WINDOW) return GP_OK;
  GP_TRY(check_window(&l, name));
  *size = windows(&l, w->ceil);
  return GP_OK;
}

gp_status gp_lines_infer(gp_lines_wish w, const gp_shape *image, gp_shape *result) {
  GP_TRY(check_lists(&w));
  *result = *image;
  for (int d = 0; d < 2; d++) GP_TRY(infer_axis(&w, d, image, &result->dim[2 + d]));
  return GP_OK;
}

gp_status gp_lines_check_image(const gp_sig *sig, gp_op op) {
  static const gp_shape any = {4, {GP_ANY_DIM, GP_ANY_DIM, GP_ANY_DIM, GP_ANY_DIM}};
  return gp_operand_shape(sig, op, 0, &any, -1);
}

gp_status gp_lines_infer_dx(const gp_sig *sig, gp_op op, gp_lines_wish wish, const gp_list *image,
                            gp_shape *shape) {
  gp_shape want;
  GP_TRY(gp_lines_check_image(sig, op));
  GP_TRY(gp_image_list(image, "image", 2, 0));
  if (image->count == 0) return gp_fail(GP_EINVAL, "image has 0 numbers, expected 2");
  *shape = sig->in[0]->shape;
  for (int d = 0; d < 2; d++) shape->dim[2 + d] = image->at[d];
  GP_TRY(gp_lines_infer(wish, shape, &want));
  return gp_operand_shape(sig, op, 0, &want, -1);
}

gp_cut gp_lines_cut(const gp_call *call) {
  const gp_shape *out = &call->out[0].meta->shape;
  return (gp_cut){out->dim[0] * out->dim[2], GRAIN};
}
