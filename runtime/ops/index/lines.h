/* ops/index/lines.h - lines along a dim, taken in groups of neighbours.
 *
 * A contiguous value is [outer, size, inner] around the dim (ops/axis.h); a line is its `size`
 * elements at one (outer, inner), `inner` apart. Neighbours of one outer index are walked side by
 * side, so that memory is read in order. A line is never cut, and lines do not depend on each
 * other: how they are grouped changes no bit. */
#ifndef GP_OPS_INDEX_LINES_H
#define GP_OPS_INDEX_LINES_H

#include "ops/axis.h"

enum { GP_LINES = 64 }; /* walked side by side: their sums fit into the first-level cache */

typedef struct gp_lines {
  int64_t outer, column, n; /* lines (outer, column .. column + n - 1) */
} gp_lines;

/* Return the lines from number r on, before `last`, that are walked together. */
static inline gp_lines gp_lines_at(int64_t inner, int64_t r, int64_t last) {
  gp_lines lines = {r / inner, r % inner, inner - r % inner};
  if (lines.n > last - r) lines.n = last - r;
  if (lines.n > GP_LINES) lines.n = GP_LINES;
  return lines;
}

/* Return where the first element of the lines lies. */
static inline int64_t gp_lines_offset(const gp_axis *axis, const gp_lines *lines) {
  return lines->outer * axis->size * axis->inner + lines->column;
}

/* Units are the lines of a shape; about 16384 elements to a piece. */
static inline gp_cut gp_cut_lines(const gp_meta *meta, int64_t dim) {
  gp_axis axis = gp_axis_of(&meta->shape, dim);
  int64_t grain = 16384 / (axis.size > 0 ? axis.size : 1);
  return (gp_cut){.units = axis.outer * axis.inner, .grain = grain > GP_LINES ? grain : GP_LINES};
}

/* A kernel that walks some neighbouring lines of a call. */
typedef gp_status gp_lines_kernel(const gp_call *call, const gp_axis *axis, gp_lines lines);

/* Run the kernel over all lines of a span of `axis`. */
static inline gp_status gp_lines_run(const gp_call *call, gp_axis axis, gp_span span,
                                     gp_lines_kernel *kernel) {
  for (int64_t r = span.first; r < span.last;) {
    const gp_lines lines = gp_lines_at(axis.inner, r, span.last);
    GP_TRY(kernel(call, &axis, lines));
    r += lines.n;
  }
  return GP_OK;
}

/* One kernel for each dtype of in[0]; NULL if the op has none for it. */
typedef struct gp_lines_kernels {
  gp_lines_kernel *f32, *f64, *i64, *i32;
} gp_lines_kernels;

static inline gp_status gp_lines_run_by(const gp_call *call, gp_axis axis, gp_span span,
                                        const gp_lines_kernels *by) {
  const gp_dtype dtype = call->in[0].meta->dtype;
  return gp_lines_run(call, axis, span,
                      dtype == GP_F32   ? by->f32
                      : dtype == GP_F64 ? by->f64
                      : dtype == GP_I64 ? by->i64
                                        : by->i32);
}

#endif
