/* ops/infer.c - shared checks of shape inference; see infer.h.
 *
 * Each mistake has one wording, so scripts see the same sentence whatever the op, and it is
 * improved in one place. Nothing here knows a particular op. */
#include "ops/infer.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/status.h"
#include "base/tensor.h"

gp_dtype gp_infer_wide(gp_dtype dtype) {
  return dtype == GP_BF16 || dtype == GP_F16 ? GP_F32 : dtype;
}

/* ---- shapes --------------------------------------------------------------------------------- */

/* Dims are aligned at the last one; a missing dim counts as 1. */
bool gp_shape_broadcast(gp_shape *shape, const gp_shape *other) {
  gp_shape result = shape->rank >= other->rank ? *shape : *other;
  for (int back = 1; back <= result.rank; back++) {
    int64_t a = back <= shape->rank ? shape->dim[shape->rank - back] : 1;
    int64_t b = back <= other->rank ? other->dim[other->rank - back] : 1;
    if (a != b && a != 1 && b != 1) return false;
    result.dim[result.rank - back] = a == 1 ? b : a;
  }
  *shape = result;
  return true;
}

/* The text names what the inputs so far broadcast to, and the one that does not fit. */
gp_status gp_infer_broadcast(const gp_sig *sig, gp_shape *shape) {
  gp_shape result = sig->in[0]->shape;
  for (int i = 1; i < sig->n_in; i++) {
    if (gp_shape_broadcast(&result, &sig->in[i]->shape)) continue;
    char a[GP_SHAPE_TEXT], b[GP_SHAPE_TEXT];
    return gp_fail(GP_ESHAPE, "shapes %s and %s do not broadcast",
                   gp_shape_print(&result, a, sizeof a),
                   gp_shape_print(&sig->in[i]->shape, b, sizeof b));
  }
  *shape = result;
  return GP_OK;
}

/* Neither shape is the right one here, so none is called "expected". */
gp_status gp_infer_same_shape(const gp_sig *sig, int a, int b) {
  if (gp_shape_equal(&sig->in[a]->shape, &sig->in[b]->shape)) return GP_OK;
  char first[GP_SHAPE_TEXT], second[GP_SHAPE_TEXT];
  return gp_fail(GP_ESHAPE, "shapes %s and %s differ",
                 gp_shape_print(&sig->in[a]->shape, first, sizeof first),
                 gp_shape_print(&sig->in[b]->shape, second, sizeof second));
}

gp_status gp_infer_dim(const gp_shape *shape, int64_t dim) {
  if (dim >= 0 && dim < shape->rank) return GP_OK;
  if (shape->rank == 0)
    return gp_fail(GP_ERANGE, "a scalar has no dimension %lld", (long long)dim + 1);
  return gp_fail(GP_ERANGE, "dimension %lld is outside 1 .. %d", (long long)dim + 1, shape->rank);
}

gp_status gp_infer_reduced(const gp_shape *shape, int64_t dims, bool keep, gp_shape *reduced) {
  int64_t all = (INT64_C(1) << shape->rank) - 1;
  int64_t mask = dims == 0 ? all : dims;
  for (int d = shape->rank; d < 63; d++)
    if (mask >> d & 1) return gp_infer_dim(shape, d);
  gp_shape result = {0};
  for (int d = 0; d < shape->rank; d++) {
    bool gone = mask >> d & 1;
    if (!gone || keep) result.dim[result.rank++] = gone ? 1 : shape->dim[d];
  }
  *reduced = result;
  return GP_OK;
}

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

gp_status gp_infer_rank(const gp_shape *shape) {
  if (shape->rank >= 0 && shape->rank <= GP_MAX_RANK) return GP_OK;
  return gp_fail(GP_ESHAPE, "%d dimensions, expected 0 to %d", shape->rank, GP_MAX_RANK);
}

/* ---- operands with roles --------------------------------------------------------------------- */

/* Print like gp_shape_print, with "?" for a dimension of any size. */
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

/* GP_ANY_DIM fits every size, never another rank. */
static bool fits(const gp_shape *shape, const gp_shape *expected) {
  if (shape->rank != expected->rank) return false;
  for (int d = 0; d < shape->rank; d++)
    if (expected->dim[d] != GP_ANY_DIM && expected->dim[d] != shape->dim[d]) return false;
  return true;
}

