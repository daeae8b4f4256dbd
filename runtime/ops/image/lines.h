/* ops/image/lines.h - which rows and columns of an image meet, and with which weight, when an image
 * is pooled, padded or resized: along each axis separately, on every device.
 *
 * An element of the result is a sum of products: elements of the image, weights of the row, weights
 * of the column. `made` is a position of the result, `read` one of the image. In either direction
 * these functions give the candidates, so gradients gather too, and no thread adds to an element
 * that another adds to. */
#ifndef GP_OPS_IMAGE_LINES_H
#define GP_OPS_IMAGE_LINES_H

#include "ops/op.h"

#ifdef __CUDACC__
#define GP_LINES_CALL static __host__ __device__ inline
#else
#define GP_LINES_CALL static inline
#endif

/* A position, or a size, along one axis. Kernels of GPUs (C++) count in 32 bits, since a division
 * of 64 is a call there; launchers check that sizes fit (ops/image/pixels.cuh). Products of two
 * sizes have 64 bits everywhere. */
#ifdef __cplusplus
typedef int32_t gp_line;
#else
typedef int64_t gp_line;
#endif

typedef struct gp_lines {
  gp_resample_mode mode;
  gp_line image, result;                            /* sizes */
  gp_line kernel, stride, before, behind, dilation; /* windows; before, behind: padding too */
  int32_t inside;                                   /* an average counts no padding */
} gp_lines;

GP_LINES_CALL gp_line gp_lines_least(gp_line a, gp_line b) { return a < b ? a : b; }
GP_LINES_CALL gp_line gp_lines_most(gp_line a, gp_line b) { return a > b ? a : b; }
/* Divide and round up; for numbers that are not negative. */
GP_LINES_CALL gp_line gp_lines_up(gp_line a, gp_line b) { return (a + b - 1) / b; }
/* a * b / c, rounded down or up. */
GP_LINES_CALL gp_line gp_lines_share(gp_line a, gp_line b, gp_line c) {
  return (gp_line)((int64_t)a * b / c);
}
GP_LINES_CALL gp_line gp_lines_share_up(gp_line a, gp_line b, gp_line c) {
  return (gp_line)(((int64_t)a * b + c - 1) / c);
}

/* ---- windows -------------------------------------------------------------------------------- */

/* Return where the window of `made` begins, padding counted as negative positions, and
 * where it ends. */
GP_LINES_CALL gp_line gp_lines_first(const gp_lines *l, gp_line made) {
  return l->mode == GP_RESAMPLE_ADAPTIVE ? gp_lines_share(made, l->image, l->result)
                                         : made * l->stride - l->before;
}

GP_LINES_CALL gp_line gp_lines_end(const gp_lines *l, gp_line made) {
  if (l->mode == GP_RESAMPLE_ADAPTIVE) return gp_lines_share_up(made + 1, l->image, l->result);
  return gp_lines_first(l, made) + l->dilation * (l->kernel - 1) + 1;
}

/* Return what an average over the window divides by along this axis. */
GP_LINES_CALL gp_line gp_lines_divisor(const gp_lines *l, gp_line made) {
  const gp_line first = gp_lines_first(l, made), end = gp_lines_end(l, made);
  if (l->inside) return gp_lines_least(end, l->image) - gp_lines_most(first, 0);
  return gp_lines_least(end, l->image + l->behind) - first;
}

/* ---- samples -------------------------------------------------------------------------------- */

/* Return twice the place of `made` in the image times the size of the result, from the middle of
 * its first element: whole numbers, so every device finds the same neighbours. */
GP_LINES_CALL int64_t gp_lines_place(const gp_lines *l, gp_line made) {
  const int64_t place = (2 * (int64_t)made + 1) * l->image - l->result;
  return place > 0 ? place : 0;
}

/* Return the one element that is read if nothing is averaged; -1: a zero of the padding. */
GP_LINES_CALL gp_line gp_lines_source(const gp_lines *l, gp_line made) {
  const gp_line at = made - l->before;
  if (l->mode == GP_RESAMPLE_NEAREST) return gp_lines_share(made, l->image, l->result);
  if (at >= 0 && at < l->image) return at;
  if (l->mode == GP_RESAMPLE_ZERO) return -1;
  return at < 0 ? -at : 2 * (l->image - 1) - at;
}

/* ---- both ----------------------------------------------------------------------------------- */

GP_LINES_CALL int32_t gp_lines_is_window(const gp_lines *l) {
  return l->mode == GP_RESAMPLE_WINDOW || l->mode == GP_RESAMPLE_ADAPTIVE;
}

/* Return the weight of `read` in `made`; 0 if they do not meet. */
GP_LINES_CALL double gp_lines_weight(const gp_lines *l, gp_line made, gp_line read) {
  if (gp_lines_is_window(l)) {
    const gp_line first = gp_lines_first(l, made), end = gp_lines_end(l, made);
    if (read < first || read >= end || (read - first) % l->dilation != 0) return 0;
    return 1.0 / (double)gp_lines_divisor(l, made);
  }
  if (l->mode != GP_RESAMPLE_BILINEAR) return gp_lines_source(l, made) == read;
  const int64_t place = gp_lines_place(l, made), whole = 2 * (int64_t)l->result;
  const double share = (double)(place % whole) / (double)whole; /* of the next element */
  const gp_line at = (gp_line)(place / whole);
  const gp_line next = gp_lines_least(at + 1, l->image - 1);
  return (read == at ? 1 - share : 0) + (read == next ? share : 0);
}

