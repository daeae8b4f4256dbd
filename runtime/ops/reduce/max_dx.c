/* ops/reduce/max_dx.c - dy, positions -> dy at each position along a dim, 0 elsewhere.
 *
 * Every element of the result is written once, in order: nothing is cleared before, and no
 * write is scattered. */
#include "base/status.h"
#include "ops/axis.h"
#include "ops/infer.h"

/* dy has size 1 along the dim (keep) or lacks it; the result has its `size` there. */
static gp_status infer(gp_sig *sig) {
  const int64_t dim = sig->attr->max_dx.dim;
  const bool keep = sig->attr->max_dx.keep;
  gp_shape shape = sig->in[0]->shape;
  GP_TRY(gp_infer_same_shape(sig, 0, 1));
  if (!keep) {
    if (shape.rank == GP_MAX_RANK || dim < 0 || dim > shape.rank)
      return gp_fail(GP_ERANGE, "dimension %lld is outside 1 .. %d", (long long)dim + 1,
                     shape.rank + 1);
    for (int d = shape.rank++; d > dim; d--) shape.dim[d] = shape.dim[d - 1];
  }
  GP_TRY(gp_infer_dim(&shape, dim));
  if (keep && shape.dim[dim] != 1)
    return gp_fail(GP_ESHAPE, "dimension %lld has size %lld, expected 1", (long long)dim + 1,
                   (long long)shape.dim[dim]);
  shape.dim[dim] = sig->attr->max_dx.size;
  return gp_infer_out(sig, sig->in[0]->dtype, &shape);
}

/* Units are the indices of the dims before the searched one. */
static gp_cut cut(const gp_call *call) {
  gp_axis axis = gp_axis_of(&call->out[0].meta->shape, call->attr->max_dx.dim);
  return (gp_cut){.units = axis.outer, .grain = GP_ROW_BLOCK};
}

/* Zero bits are 0 in every float type, so the loops know nothing but sizes. */
#define SPREAD(name, T)                                                                            \
  static void name(const gp_call *call, gp_span span) {                                            \
    gp_axis axis = gp_axis_of(&call->out[0].meta->shape, call->attr->max_dx.dim);                  \
    for (int64_t outer = span.first; outer < span.last; outer++) {                                 \
      const T *dy = (const T *)call->in[0].data + outer * axis.inner;                              \
      const int64_t *at = (const int64_t *)call->in[1].data + outer * axis.inner;                  \
      T *dx = (T *)call->out[0].data + outer * axis.size * axis.inner;                             \
      for (int64_t i = 0; i < axis.size; i++)                                                      \
        for (int64_t j = 0; j < axis.inner; j++)                                                   \
          dx[i * axis.inner + j] = at[j] == i + 1 ? dy[j] : (T)0;                                  \
    }                                                                                              \
  }

SPREAD(spread_2, uint16_t)
SPREAD(spread_4, uint32_t)
SPREAD(spread_8, uint64_t)

/* Choose the loop by the size of an element. */
static gp_status run(const gp_call *call, gp_span span) {
  switch (gp_dtype_size(call->out[0].meta->dtype)) {
  case 2: spread_2(call, span); break;
  case 4: spread_4(call, span); break;
  default: spread_8(call, span); break;
  }
  return GP_OK;
}

const gp_op_def gp_def_max_dx = {
    GP_OP_ROW(max_dx),
    .infer = infer,
    .cost = gp_cost_copy,
    .cpu = {.cut = cut, .run = run},
};