gp_status gp_operand_shape(const gp_sig *sig, gp_op op, int i, const gp_shape *expected,
                           int because) {
  if (fits(&sig->in[i]->shape, expected)) return GP_OK;
  char is[GP_SHAPE_TEXT], want[GP_SHAPE_TEXT], other[GP_SHAPE_TEXT];
  gp_shape_print(&sig->in[i]->shape, is, sizeof is);
  print_pattern(expected, want, sizeof want);
  if (because < 0) return gp_fail(GP_ESHAPE, "%s is %s, expected %s", gp_op_role(op, i), is, want);
  gp_shape_print(&sig->in[because]->shape, other, sizeof other);
  return gp_fail(GP_ESHAPE, "%s is %s, expected %s (%s is %s)", gp_op_role(op, i), is, want,
                 gp_op_role(op, because), other);
}

/* One wording serves for one dimension and for more. */
gp_status gp_operand_rank(const gp_sig *sig, gp_op op, int i, int rank) {
  if (sig->in[i]->shape.rank >= rank) return GP_OK;
  char is[GP_SHAPE_TEXT];
  return gp_fail(GP_ESHAPE, "%s is %s, expected at least %d dimension%s", gp_op_role(op, i),
                 gp_shape_print(&sig->in[i]->shape, is, sizeof is), rank, rank == 1 ? "" : "s");
}

/* ---- outputs and costs ---------------------------------------------------------------------- */

gp_status gp_infer_wide_rows(int64_t wide, int64_t n) {
  if (wide == 0 || wide >= n) return GP_OK;
  return gp_fail(GP_ERANGE, "wide is %lld, expected 0, or %lld or more", (long long)wide,
                 (long long)n);
}

gp_status gp_infer_out(gp_sig *sig, gp_dtype dtype, const gp_shape *shape) {
  GP_TRY(gp_meta_make(dtype, shape, &sig->out[sig->n_out]));
  sig->n_out++;
  return GP_OK;
}

gp_status gp_infer_channels_last(gp_sig *sig, gp_dtype dtype, const gp_shape *shape) {
  GP_TRY(gp_infer_out(sig, dtype, shape));
  gp_meta_set_channels_last(&sig->out[sig->n_out - 1]);
  return GP_OK;
}

gp_status gp_infer_packed(gp_sig *sig, size_t bytes) {
  return gp_infer_out(sig, GP_U8, &(gp_shape){1, {(int64_t)bytes}});
}

/* Append an output of the shape and dtype of input i. */
gp_status gp_infer_like(gp_sig *sig, int i) {
  return gp_infer_out(sig, sig->in[i]->dtype, &sig->in[i]->shape);
}

/* A view copies nothing; whether its strides stay inside the storage is checked when a tensor
 * is made of them. */
gp_status gp_infer_view(gp_sig *sig, const gp_shape *shape, const int64_t *stride) {
  GP_TRY(gp_infer_out(sig, sig->in[0]->dtype, shape));
  gp_meta *out = &sig->out[sig->n_out - 1];
  for (int d = 0; d < shape->rank; d++) out->stride[d] = stride[d];
  out->offset = sig->in[0]->offset;
  return GP_OK;
}

/* A row that is added to every row counts once: it stays in the cache. */
gp_cost gp_cost_of(const gp_sig *sig, double flop) {
  gp_cost cost = {.flop = flop};
  for (int i = 0; i < sig->n_in; i++) cost.bytes += (double)gp_meta_bytes(sig->in[i]);
  for (int k = 0; k < sig->n_out; k++) cost.bytes += (double)gp_meta_bytes(&sig->out[k]);
  return cost;
}

gp_cost gp_cost_elements(const gp_sig *sig, double flop) {
  return gp_cost_of(sig, flop * (double)gp_meta_numel(&sig->out[0]));
}

gp_cost gp_cost_copy(const gp_sig *sig) { return gp_cost_of(sig, 0); }

gp_cost gp_cost_none(const gp_sig *sig) {
  (void)sig;
  return (gp_cost){0};
}
