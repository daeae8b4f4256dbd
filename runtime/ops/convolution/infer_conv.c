/* ops/convolution/infer_conv.c - see infer_conv.h. */
#include "ops/convolution/infer_conv.h"

#include "base/memory.h"
#include "base/status.h"
#include "base/tensor.h"

gp_status gp_image_list(const gp_list *list, const char *name, int count, int64_t least) {
  if (list->count != 0 && list->count != count)
    return gp_fail(GP_EINVAL, "%s has %d numbers, expected %d", name, list->count, count);
  for (int i = 0; i < list->count; i++)
    if (list->at[i] < least || list->at[i] > INT32_MAX)
      return gp_fail(GP_ERANGE, "%s is %lld, expected at least %lld", name, (long long)list->at[i],
                     (long long)least);
  return GP_OK;
}

gp_status gp_conv_check(gp_conv_attrs a) {
  GP_TRY(gp_image_list(a.stride, "stride", 2, 1));
  GP_TRY(gp_image_list(a.padding, "padding", 4, 0));
  GP_TRY(gp_image_list(a.dilation, "dilation", 2, 1));
  if (a.groups >= 1) return GP_OK;
  return gp_fail(GP_ERANGE, "groups is %lld, expected at least 1", (long long)a.groups);
}

/* Sizes of tensors and attributes are below 2^40 each, so their sums fit. */
gp_status gp_conv_places(gp_conv_attrs a, int axis, int64_t size, int64_t kernel, int64_t *count) {
  const int64_t padded =
      size + gp_list_at(a.padding, 2 * axis, 0) + gp_list_at(a.padding, 2 * axis + 1, 0);
  const int64_t window = gp_list_at(a.dilation, axis, 1) * (kernel - 1) + 1;
  if (kernel < 1 || padded < window)
    return gp_fail(GP_ESHAPE, "a window of %lld does not fit into the padded %s of %lld",
                   (long long)window, axis ? "width" : "height", (long long)padded);
  *count = (padded - window) / gp_list_at(a.stride, axis, 1) + 1;
  return GP_OK;
}

static gp_status packed_weight(const gp_sig *sig, gp_op op, const gp_shape *packed) {
  size_t bytes = gp_dtype_size(sig->in[0]->dtype);
  if (packed->rank != 4)
    return gp_fail(GP_ERANGE, "packed has %d dimensions, expected those of a weight, or 0",
                   packed->rank);
  for (int d = 0; d < 4; d++) GP_TRY(gp_size_mul(bytes, (size_t)packed->dim[d], &bytes));
  return gp_operand_packed(sig, op, 1, bytes);
}

gp_status gp_conv_infer_weight(const gp_sig *sig, gp_op op, const gp_shape *packed,
                               gp_shape *weight) {
  static const gp_shape image = {4, {GP_ANY_DIM, GP_ANY_DIM, GP_ANY_DIM, GP_ANY_DIM}};
  if (packed->rank) {
    GP_TRY(packed_weight(sig, op, packed));
    *weight = *packed;
  } else {
    GP_TRY(gp_operand_plain(sig, op, 1));
    GP_TRY(gp_operand_shape(sig, op, 1, &image, -1));
    *weight = sig->in[1]->shape;
  }
  return gp_operand_shape(sig, op, 0, &image, -1);
}

gp_cost gp_conv_cost(const gp_sig *sig, const gp_shape *map, const gp_shape *weight) {
  double places = (double)map->dim[0] * (double)map->dim[2] * (double)map->dim[3];
  double products = (double)weight->dim[0] * (double)weight->dim[1] * (double)weight->dim[2] *
                    (double)weight->dim[3];
  return gp_cost_of(sig, 2 * places * products);
}

/* Channels-last memory is rows of channels already, so the view costs nothing. */
gp_status gp_conv_bias_gradient(gp_vjp *v, gp_ref dy, gp_ref *db) {
  const gp_attrs last = {.permute = {{4, {0, 2, 3, 1}}}};
  gp_ref rows;
  GP_TRY(gp_build(v->builder, GP_OP_permute, &last, &dy, 1, &rows));
  return gp_vjp_op1(v, GP_OP_sum_rows_dw, rows, db);
}
