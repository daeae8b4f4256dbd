/* ops/index/gather.c - elements of a line by their positions, and sums of elements that share a
 * position.
 *
 * Each is the gradient of the other. One unit sums a line, in the order of its positions, so a
 * position that comes twice gives the same bits with any number of threads. */
#include "base/status.h"
#include "base/tensor.h"
#include "ops/gradient.h"
#include "ops/ids.h"
#include "ops/index/lines.h"
#include "ops/infer.h"

/* Check that positions have the sizes of `shape`, except along the dim, where they may have any. */
static gp_status check_positions(const gp_sig *sig, gp_op op, gp_shape shape, int64_t dim) {
  shape.dim[dim] = GP_ANY_DIM;
  return gp_operand_shape(sig, op, 1, &shape, 0);
}

/* Refuse positions of an empty dim: they name nothing. */
static gp_status check_size(const gp_sig *sig, int64_t size, int64_t dim) {
  if (size > 0 || gp_meta_numel(sig->in[1]) == 0) return GP_OK;
  return gp_fail(GP_ESHAPE, "dimension %lld has size %lld, expected at least 1 for positions",
                 (long long)dim + 1, (long long)size);
}

/* ---- gather --------------------------------------------------------------------------------- */

static gp_status infer(gp_sig *sig) {
  const int64_t dim = sig->attr->gather.dim;
  const gp_shape *shape = &sig->in[0]->shape;
  GP_TRY(gp_infer_dim(shape, dim));
  GP_TRY(check_positions(sig, GP_OP_gather, *shape, dim));
  GP_TRY(check_size(sig, shape->dim[dim], dim));
  return gp_infer_out(sig, sig->in[0]->dtype, &sig->in[1]->shape);
}

static gp_status vjp(gp_vjp *v) {
  const int64_t dim = v->attr->gather.dim;
  if (!v->need[0] || v->dout[0] == GP_NONE) return GP_OK;
  gp_attrs attrs = {.scatter_sum = {dim, gp_vjp_meta(v, v->in[0])->shape.dim[dim]}};
  return gp_build(v->builder, GP_OP_scatter_sum, &attrs, (gp_ref[]){v->dout[0], v->in[1]}, 2,
                  &v->din[0]);
}

static gp_cut cut(const gp_call *call) {
  return gp_cut_lines(call->out[0].meta, call->attr->gather.dim);
}

static gp_ids_role role_of(const gp_call *call) {
  return (gp_ids_role){1, "position", call->in[0].meta->shape.dim[call->attr->gather.dim], 1};
}

/* Elements are only moved, so the loops know nothing but their size. */
#define GATHER(name, T)                                                                            \
  static gp_status name(const gp_call *call, const gp_axis *to, gp_lines lines) {                  \
    const gp_axis from = gp_axis_of(&call->in[0].meta->shape, call->attr->gather.dim);             \
    const T *x = (const T *)call->in[0].data + gp_lines_offset(&from, &lines);                     \
    const int64_t first = gp_lines_offset(to, &lines), *at = call->in[1].data;                     \
    for (int64_t i = 0; i < to->size; i++)                                                         \
      for (int64_t j = 0, k = first + i * to->inner; j < lines.n; j++, k++) {                      \
        const gp_ids_role role = role_of(call);                                                    \
        if (at[k] < 1 || at[k] > from.size) return gp_id_fail(call, &role, k);                     \
        ((T *)call->out[0].data)[k] = x[(at[k] - 1) * from.inner + j];                             \
      }                                                                                            \
    return GP_OK;                                                                                  \
  }

GATHER(gather_1, uint8_t)
GATHER(gather_2, uint16_t)
GATHER(gather_4, uint32_t)
GATHER(gather_8, uint64_t)

static gp_status run(const gp_call *call, gp_span span) {
  const size_t item = gp_dtype_size(call->out[0].meta->dtype);
  return gp_lines_run(call, gp_axis_of(&call->out[0].meta->shape, call->attr->gather.dim), span,
                      item == 1   ? gather_1
                      : item == 2 ? gather_2
                      : item == 4 ? gather_4
                                  : gather_8);
}

