/* ops/operands.c - see operands.h: the wording of every complaint about an operand is here once. */
#include "ops/operands.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TEXT = 160, COLUMN_GRAIN = 64 };

/* ---- checks -------------------------------------------------------------------------------- */

gp_status gp_operands_float(const gp_sig *sig, const char *const *roles, unsigned mask) {
  int first = -1;
  for (int i = 0; i < sig->n_in; i++) {
    if (!(mask >> i & 1)) continue;
    gp_dtype dtype = sig->in[i]->dtype;
    if (dtype != GP_F32 && dtype != GP_F64)
      return gp_fail(GP_EDTYPE, "%s is %s, expected f32 or f64", roles[i], gp_dtype_name(dtype));
    if (first < 0) first = i;
    if (dtype != sig->in[first]->dtype)
      return gp_fail(GP_EDTYPE, "%s is %s, expected %s (%s is %s)", roles[i], gp_dtype_name(dtype),
                     gp_dtype_name(sig->in[first]->dtype), roles[first],
                     gp_dtype_name(sig->in[first]->dtype));
  }
  return GP_OK;
}

gp_status gp_operand_ids(const gp_sig *sig, const char *const *roles, int i) {
  gp_dtype dtype = sig->in[i]->dtype;
  if (dtype == GP_I64 || dtype == GP_I32 || dtype == GP_U8) return GP_OK;
  return gp_fail(GP_EDTYPE, "%s is %s, expected i64, i32 or u8", roles[i], gp_dtype_name(dtype));
}

/* Like gp_shape_print, with "?" for a dimension of any size. */
static char *print_pattern(const gp_shape *shape, char *text, size_t size) {
  size_t used = 0;
  (void)snprintf(text, size, "%s", shape->rank == 0 ? "scalar" : "");
  for (int d = 0; d < shape->rank && used < size; d++) {
    char dim[24] = "?";
    if (shape->dim[d] != GP_ANY_DIM) (void)snprintf(dim, sizeof dim, "%" PRId64, shape->dim[d]);
    int n = snprintf(text + used, size - used, "%s%s", d > 0 ? "x" : "", dim);
    used += n > 0 ? (size_t)n : 0;
  }
  return text;
}

static bool fits(const gp_shape *shape, const gp_shape *expected) {
  if (shape->rank != expected->rank) return false;
  for (int d = 0; d < shape->rank; d++)
    if (expected->dim[d] != GP_ANY_DIM && expected->dim[d] != shape->dim[d]) return false;
  return true;
}

gp_status gp_operand_shape(const gp_sig *sig, const char *const *roles, int i,
                           const gp_shape *expected, int because) {
  if (fits(&sig->in[i]->shape, expected)) return GP_OK;
  char is[TEXT], want[TEXT], other[TEXT];
  gp_shape_print(&sig->in[i]->shape, is, sizeof is);
  print_pattern(expected, want, sizeof want);
  if (because < 0) return gp_fail(GP_ESHAPE, "%s is %s, expected %s", roles[i], is, want);
  gp_shape_print(&sig->in[because]->shape, other, sizeof other);
  return gp_fail(GP_ESHAPE, "%s is %s, expected %s (%s is %s)", roles[i], is, want, roles[because],
                 other);
}

gp_status gp_operand_rank(const gp_sig *sig, const char *const *roles, int i, int rank) {
  if (sig->in[i]->shape.rank >= rank) return GP_OK;
  char is[TEXT];
  return gp_fail(GP_ESHAPE, "%s is %s, expected at least %d dimension%s", roles[i],
                 gp_shape_print(&sig->in[i]->shape, is, sizeof is), rank, rank == 1 ? "" : "s");
}

/* ---- shapes -------------------------------------------------------------------------------- */

gp_shape gp_shape_drop_last(const gp_shape *shape) {
  gp_shape result = *shape;
  if (result.rank > 0) result.rank--;
  return result;
}

gp_shape gp_shape_with_last(const gp_shape *shape, int64_t last) {
  gp_shape result = *shape;
  if (result.rank > 0) result.dim[result.rank - 1] = last;
  return result;
}

gp_status gp_output(gp_sig *sig, int k, gp_dtype dtype, const gp_shape *shape) {
  GP_TRY(gp_meta_make(dtype, shape, &sig->out[k]));
  if (sig->n_out <= k) sig->n_out = k + 1;
  return GP_OK;
}

/* ---- ids ----------------------------------------------------------------------------------- */

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

int64_t gp_id_at(const gp_arg *ids, int64_t offset) {
  switch (ids->meta->dtype) {
  case GP_I64: return ((const int64_t *)ids->data)[offset];
  case GP_I32: return ((const int32_t *)ids->data)[offset];
  default: return ((const uint8_t *)ids->data)[offset];
  }
}

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

/* ---- cuts, costs, gradients ---------------------------------------------------------------- */

gp_cut gp_cut_rows(const gp_meta *meta) { return (gp_cut){gp_meta_rows(meta), GP_ROW_BLOCK}; }

gp_cut gp_cut_columns(int64_t columns) { return (gp_cut){columns, COLUMN_GRAIN}; }

gp_cost gp_cost_of(const gp_sig *sig, double flop) {
  gp_cost cost = {flop, 0};
  for (int i = 0; i < sig->n_in; i++) cost.bytes += (double)gp_meta_bytes(sig->in[i]);
  for (int k = 0; k < sig->n_out; k++) cost.bytes += (double)gp_meta_bytes(&sig->out[k]);
  return cost;
}

gp_status gp_vjp_first_output_only(const gp_vjp *v) {
  for (int k = 1; k < v->n_out; k++)
    if (v->dout[k] != GP_NONE)
      return gp_fail(GP_EUNSUPPORTED, "output %d has no gradient, only the first output has one",
                     k + 1);
  return GP_OK;
}
