/* ops/index/lines.h - lines along a dim, taken in groups of neighbours.
 *
 * A contiguous value is [outer, size, inner] around the dim (ops/axis.h); a line is its `size`
 * elements at one (outer, inner), `inner` apart. Neighbours of one outer index are walked side by
 * side, so that memory is read in order. A line is never cut, and lines do not depend on each
 * other: how they are grouped changes no bit. */
#ifndef GP_OPS_INDEX_LINES_H
#define GP_OPS_INDEX_LINES_H

#include "ops/axis.h"

enum { GP_LINES = 64 }; /* walked side by side: what sums of them fit into the nearest cache */

typedef struct gp_lines {
  int64_t outer, column, n; /* lines (outer, column .. column + n - 1) */
} gp_lines;

/* The lines from number r on that are walked together, of those before `last`. */
static inline gp_lines gp_lines_at(int64_t inner, int64_t r, int64_t last) {
  gp_lines lines = {r / inner, r % inner, inner - r % inner};
  if (lines.n > last - r) lines.n = last - r;
  if (lines.n > GP_LINES) lines.n = GP_LINES;
  return lines;
}

/* Where the first element of the lines lies. */
static inline int64_t gp_lines_offset(const gp_axis *axis, const gp_lines *lines) {
  return lines->outer * axis->size * axis->inner + lines->column;
}

/* Units are the lines of a shape; about 16384 elements to a piece. */
static inline gp_cut gp_cut_lines(const gp_meta *meta, int64_t dim) {
  gp_axis axis = gp_axis_of(&meta->shape, dim);
  int64_t grain = 16384 / (axis.size > 0 ? axis.size : 1);
  return (gp_cut){.units = axis.outer * axis.inner, .grain = grain > GP_LINES ? grain : GP_LINES};
}

#endif
