/* ops/axis.h - a contiguous value seen as [outer, size, inner] around one dim.
 *
 * Ops along a dim (max, concat, pad) need no strides then: element (o, i, j) lies at
 * (o * size + i) * inner + j. */
#ifndef GP_OPS_AXIS_H
#define GP_OPS_AXIS_H

#include "ops/op.h"

typedef struct gp_axis {
  int64_t outer, size, inner;
} gp_axis;

static inline gp_axis gp_axis_of(const gp_shape *shape, int64_t dim) {
  gp_axis axis = {1, shape->dim[dim], 1};
  for (int d = 0; d < shape->rank; d++) {
    if (d < dim) axis.outer *= shape->dim[d];
    if (d > dim) axis.inner *= shape->dim[d];
  }
  return axis;
}

/* Cut along the outer indices of the result around the dim: each is one piece of memory. */
static inline gp_cut gp_cut_outer(const gp_call *call, int64_t dim) {
  gp_axis axis = gp_axis_of(&call->out[0].meta->shape, dim);
  return (gp_cut){.units = axis.outer, .grain = GP_ROW_BLOCK};
}

#endif
