/* ops/gradient.c - the steps that gradient rules are made of. */
#include "ops/gradient.h"

#include "base/status.h"

const gp_meta *gp_vjp_meta(const gp_vjp *v, gp_ref ref) { return gp_build_meta(v->builder, ref); }

/* ---- steps --------------------------------------------------------------------------------- */

gp_status gp_vjp_op1(gp_vjp *v, gp_op op, gp_ref a, gp_ref *out) {
  const gp_attrs none = {0};
  return gp_build(v->builder, op, &none, &a, 1, out);
}

gp_status gp_vjp_op2(gp_vjp *v, gp_op op, gp_ref a, gp_ref b, gp_ref *out) {
  const gp_attrs none = {0};
  return gp_build(v->builder, op, &none, (const gp_ref[]){a, b}, 2, out);
}

/* Apply reshape or expand unless the value has the shape already. */
static gp_status change_shape(gp_vjp *v, gp_op op, gp_ref a, const gp_attrs *attrs,
                              const gp_shape *shape, gp_ref *out) {
  *out = a;
  if (gp_shape_equal(&gp_vjp_meta(v, a)->shape, shape)) return GP_OK;
  return gp_build(v->builder, op, attrs, &a, 1, out);
}

gp_status gp_vjp_reshape(gp_vjp *v, gp_ref a, const gp_shape *shape, gp_ref *out) {
  const gp_attrs attrs = {.reshape = {*shape}};
  return change_shape(v, GP_OP_reshape, a, &attrs, shape, out);
}

gp_status gp_vjp_expand(gp_vjp *v, gp_ref a, const gp_shape *shape, gp_ref *out) {
  const gp_attrs attrs = {.expand = {*shape}};
  return change_shape(v, GP_OP_expand, a, &attrs, shape, out);
}

/* The constant is a scalar, which the product broadcasts. */
gp_status gp_vjp_scale(gp_vjp *v, gp_ref a, double c, gp_ref *out) {
  gp_ref factor;
  GP_TRY(gp_build_constant(v->builder, gp_vjp_meta(v, a)->dtype, c, &factor));
  return gp_vjp_op2(v, GP_OP_mul, a, factor, out);
}

gp_status gp_vjp_first_output_only(const gp_vjp *v) {
  for (int k = 1; k < v->n_out; k++)
    if (v->dout[k] != GP_NONE)
      return gp_fail(GP_EUNSUPPORTED, "output %d has no gradient, only the first output has one",
                     k + 1);
  return GP_OK;
}

/* ---- broadcasting -------------------------------------------------------------------------- */

/* Return a mask: bit d is set if `narrow` is repeated along dim d of `wide`. */
static int64_t broadcast_dims(const gp_shape *narrow, const gp_shape *wide) {
  int64_t mask = 0;
  for (int d = 0; d < wide->rank; d++) {
    int own = d - (wide->rank - narrow->rank);
    int64_t size = own < 0 ? 1 : narrow->dim[own];
    if (size != wide->dim[d]) mask |= INT64_C(1) << d;
  }
  return mask;
}

/* A sum of [.., N] to [N] has an op that can add to a parameter's gradient as it goes. */
static bool is_row_sum(const gp_shape *narrow, const gp_shape *wide) {
  return narrow->rank == 1 && wide->rank > 1 && narrow->dim[0] == wide->dim[wide->rank - 1];
}

gp_status gp_vjp_set_broadcast(gp_vjp *v, int i, gp_ref g) {
  if (!v->need[i] || g == GP_NONE) return GP_OK;
  /* Copies: the builder's metas may move while it grows. */
  gp_shape narrow = gp_vjp_meta(v, v->in[i])->shape, wide = gp_vjp_meta(v, g)->shape;
  gp_attrs sum = {.sum = {.dims = broadcast_dims(&narrow, &wide), .keep = true}};
  if (sum.sum.dims != 0) {
    if (is_row_sum(&narrow, &wide)) return gp_vjp_op1(v, GP_OP_sum_rows_dw, g, &v->din[i]);
    GP_TRY(gp_build(v->builder, GP_OP_sum, &sum, &g, 1, &g));
  }
  return gp_vjp_reshape(v, g, &narrow, &v->din[i]);
}
