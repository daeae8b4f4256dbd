/* base/shape.c - shapes and metas: how many elements, where they lie, how they are printed.
 *
 * Every product is checked here, once: gp_meta_make refuses what does not fit, so that all later
 * code may multiply the dimensions, strides and element size of a meta freely. */
#include "base/tensor.h"

#include <stdio.h>
#include <string.h>

/* ---- shapes ---- */

/* The text names the shape: a script often sees the error far from where the shape was made. */
static gp_status fail_shape(const gp_shape *shape, const char *what) {
  char text[128];
  return gp_fail(GP_ESHAPE, "shape: %s %s", gp_shape_print(shape, text, sizeof text), what);
}

gp_status gp_shape_numel(const gp_shape *shape, int64_t *numel) {
  if (shape->rank < 0 || shape->rank > GP_MAX_RANK)
    return gp_fail(GP_ESHAPE, "shape: %d dimensions, at most %d are possible", shape->rank,
                   (int)GP_MAX_RANK);
  int64_t product = 1;
  bool empty = false;
  for (int i = 0; i < shape->rank; i++) {
    int64_t dim = shape->dim[i];
    if (dim < 0) return fail_shape(shape, "has a negative dimension");
    empty = empty || dim == 0;
    /* The dims of an empty shape must fit too: strides are products of some of them. */
    if (dim > 0 && __builtin_mul_overflow(product, dim, &product))
      return fail_shape(shape, "has more elements than 64 bits can count");
  }
  *numel = empty ? 0 : product;
  return GP_OK;
}

/* Compare dimension by dimension: those behind the rank may hold anything, so memcmp would not
 * do. */
bool gp_shape_equal(const gp_shape *a, const gp_shape *b) {
  if (a->rank != b->rank) return false;
  for (int i = 0; i < a->rank; i++)
    if (a->dim[i] != b->dim[i]) return false;
  return true;
}

/* Cut the text off where it is too small; it is for messages. */
char *gp_shape_print(const gp_shape *shape, char *text, size_t size) {
  if (size == 0) return text;
  snprintf(text, size, "%s", shape->rank == 0 ? "scalar" : "");
  int rank = shape->rank < GP_MAX_RANK ? shape->rank : GP_MAX_RANK;
  for (int i = 0; i < rank; i++) {
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%lld", i ? "x" : "", (long long)shape->dim[i]);
  }
  return text;
}

/* ---- metas ---- */

/* Strides are made as if empty dims were 1, so that numel 0 does not hide a product that is too
 * large; the byte count of that shape is checked last. */
gp_status gp_meta_make(gp_dtype dtype, const gp_shape *shape, gp_meta *meta) {
  int64_t numel, bytes;
  GP_TRY(gp_shape_numel(shape, &numel));
  if ((unsigned)dtype >= GP_DTYPE_COUNT)
    return gp_fail(GP_EDTYPE, "dtype: %d is no dtype", (int)dtype);
  gp_meta made = {.dtype = dtype, .shape = *shape};
  int64_t stride = 1;
  for (int i = shape->rank - 1; i >= 0; i--) {
    made.stride[i] = stride;
    stride *= shape->dim[i] > 0 ? shape->dim[i] : 1;
  }
  if (__builtin_mul_overflow(stride, (int64_t)gp_dtype_size(dtype), &bytes))
    return fail_shape(shape, "has more bytes than 64 bits can count");
  *meta = made;
  return GP_OK;
}

bool gp_meta_is_contiguous(const gp_meta *meta) {
  int64_t expected = 1;
  bool rows_follow = true; /* an empty view is contiguous whatever its strides: look at all dims */
  for (int i = meta->shape.rank - 1; i >= 0; i--) {
    int64_t dim = meta->shape.dim[i];
    if (dim == 0) return true;
    if (dim > 1 && meta->stride[i] != expected) rows_follow = false;
    expected *= dim;
  }
  return rows_follow;
}

void gp_meta_set_channels_last(gp_meta *meta) {
  const int64_t *dim = meta->shape.dim;
  GP_ASSERT(meta->shape.rank == 4);
  meta->stride[1] = 1;
  meta->stride[3] = dim[1];
  meta->stride[2] = dim[1] * dim[3];
  meta->stride[0] = dim[1] * dim[3] * dim[2];
}

bool gp_meta_is_channels_last(const gp_meta *meta) {
  gp_meta last = *meta;
  if (meta->shape.rank != 4) return false;
  gp_meta_set_channels_last(&last);
  for (int d = 0; d < 4; d++)
    if (meta->shape.dim[d] != 1 && meta->stride[d] != last.stride[d]) return false;
  return true;
}

/* Strides and offset say where a value lies, not what it is. */
bool gp_meta_equal(const gp_meta *a, const gp_meta *b) {
  return a->dtype == b->dtype && gp_shape_equal(&a->shape, &b->shape);
}

/* Multiply some dims of a checked shape. Look for zeros first: the product around one may not
 * fit. */
static int64_t product(const int64_t *dim, int count) {
  int64_t total = 1;
  for (int i = 0; i < count; i++)
    if (dim[i] == 0) return 0;
  for (int i = 0; i < count; i++) total *= dim[i];
  return total;
}

int64_t gp_meta_numel(const gp_meta *meta) { return product(meta->shape.dim, meta->shape.rank); }

int64_t gp_meta_rows(const gp_meta *meta) {
  return product(meta->shape.dim, meta->shape.rank > 0 ? meta->shape.rank - 1 : 0);
}

int64_t gp_meta_width(const gp_meta *meta) {
  return meta->shape.rank > 0 ? meta->shape.dim[meta->shape.rank - 1] : 1;
}

size_t gp_meta_bytes(const gp_meta *meta) {
  return (size_t)gp_meta_numel(meta) * gp_dtype_size(meta->dtype);
}

char *gp_meta_print(const gp_meta *meta, char *text, size_t size) {
  char shape[128];
  snprintf(text, size, "%s %s", gp_dtype_name(meta->dtype),
           gp_shape_print(&meta->shape, shape, sizeof shape));
  return text;
}