const gp_op_def gp_def_gather = {GP_OP_ROW(gather), .infer = infer,
                                 .vjp = vjp,        .cost = gp_cost_copy,
                                 .ids = role_of,    .cpu = {.cut = cut, .run = run}};

/* ---- scatter_sum ---------------------------------------------------------------------------- */

static gp_status infer_sum(gp_sig *sig) {
  const int64_t dim = sig->attr->scatter_sum.dim, size = sig->attr->scatter_sum.size;
  gp_shape shape = sig->in[0]->shape;
  GP_TRY(gp_infer_dim(&shape, dim));
  GP_TRY(gp_operand_shape(sig, GP_OP_scatter_sum, 1, &shape, 0));
  if (size < 0) return gp_fail(GP_ERANGE, "size is %lld, expected at least 0", (long long)size);
  GP_TRY(check_size(sig, size, dim));
  shape.dim[dim] = size;
  return gp_infer_out(sig, sig->in[0]->dtype, &shape);
}

static gp_status vjp_sum(gp_vjp *v) {
  if (!v->need[0] || v->dout[0] == GP_NONE) return GP_OK;
  gp_attrs attrs = {.gather = {v->attr->scatter_sum.dim}};
  return gp_build(v->builder, GP_OP_gather, &attrs, (gp_ref[]){v->dout[0], v->in[1]}, 2,
                  &v->din[0]);
}

static gp_cost cost_sum(const gp_sig *sig) {
  return gp_cost_of(sig, (double)gp_meta_numel(sig->in[0]));
}

static gp_cut cut_sum(const gp_call *call) {
  return gp_cut_lines(call->in[0].meta, call->attr->scatter_sum.dim);
}

static gp_ids_role role_of_sum(const gp_call *call) {
  return (gp_ids_role){1, "position", call->attr->scatter_sum.size, 1};
}

/* Integers add modulo 2^N, as unsigned ones. */
#define SCATTER(name, T)                                                                           \
  static gp_status name(const gp_call *call, const gp_axis *from, gp_lines lines) {                \
    const gp_axis to = gp_axis_of(&call->out[0].meta->shape, call->attr->scatter_sum.dim);         \
    const T *source = call->in[0].data;                                                            \
    const int64_t first = gp_lines_offset(from, &lines), *at = call->in[1].data;                   \
    T *y = (T *)call->out[0].data + gp_lines_offset(&to, &lines);                                  \
    for (int64_t i = 0; i < to.size; i++)                                                          \
      for (int64_t j = 0; j < lines.n; j++) y[i * to.inner + j] = 0;                               \
    for (int64_t i = 0; i < from->size; i++)                                                       \
      for (int64_t j = 0, k = first + i * from->inner; j < lines.n; j++, k++) {                    \
        const gp_ids_role role = role_of_sum(call);                                                \
        if (at[k] < 1 || at[k] > to.size) return gp_id_fail(call, &role, k);                       \
        y[(at[k] - 1) * to.inner + j] += source[k];                                                \
      }                                                                                            \
    return GP_OK;                                                                                  \
  }

SCATTER(scatter_f32, float)
SCATTER(scatter_f64, double)
SCATTER(scatter_i64, uint64_t)
SCATTER(scatter_i32, uint32_t)

static gp_status run_sum(const gp_call *call, gp_span span) {
  static const gp_lines_kernels by = {scatter_f32, scatter_f64, scatter_i64, scatter_i32};
  return gp_lines_run_by(call, gp_axis_of(&call->in[0].meta->shape, call->attr->scatter_sum.dim),
                         span, &by);
}

const gp_op_def gp_def_scatter_sum = {
    GP_OP_ROW(scatter_sum), .infer = infer_sum, .vjp = vjp_sum,
    .cost = cost_sum,       .ids = role_of_sum, .cpu = {.cut = cut_sum, .run = run_sum}};
