/* base/gather.c - batches out of data in memory: rows by position, windows of bytes.
 *
 * Every position is checked against the data before it is used: positions come from scripts. */
#include <string.h>

#include "base/tensor.h"
#include "gpipe/gather.h"

/* Positions are i64 [n], each at least 0 and at most `limit`. */
static gp_status check_positions(const char *who, const gp_tensor *positions, int64_t limit) {
  const gp_meta *meta = gp_tensor_meta(positions);
  if (meta->dtype != GP_I64 || meta->shape.rank != 1 || !gp_meta_is_contiguous(meta))
    return gp_fail(GP_ESHAPE, "%s: the positions are not a contiguous i64 tensor of one dimension",
                   who);
  const int64_t *at = gp_tensor_data(positions);
  for (int64_t i = 0; i < meta->shape.dim[0]; i++)
    if (at[i] < 0 || at[i] > limit)
      return gp_fail(GP_ERANGE, "%s: position %lld (from 0), expected at most %lld", who,
                     (long long)at[i], (long long)limit);
  return GP_OK;
}

/* ---- rows ---------------------------------------------------------------------------------- */

/* A row is one piece of memory, whatever its shape and dtype: in [N, ..] -> out [n, ..]. */
gp_status gp_data_rows(const gp_tensor *tensor, const gp_tensor *positions, gp_tensor **rows) {
  const gp_meta *meta = gp_tensor_meta(tensor);
  if (meta->shape.rank < 1 || !gp_meta_is_contiguous(meta))
    return gp_fail(GP_ESHAPE, "rows: the data is not a contiguous tensor of rows");
  GP_TRY(check_positions("rows", positions, meta->shape.dim[0] - 1));
  gp_shape shape = meta->shape;
  shape.dim[0] = gp_tensor_numel(positions);
  gp_tensor *made;
  GP_TRY(gp_tensor_new(meta->dtype, &shape, &made));
  const int64_t *at = gp_tensor_data(positions);
  const char *from = gp_tensor_data(tensor);
  char *to = gp_tensor_data(made);
  size_t bytes = meta->shape.dim[0] ? gp_meta_bytes(meta) / (size_t)meta->shape.dim[0] : 0;
  for (int64_t i = 0; i < shape.dim[0] && bytes; i++)
    memcpy(to + (size_t)i * bytes, from + (size_t)at[i] * bytes, bytes);
  *rows = made;
  return GP_OK;
}

/* ---- windows ------------------------------------------------------------------------------- */

/* Widen bytes to ids: this loop is all the work there is, and it vectorises. Ids of several bytes
 * may lie at odd addresses. */
static void copy_ids(int64_t *to, const unsigned char *from, int width, int64_t count) {
  if (width == 1)
    for (int64_t i = 0; i < count; i++) to[i] = from[i];
  if (width == 2)
    for (int64_t i = 0; i < count; i++) to[i] = from[2 * i] | from[2 * i + 1] << 8;
  if (width == 4)
    for (int64_t i = 0; i < count; i++) {
      const unsigned char *id = from + 4 * i;
      to[i] = (int64_t)((uint32_t)id[0] | (uint32_t)id[1] << 8 | (uint32_t)id[2] << 16 |
                        (uint32_t)id[3] << 24);
    }
}

/* Make both tensors, or neither. */
static gp_status make_pair(const gp_shape *shape, gp_tensor **x, gp_tensor **y) {
  gp_tensor *first;
  GP_TRY(gp_tensor_new(GP_I64, shape, &first));
  gp_status status = gp_tensor_new(GP_I64, shape, y);
  if (status)
    gp_tensor_free(first);
  else
    *x = first;
  return status;
}

/* y is x moved on by one id, the next-token target: ids [start, start + context] serve both. */
gp_status gp_data_windows(const gp_tensor *bytes, int width, const gp_tensor *starts,
                          int64_t context, gp_tensor **x, gp_tensor **y) {
  const gp_meta *meta = gp_tensor_meta(bytes);
  if (meta->dtype != GP_U8 || meta->shape.rank != 1 || !gp_meta_is_contiguous(meta))
    return gp_fail(GP_ESHAPE, "windows: the data is not a contiguous u8 tensor of one dimension");
  if (width != 1 && width != 2 && width != 4)
    return gp_fail(GP_ERANGE, "windows: ids of %d bytes, expected 1, 2 or 4", width);
  int64_t ids = meta->shape.dim[0] / width;
  if (context < 1 || context >= ids)
    return gp_fail(GP_ERANGE, "windows: context is %lld, expected 1 to %lld", (long long)context,
                   (long long)ids - 1);
  GP_TRY(check_positions("windows", starts, ids - context - 1));
  gp_shape shape = {.rank = 2, .dim = {gp_tensor_numel(starts), context}};
  GP_TRY(make_pair(&shape, x, y));
  const int64_t *at = gp_tensor_data(starts);
  const unsigned char *from = gp_tensor_data(bytes);
  int64_t *inputs = gp_tensor_data(*x), *targets = gp_tensor_data(*y);
  for (int64_t i = 0; i < shape.dim[0]; i++) {
    copy_ids(inputs + i * context, from + at[i] * width, width, context);
    copy_ids(targets + i * context, from + (at[i] + 1) * width, width, context);
  }
  return GP_OK;
}

/* ---- joining ------------------------------------------------------------------------------- */

/* Join parts; the sum of their sizes is checked, and known before the one allocation. */
gp_status gp_data_join(gp_tensor *const *parts, size_t count, gp_tensor **joined) {
  gp_shape shape = {.rank = 1};
  for (size_t i = 0; i < count; i++) {
    const gp_meta *meta = gp_tensor_meta(parts[i]);
    if (meta->dtype != GP_U8 || !gp_meta_is_contiguous(meta))
      return gp_fail(GP_EDTYPE, "join: part %zu is not a contiguous u8 tensor", i + 1);
    if (__builtin_add_overflow(shape.dim[0], gp_meta_numel(meta), &shape.dim[0]))
      return gp_fail(GP_ENOMEM, "join: more bytes than can be addressed");
  }
  gp_tensor *made;
  GP_TRY(gp_tensor_new(GP_U8, &shape, &made));
  char *to = gp_tensor_data(made);
  for (size_t i = 0; i < count; i++) {
    size_t bytes = (size_t)gp_tensor_numel(parts[i]);
    if (bytes) memcpy(to, gp_tensor_data(parts[i]), bytes);
    to += bytes;
  }
  *joined = made;
  return GP_OK;
}
