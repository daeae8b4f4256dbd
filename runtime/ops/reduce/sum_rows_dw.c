/* ops/reduce/sum_rows_dw.c - dy [.., N] -> [N]: the sum over all rows, the gradient of a bias.
 *
 * It is separate from `sum` because it adds to the gradient of a parameter as it goes: the value
 * that is there already is the start of the same ascending sum, so micro-batches added one after
 * the other give the bits of their rows added in one go. */
#include <string.h>

#include "base/numbers/half.h"
#include "base/status.h"
#include "base/tensor.h"
#include "ops/cut.h"
#include "ops/gradient.h"
#include "ops/infer.h"

/* A unit's sums stay in registers; ROWS is the number of streams that a processor follows. */
enum { COLUMNS = 64, ROWS = 8 };

static gp_status infer(gp_sig *sig) {
  const gp_shape *shape = &sig->in[0]->shape;
  if (shape->rank == 0) return gp_fail(GP_ESHAPE, "got a scalar, expected rows");
  gp_shape columns = {.rank = 1, .dim = {shape->dim[shape->rank - 1]}};
  return gp_infer_out(sig, gp_infer_wide(sig->in[0]->dtype), &columns);
}

/* out[j] += x[row, j] for the rows of a block and n <= COLUMNS columns; `first` is the
 * first of them. */
#define SUM_ROWS(name, T, E, WIDE)                                                                 \
  static void name(const gp_call *call, gp_span rows, int64_t first, int64_t n) {                  \
    T *out = (T *)call->out[0].data + first, sum[COLUMNS];                                         \
    const int64_t width = gp_meta_width(call->in[0].meta);                                         \
    const E *x = (const E *)call->in[0].data + rows.first * width + first;                         \
    memcpy(sum, out, (size_t)n * sizeof *out);                                                     \
    if (n == COLUMNS)                                                                              \
      for (int64_t r = rows.first; r < rows.last; r++, x += width)                                 \
        for (int64_t j = 0; j < COLUMNS; j++) sum[j] += WIDE(x[j]);                                \
    else                                                                                           \
      for (int64_t r = rows.first; r < rows.last; r++, x += width)                                 \
        for (int64_t j = 0; j < n; j++) sum[j] += WIDE(x[j]);                                      \
    memcpy(out, sum, (size_t)n * sizeof *out);                                                     \
  }

#define AS_IT_IS(x) (x)
SUM_ROWS(sum_rows_f32, float, float, AS_IT_IS)
SUM_ROWS(sum_rows_f64, double, double, AS_IT_IS)
SUM_ROWS(sum_rows_bf16, float, uint16_t, gp_bf16_widen)
SUM_ROWS(sum_rows_f16, float, uint16_t, gp_f16_widen)

/* If there are more columns than a unit's, take a few rows at a time, so that memory is read in
 * long runs; each sum has the same order either way. */
static gp_status run(const gp_call *call, gp_span span) {
  static void (*const sums[GP_DTYPE_COUNT])(const gp_call *, gp_span, int64_t,
                                            int64_t) = {[GP_F32] = sum_rows_f32,
                                                        [GP_F64] = sum_rows_f64,
                                                        [GP_BF16] = sum_rows_bf16,
                                                        [GP_F16] = sum_rows_f16};
  const int64_t columns = span.last - span.first, rows = gp_meta_rows(call->in[0].meta);
  const int64_t block = columns <= COLUMNS ? rows : ROWS;
  const size_t element = gp_dtype_size(call->out[0].meta->dtype);
  if (!call->accumulate)
    memset((char *)call->out[0].data + (size_t)span.first * element, 0, (size_t)columns * element);
  for (int64_t r = 0; r < rows; r += block) {
    const gp_span some = {.first = r, .last = rows - r < block ? rows : r + block};
    for (int64_t at = span.first; at < span.last; at += COLUMNS) {
      int64_t n = span.last - at < COLUMNS ? span.last - at : COLUMNS;
      sums[call->in[0].meta->dtype](call, some, at, n);
    }
  }
  return GP_OK;
}

/* Count one addition for each element read. */
static gp_cost cost(const gp_sig *sig) {
  gp_cost c = gp_cost_elements(sig, 0);
  c.flop = (double)gp_meta_numel(sig->in[0]);
  return c;
}

static gp_status vjp(gp_vjp *v) {
  gp_shape from = gp_vjp_meta(v, v->in[0])->shape;
  return gp_vjp_expand(v, v->dout[0], &from, &v->din[0]);
}

const gp_op_def gp_def_sum_rows_dw = {
    GP_OP_ROW(sum_rows_dw),
    .infer = infer,
    .vjp = vjp,
    .cost = cost,
    .cpu = {.cut = gp_cut_columns, .run = run, .halves = GP_ALL_HALVES},
};
