/* ops/index/cumsum.c - sums of the elements of a line up to each one, or from each one on.
 *
 * Each direction is the gradient of the other. A line is walked once, from one end; f32 is added in
 * f64, integers modulo 2^N. */
#include "base/status.h"
#include "ops/index/lines.h"
#include "ops/infer.h"

static gp_status infer(gp_sig *sig) {
  GP_TRY(gp_infer_dim(&sig->in[0]->shape, sig->attr->cumsum.dim));
  return gp_infer_like(sig, 0);
}

static gp_status vjp(gp_vjp *v) {
  if (v->dout[0] == GP_NONE) return GP_OK;
  gp_attrs attrs = {.cumsum = {v->attr->cumsum.dim, !v->attr->cumsum.reverse}};
  return gp_build(v->builder, GP_OP_cumsum, &attrs, v->dout, 1, &v->din[0]);
}

static gp_cost cost(const gp_sig *sig) { return gp_cost_elements(sig, 1); }

static gp_cut cut(const gp_call *call) {
  return gp_cut_lines(call->in[0].meta, call->attr->cumsum.dim);
}

/* A: the type of the sum. */
#define CUMSUM(name, T, A)                                                                         \
  static gp_status name(const gp_call *call, const gp_axis *axis, gp_lines lines) {                \
    const int64_t first = gp_lines_offset(axis, &lines);                                           \
    const T *x = (const T *)call->in[0].data + first;                                              \
    T *y = (T *)call->out[0].data + first;                                                         \
    A sum[GP_LINES] = {0};                                                                         \
    for (int64_t i = 0; i < axis->size; i++) {                                                     \
      const int64_t at = (call->attr->cumsum.reverse ? axis->size - 1 - i : i) * axis->inner;      \
      for (int64_t j = 0; j < lines.n; j++) {                                                      \
        sum[j] += (A)x[at + j];                                                                    \
        y[at + j] = (T)sum[j];                                                                     \
      }                                                                                            \
    }                                                                                              \
    return GP_OK;                                                                                  \
  }

CUMSUM(cumsum_f32, float, double)
CUMSUM(cumsum_f64, double, double)
CUMSUM(cumsum_i64, uint64_t, uint64_t)
CUMSUM(cumsum_i32, uint32_t, uint32_t)

static gp_status run(const gp_call *call, gp_span span) {
  static const gp_lines_kernels by = {cumsum_f32, cumsum_f64, cumsum_i64, cumsum_i32};
  return gp_lines_run_by(call, gp_axis_of(&call->in[0].meta->shape, call->attr->cumsum.dim), span,
                         &by);
}

const gp_op_def gp_def_cumsum = {GP_OP_ROW(cumsum), .infer = infer, .vjp = vjp, .cost = cost,
                                 .cpu = {.cut = cut, .run = run}};
