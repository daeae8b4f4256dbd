/* ops/ids.c - ids in integer tensors of any layout; see ids.h. */
#include "ops/ids.h"

#include <inttypes.h>

#include "base/status.h"
#include "base/tensor.h"

/* The index is taken apart from the last dim on; a broadcast dim has stride 0. */
int64_t gp_meta_offset(const gp_meta *meta, int64_t index) {
  int64_t offset = 0;
  for (int d = meta->shape.rank - 1; d >= 0; d--) {
    int64_t size = meta->shape.dim[d];
    if (size <= 1) continue;
    offset += index % size * meta->stride[d];
    index /= size;
  }
  return offset;
}

/* bool is no id: infer has refused it (gp_operand_ids). */
int64_t gp_id_at(const gp_arg *ids, int64_t offset) {
  switch (ids->meta->dtype) {
  case GP_I64: return ((const int64_t *)ids->data)[offset];
  case GP_I32: return ((const int32_t *)ids->data)[offset];
  default: return ((const uint8_t *)ids->data)[offset];
  }
}

/* An op sees one micro-batch: the step block tells where that lies in the mini-batch. */
gp_status gp_id_fail(const gp_call *call, const gp_arg *ids, int64_t index, const char *what,
                     int64_t count) {
  const gp_shape *shape = &ids->meta->shape;
  int64_t id = gp_id_at(ids, gp_meta_offset(ids->meta, index)),
          rows = shape->rank > 0 ? shape->dim[0] : 1;
  int64_t width = rows > 0 ? gp_meta_numel(ids->meta) / rows : 1; /* ids in a row */
  int64_t row = call->step->first_row + index / width + 1;
  if (shape->rank < 2)
    return gp_fail(GP_ERANGE, "%s %" PRId64 " at row %" PRId64 " is outside 0..%" PRId64, what, id,
                   row, count - 1);
  return gp_fail(GP_ERANGE,
                 "%s %" PRId64 " at row %" PRId64 ", position %" PRId64 " is outside 0..%" PRId64,
                 what, id, row, index % width + 1, count - 1);
}
