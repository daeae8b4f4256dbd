/* ops/choice/extreme.c - the larger and the smaller of two, and the nearest between two bounds.
 *
 * NaN is passed on. If two elements are equal each gets half of the gradient; a bound lets the
 * gradient of an element that lies on it pass, as in PyTorch. */
#include "ops/elementwise/unary.h"

/* ---- maximum, minimum ----------------------------------------------------------------------- */

/* a if it is the larger one or NaN, else b, which may be NaN. */
#define LARGER(a, b)  ((a) > (b) || !((a) == (a)) ? (a) : (b))
#define SMALLER(a, b) ((a) < (b) || !((a) == (a)) ? (a) : (b))

GP_MAP2(maximum_f32, float, float, LARGER(a, b))
GP_MAP2(maximum_f64, double, double, LARGER(a, b))
GP_MAP2(maximum_i64, int64_t, int64_t, a > b ? a : b)
GP_MAP2(maximum_i32, int32_t, int32_t, a > b ? a : b)
GP_MAP2(minimum_f32, float, float, SMALLER(a, b))
GP_MAP2(minimum_f64, double, double, SMALLER(a, b))
GP_MAP2(minimum_i64, int64_t, int64_t, a < b ? a : b)
GP_MAP2(minimum_i32, int32_t, int32_t, a < b ? a : b)

/* The part of the gradient a that b gets if the larger of b and c is taken. */
#define SHARE(a, b, c) ((b) == (c) ? (a) / 2 : (b) < (c) ? 0 : (a))

GP_MAP3(maximum_dx_f32, float, float, SHARE(a, b, c))
GP_MAP3(maximum_dx_f64, double, double, SHARE(a, b, c))

GP_MAP_NUMBER_KERNEL(maximum)
GP_MAP_NUMBER_KERNEL(minimum)
GP_MAP_KERNEL(maximum_dx, maximum_dx_f32, maximum_dx_f64)

/* Set din[i] to the gradient that operand i, `mine`, gets if the larger of it and
 * `other` is taken. */
static gp_status set_share(gp_vjp *v, int i, gp_ref mine, gp_ref other) {
  const gp_attrs none = {0};
  const gp_ref in[] = {v->dout[0], mine, other};
  gp_ref g;
  if (!v->need[i]) return GP_OK;
  GP_TRY(gp_build(v->builder, GP_OP_maximum_dx, &none, in, 3, &g));
  return gp_vjp_set_broadcast(v, i, g);
}

static gp_status maximum_vjp(gp_vjp *v) {
  GP_TRY(set_share(v, 0, v->in[0], v->in[1]));
  return set_share(v, 1, v->in[1], v->in[0]);
}

/* The smaller one is taken where the larger one is not. */
static gp_status minimum_vjp(gp_vjp *v) {
  GP_TRY(set_share(v, 0, v->in[1], v->in[0]));
  return set_share(v, 1, v->in[0], v->in[1]);
}

GP_MAP_OP(maximum, 2, .infer = gp_map_infer, .vjp = maximum_vjp, .cost = gp_map_cost_light)
GP_MAP_OP(minimum, 2, .infer = gp_map_infer, .vjp = minimum_vjp, .cost = gp_map_cost_light)
GP_MAP_OP(maximum_dx, 3, .infer = gp_map_infer, .cost = gp_map_cost_light)

/* ---- clamp ---------------------------------------------------------------------------------- */

/* clamp and clamp_dx have the same attributes. */
#define BOUNDS(T)                                                                                  \
  const gp_attr_clamp *attr = &run->call->attr->clamp;                                             \
  const T low = (T)attr->min, high = (T)attr->max

/* The nearest integer bounds that T has; an infinity becomes the end of T. */
#define WHOLE_BOUNDS(T)                                                                            \
  const gp_attr_clamp *attr = &run->call->attr->clamp;                                             \
  const T low = (T)whole_bound(attr->min, sizeof(T)), high = (T)whole_bound(attr->max, sizeof(T))

static int64_t whole_bound(double bound, size_t size) {
  const int64_t most = size == sizeof(int64_t) ? INT64_MAX : INT32_MAX;
  const double end = size == sizeof(int64_t) ? 0x1p63 : 0x1p31;
  return bound >= end ? most : bound < -end ? -most - 1 : (int64_t)bound;
}

/* The upper bound is the stronger one, where they cross. */
#define NEAREST(a) ((a) > high || low > high ? high : (a) < low ? low : (a))

GP_MAP1_WITH(clamp_f32, float, float, BOUNDS(float), !(a == a) ? a : NEAREST(a))
GP_MAP1_WITH(clamp_f64, double, double, BOUNDS(double), !(a == a) ? a : NEAREST(a))
GP_MAP1_WITH(clamp_i64, int64_t, int64_t, WHOLE_BOUNDS(int64_t), NEAREST(a))
GP_MAP1_WITH(clamp_i32, int32_t, int32_t, WHOLE_BOUNDS(int32_t), NEAREST(a))

GP_MAP_NUMBER_KERNEL(clamp)

GP_SLOPE(clamp, BOUNDS, in, b >= low && b <= high ? a : 0, b >= low && b <= high ? a : 0, light)

/* Check that a bound of integers is an integer. */
static gp_status check_whole(const gp_sig *sig, const char *name, double bound) {
  if (isinf(bound) || bound == rint(bound)) return GP_OK;
  return gp_fail(GP_ERANGE, "%s is %g, expected an integer as the input is %s", name, bound,
                 gp_dtype_name(sig->in[0]->dtype));
}

static gp_status clamp_infer(gp_sig *sig) {
  if (!gp_dtype_is_float(sig->in[0]->dtype)) {
    GP_TRY(check_whole(sig, "min", sig->attr->clamp.min));
    GP_TRY(check_whole(sig, "max", sig->attr->clamp.max));
  }
  return gp_infer_like(sig, 0);
}

GP_MAP_OP(clamp, 1, .infer = clamp_infer, .vjp = clamp_vjp, .cost = gp_map_cost_light)
