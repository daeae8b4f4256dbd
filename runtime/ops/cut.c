/* ops/cut.c - units of work; see cut.h. */
#include "ops/cut.h"

#include "base/tensor.h"
#include "ops/half/half.h"

enum {
  VECTOR_ROW = 256, /* elements: a block of GP_ROW_BLOCK is 64 KiB of f32, well in L2 */
  COLUMNS = 64      /* four cache lines of f32 a row: threads share none of them */
};

static bool writes_nothing(const gp_call *call) {
  for (int k = 0; k < call->n_out; k++)
    if (gp_meta_numel(call->out[k].meta) > 0) return false;
  return true;
}

gp_cut gp_op_cut(const gp_op_def *def, const gp_call *call) {
  if (gp_half_has_phases(def, call)) return gp_cut_once(call);
  gp_cut cut = def->cpu.cut(call);
  if (cut.units > 1 && writes_nothing(call)) cut.units = 1;
  if (cut.grain < 1) cut.grain = 1;
  return cut;
}

/* ---- rows of elements ----------------------------------------------------------------------- */

int64_t gp_rows_count(const gp_meta *meta) {
  int64_t rows = meta->shape.rank >= 2 ? gp_meta_rows(meta) : gp_meta_numel(meta) / VECTOR_ROW;
  return rows > 0 ? rows : 1;
}

/* floor(r * n / units) with n = q * units + rest: r * n itself may not fit. */
static int64_t row_start(int64_t r, int64_t n, int64_t units) {
  return r * (n / units) + r * (n % units) / units;
}

void gp_rows_elements(int64_t n, int64_t units, gp_span span, int64_t *first, int64_t *last) {
  *first = row_start(span.first, n, units);
  *last = row_start(span.last, n, units);
}

/* ---- cuts ----------------------------------------------------------------------------------- */

gp_cut gp_cut_rows(const gp_call *call) {
  return (gp_cut){.units = gp_rows_count(call->out[0].meta), .grain = GP_ROW_BLOCK};
}

/* Use gp_meta_rows, not gp_rows_count: a vector is one row here, however long. */
gp_cut gp_cut_whole_rows(const gp_call *call) {
  return (gp_cut){.units = gp_meta_rows(call->in[0].meta), .grain = GP_ROW_BLOCK};
}

gp_cut gp_cut_columns(const gp_call *call) {
  return (gp_cut){.units = gp_meta_width(call->in[0].meta), .grain = COLUMNS};
}

gp_cut gp_cut_once(const gp_call *call) {
  (void)call;
  return (gp_cut){.units = 1, .grain = 1};
}
