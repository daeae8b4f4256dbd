/* ops/convolution/conv.h - which elements of a convolution meet: the one description that all of
 * its ops use, on every device.
 *
 * A convolution joins an image (the input of conv2d) and a map (its output). Position m of the map
 * meets position m * stride - before + k * dilation of the image at tap k of the kernel. conv2d
 * reads the image, conv_transpose2d the map, conv2d_dw both. */
#ifndef GP_OPS_CONVOLUTION_CONV_H
#define GP_OPS_CONVOLUTION_CONV_H

#include "ops/op.h"

typedef struct gp_conv_axis {
  int64_t image, map, kernel; /* sizes */
  int64_t stride, before, dilation;
} gp_conv_axis;

/* Values are N x H x W x C in memory. */
typedef struct gp_conv {
  int64_t rows, groups;
  int64_t image_c, map_c; /* channels of all groups */
  gp_conv_axis h, w;
} gp_conv;

/* Attributes that all ops of a convolution have; an empty list means the defaults. */
typedef struct gp_conv_attrs {
  const gp_list *stride, *padding, *dilation;
  int64_t groups;
} gp_conv_attrs;

#define GP_CONV_ATTRS(a)                                                                           \
  (gp_conv_attrs) { &(a).stride, &(a).padding, &(a).dilation, (a).groups }

static inline int64_t gp_list_at(const gp_list *list, int i, int64_t otherwise) {
  return i < list->count ? list->at[i] : otherwise;
}

/* axis: 0 for the height, 1 for the width. padding: before and behind the height, then the same
 * for the width. */
static inline gp_conv_axis gp_conv_axis_of(gp_conv_attrs a, int axis, int64_t image, int64_t map,
                                           int64_t kernel) {
  gp_conv_axis made;
  made.image = image, made.map = map, made.kernel = kernel;
  made.stride = gp_list_at(a.stride, axis, 1);
  made.before = gp_list_at(a.padding, 2 * axis, 0);
  made.dilation = gp_list_at(a.dilation, axis, 1);
  return made;
}

static inline gp_conv gp_conv_of(gp_conv_attrs a, const gp_shape *image, const gp_shape *map,
                                 const gp_shape *weight) {
  gp_conv c;
  c.rows = image->dim[0], c.groups = a.groups;
  c.image_c = image->dim[1], c.map_c = map->dim[1];
  c.h = gp_conv_axis_of(a, 0, image->dim[2], map->dim[2], weight->dim[2]);
  c.w = gp_conv_axis_of(a, 1, image->dim[3], map->dim[3], weight->dim[3]);
  return c;
}

/* ---- calls --------------------------------------------------------------------------------- */

static inline const gp_shape *gp_conv_weight(const gp_call *call, const gp_shape *packed) {
  return packed->rank ? packed : &call->in[1].meta->shape;
}

static inline gp_conv gp_conv_forward(const gp_call *call) {
  const gp_attr_conv2d *a = &call->attr->conv2d;
  return gp_conv_of(GP_CONV_ATTRS(*a), &call->in[0].meta->shape, &call->out[0].meta->shape,
                    gp_conv_weight(call, &a->packed));
}

static inline gp_conv gp_conv_transposed(const gp_call *call) {
  const gp_attr_conv_transpose2d *a = &call->attr->conv_transpose2d;
  return gp_conv_of(GP_CONV_ATTRS(*a), &call->out[0].meta->shape, &call->in[0].meta->shape,
                    gp_conv_weight(call, &a->packed));
}

static inline gp_conv gp_conv_dw(const gp_call *call) {
  return gp_conv_of(GP_CONV_ATTRS(call->attr->conv2d_dw), &call->in[1].meta->shape,
                    &call->in[0].meta->shape, &call->out[0].meta->shape);
}

#endif
