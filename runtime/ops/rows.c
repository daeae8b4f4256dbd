/* ops/rows.c - the cut of row-wise ops; see rows.h. */
#include "ops/rows.h"

#include "base/tensor.h"

enum { VECTOR_ROW = 256 }; /* elements: a block of GP_ROW_BLOCK is 64 KiB of f32, well in L2 */

int64_t gp_rows_count(const gp_meta *meta) {
  int64_t rows = meta->shape.rank >= 2 ? gp_meta_rows(meta) : gp_meta_numel(meta) / VECTOR_ROW;
  return rows > 0 ? rows : 1;
}

gp_cut gp_rows_cut(const gp_call *call) {
  return (gp_cut){.units = gp_rows_count(call->out[0].meta), .grain = GP_ROW_BLOCK};
}

/* floor(r * n / units) with n = q * units + rest. */
static int64_t row_start(int64_t r, int64_t n, int64_t units) {
  return r * (n / units) + r * (n % units) / units;
}

void gp_rows_elements(int64_t n, int64_t units, gp_span span, int64_t *first, int64_t *last) {
  *first = row_start(span.first, n, units);
  *last = row_start(span.last, n, units);
}
