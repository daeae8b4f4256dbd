/* ops/shape/concat.c - values one behind the other along a dim; any one dtype.
 *
 * Inputs are contiguous, so a unit of the result is one piece of memory from each of them. Inputs
 * may be empty along the dim. */
#include <string.h>

#include "base/status.h"
#include "ops/axis.h"
#include "ops/gradient.h"
#include "ops/infer.h"

static gp_status refuse(const gp_shape *a, const gp_shape *b, int64_t dim) {
  char first[GP_SHAPE_TEXT], second[GP_SHAPE_TEXT];
  return gp_fail(GP_ESHAPE, "shapes %s and %s differ outside dimension %lld",
                 gp_shape_print(a, first, sizeof first), gp_shape_print(b, second, sizeof second),
                 (long long)dim + 1);
}

/* Tell whether all sizes agree, except that of the dim. */
static bool equal_outside(const gp_shape *a, const gp_shape *b, int64_t dim) {
  if (a->rank != b->rank) return false;
  for (int d = 0; d < a->rank; d++)
    if (d != dim && a->dim[d] != b->dim[d]) return false;
  return true;
}

/* Add up the sizes along the dim. */
static gp_status infer(gp_sig *sig) {
  int64_t dim = sig->attr->concat.dim;
  gp_shape shape = sig->in[0]->shape;
  GP_TRY(gp_infer_dim(&shape, dim));
  for (int i = 1; i < sig->n_in; i++) {
    const gp_shape *next = &sig->in[i]->shape;
    if (!equal_outside(&sig->in[0]->shape, next, dim)) return refuse(&sig->in[0]->shape, next, dim);
    if (next->dim[dim] > INT64_MAX - shape.dim[dim])
      return gp_fail(GP_ESHAPE, "dimension %lld is too large", (long long)dim + 1);
    shape.dim[dim] += next->dim[dim];
  }
  return gp_infer_out(sig, sig->in[0]->dtype, &shape);
}

static gp_cut cut(const gp_call *call) { return gp_cut_outer(call, call->attr->concat.dim); }

/* Copy input by input: each fills its column of every unit. */
static gp_status run(const gp_call *call, gp_span span) {
  size_t item = gp_dtype_size(call->out[0].meta->dtype);
  gp_axis whole = gp_axis_of(&call->out[0].meta->shape, call->attr->concat.dim);
  size_t width = (size_t)(whole.size * whole.inner) * item, at = 0;
  for (int i = 0; i < call->n_in; i++) {
    gp_axis part = gp_axis_of(&call->in[i].meta->shape, call->attr->concat.dim);
    size_t bytes = (size_t)(part.size * part.inner) * item;
    if (bytes == 0) continue;
    for (int64_t unit = span.first; unit < span.last; unit++)
      memcpy((char *)call->out[0].data + (size_t)unit * width + at,
             (const char *)call->in[i].data + (size_t)unit * bytes, bytes);
    at += bytes;
  }
  return GP_OK;
}

/* Give every input its part of dy. */
static gp_status vjp(gp_vjp *v) {
  int64_t dim = v->attr->concat.dim, start = 0;
  for (int i = 0; i < v->n_in; i++) {
    int64_t length = gp_vjp_meta(v, v->in[i])->shape.dim[dim];
    gp_attrs narrow = {.narrow = {dim, start, length}};
    if (v->need[i]) GP_TRY(gp_build(v->builder, GP_OP_narrow, &narrow, &v->dout[0], 1, &v->din[i]));
    start += length;
  }
  return GP_OK;
}

const gp_op_def gp_def_concat = {
    GP_OP_ROW(concat),
    .infer = infer,
    .vjp = vjp,
    .cost = gp_cost_copy,
    .cpu = {.cut = cut, .run = run},
};
