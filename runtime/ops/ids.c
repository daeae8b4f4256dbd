/* ops/ids.c - ids in integer tensors of any layout; see ids.h. */
#include "ops/ids.h"

#include <inttypes.h>

#include "base/status.h"
#include "base/tensor.h"

/* Take the index apart from the last dim on; a broadcast dim has stride 0. */
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

/* bool cannot come here: infer has refused it (ops/contract.c). */
int64_t gp_id_at(const gp_arg *ids, int64_t offset) {
  switch (ids->meta->dtype) {
  case GP_I64: return ((const int64_t *)ids->data)[offset];
  case GP_I32: return ((const int32_t *)ids->data)[offset];
  default: return ((const uint8_t *)ids->data)[offset];
  }
}

/* Name a bad id. An op sees one micro-batch, and the step block tells where that lies in the
 * mini-batch. Rows count from 1, as everywhere in Lua; ids do not, so the text says so. */
static gp_status fail_at(const gp_call *call, const gp_ids_role *role, int64_t index, int64_t id) {
  const gp_meta *meta = call->in[role->input].meta;
  const char *note = role->first == 0 ? " (ids count from 0)" : "";
  int64_t rows = meta->shape.rank > 0 ? meta->shape.dim[0] : 1;
  int64_t width = rows > 0 ? gp_meta_numel(meta) / rows : 1; /* ids in a row */
  int64_t row = call->step->first_row + index / width + 1, last = role->first + role->count - 1;
  if (meta->shape.rank < 2)
    return gp_fail(GP_ERANGE,
                   "%s %" PRId64 " at row %" PRId64 " is outside %" PRId64 "..%" PRId64 "%s",
                   role->what, id, row, role->first, last, note);
  return gp_fail(GP_ERANGE,
                 "%s %" PRId64 " at row %" PRId64 ", position %" PRId64 " is outside %" PRId64
                 "..%" PRId64 "%s",
                 role->what, id, row, index % width + 1, role->first, last, note);
}

/* This is for a kernel that has the ids at hand; gp_id_fault is for one that only
 * reported what it read. */
gp_status gp_id_fail(const gp_call *call, const gp_ids_role *role, int64_t index) {
  const gp_arg *ids = &call->in[role->input];
  return fail_at(call, role, index, gp_id_at(ids, gp_meta_offset(ids->meta, index)));
}

gp_status gp_id_fault(gp_op op, const gp_call *call, int64_t index, int64_t id) {
  const gp_op_def *def = gp_op_get(op);
  if (!def->ids)
    return gp_fail(GP_EDEVICE, "%s: a kernel reports position %" PRId64, def->name, index);
  gp_ids_role role = def->ids(call);
  return fail_at(call, &role, index, id);
}