/* Positions [first, end) of the image that `made` may read, `step` apart. */
typedef struct gp_lines_range {
  gp_line first, end, step;
} gp_lines_range;

GP_LINES_CALL gp_lines_range gp_lines_read(const gp_lines *l, gp_line made) {
  gp_lines_range r;
  r.step = 1;
  if (gp_lines_is_window(l)) {
    const gp_line first = gp_lines_first(l, made);
    r.step = l->dilation;
    r.first = first < 0 ? first + gp_lines_up(-first, r.step) * r.step : first;
    r.end = gp_lines_least(gp_lines_end(l, made), l->image);
  } else if (l->mode == GP_RESAMPLE_BILINEAR) {
    r.first = (gp_line)(gp_lines_place(l, made) / (2 * (int64_t)l->result));
    r.end = gp_lines_least(r.first + 2, l->image);
  } else {
    r.first = gp_lines_source(l, made);
    r.end = r.first < 0 ? r.first : r.first + 1;
  }
  return r;
}

/* Positions [first, end) of the result that may read `read`: all but those of a reflection, which
 * gp_lines_mirrored returns. */
GP_LINES_CALL gp_lines_range gp_lines_made(const gp_lines *l, gp_line read) {
  gp_lines_range r;
  r.step = 1;
  if (l->mode == GP_RESAMPLE_ADAPTIVE || l->mode == GP_RESAMPLE_NEAREST) {
    r.first = l->mode == GP_RESAMPLE_NEAREST ? gp_lines_share_up(read, l->result, l->image)
                                             : gp_lines_share(read, l->result, l->image);
    r.end = gp_lines_share_up(read + 1, l->result, l->image);
  } else if (l->mode == GP_RESAMPLE_WINDOW) {
    const gp_line late = read + l->before - l->dilation * (l->kernel - 1);
    r.first = late <= 0 ? 0 : gp_lines_up(late, l->stride);
    r.end = gp_lines_least((read + l->before) / l->stride + 1, l->result);
  } else if (l->mode == GP_RESAMPLE_BILINEAR) {
    r.first = gp_lines_most(gp_lines_share(read - 1, l->result, l->image) - 1, 0);
    r.end = gp_lines_least(gp_lines_share(read + 2, l->result, l->image) + 2, l->result);
  } else {
    r.first = read + l->before;
    r.end = r.first + 1;
  }
  return r;
}

/* Return the position of the result on the other side of an edge, 0: the first one, 1: the last
 * one; -1 if there is none. */
GP_LINES_CALL gp_line gp_lines_mirrored(const gp_lines *l, gp_line read, int side) {
  const gp_line at = side ? l->before + 2 * (l->image - 1) - read : l->before - read;
  if (l->mode != GP_RESAMPLE_REFLECT || at < 0 || at >= l->result) return -1;
  return (side ? read == l->image - 1 : read == 0) ? -1 : at;
}

/* ---- calls --------------------------------------------------------------------------------- */

/* A size that 32 bits hold, and so do sums of two. */
#define GP_LINES_LARGEST (INT64_C(1) << 30)

typedef struct gp_lines_attrs {
  gp_resample_mode mode;
  const gp_list *kernel, *stride, *padding, *dilation; /* dilation: or NULL */
  int32_t inside;
} gp_lines_attrs;

/* Return item i of a list; a stride beyond any image counts as the largest size that there is. */
GP_LINES_CALL gp_line gp_lines_item(const gp_list *list, int i, gp_line otherwise) {
  const int64_t largest = sizeof(gp_line) == 4 ? GP_LINES_LARGEST : INT64_MAX;
  if (i >= list->count) return otherwise;
  return (gp_line)(list->at[i] < largest ? list->at[i] : largest);
}

GP_LINES_CALL gp_lines gp_lines_of(gp_lines_attrs a, int axis, const gp_shape *image,
                                   const gp_shape *result) {
  gp_lines l;
  l.mode = a.mode, l.inside = a.inside;
  l.image = (gp_line)image->dim[2 + axis], l.result = (gp_line)result->dim[2 + axis];
  l.kernel = gp_lines_item(a.kernel, axis, 1);
  l.stride = gp_lines_item(a.stride, axis, l.kernel);
  l.before = gp_lines_item(a.padding, 2 * axis, 0);
  l.behind = gp_lines_item(a.padding, 2 * axis + 1, 0);
  l.dilation = a.dilation ? gp_lines_item(a.dilation, axis, 1) : 1;
  return l;
}

/* The attributes have the same names in each op. */
#define GP_RESAMPLE_ATTRS(a)                                                                       \
  { (a).mode, &(a).kernel, &(a).stride, &(a).padding, NULL, (a).inside }
#define GP_POOL_ATTRS(a)                                                                           \
  { (a).mode, &(a).kernel, &(a).stride, &(a).padding, &(a).dilation, 0 }

#endif
