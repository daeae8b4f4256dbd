/* ops/convolution/infer_conv.h - checks that the ops of a convolution share: attributes and sizes,
 * with one wording. */
#ifndef GP_OPS_CONVOLUTION_INFER_CONV_H
#define GP_OPS_CONVOLUTION_INFER_CONV_H

#include "ops/gradient.h"
#include "ops/convolution/conv.h"
#include "ops/infer.h"

/* Check that a list attribute is empty, or has `count` numbers that are at least `least`. Errors:
 * GP_EINVAL, GP_ERANGE. */
gp_status gp_image_list(const gp_list *list, const char *name, int count, int64_t least);
/* Check that stride, padding, dilation and groups are such as a convolution has. */
gp_status gp_conv_check(gp_conv_attrs attrs);
/* Count the places that a window has along an axis (0: height) of `size`; at least one.
 * Errors: GP_ESHAPE. */
gp_status gp_conv_places(gp_conv_attrs attrs, int axis, int64_t size, int64_t kernel,
                         int64_t *count);
/* Return the shape of the weight, packed or plain: O x I/groups x KH x KW. */
gp_status gp_conv_infer_weight(const gp_sig *sig, gp_op op, const gp_shape *packed,
                               gp_shape *weight);
/* Count the multiplications and additions of any op of a convolution. */
gp_cost gp_conv_cost(const gp_sig *sig, const gp_shape *map, const gp_shape *weight);

/* Make the gradient [C] of a bias from that of N x C x H x W: sums over all but the channels. */
gp_status gp_conv_bias_gradient(gp_vjp *v, gp_ref dy, gp_ref *db);

#endif
