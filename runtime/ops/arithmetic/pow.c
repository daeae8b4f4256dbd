/* ops/arithmetic/pow.c - a ^ b.
 *
 * The general case is libm's. Squares, which are most of what models raise to a power,
 * are a product; the choice is made per element, so the bits do not depend on the layout
 * of the exponent. */
#include "ops/elementwise/loops.h"

GP_MAP2(pow_f32, float, float, b == 2.0f ? a * a : powf(a, b))
GP_MAP2(pow_f64, double, double, b == 2.0 ? a * a : pow(a, b))
GP_MAP1(square_f32, float, float, (a * a))
GP_MAP1(square_f64, double, double, (a * a))

/* If the whole run has one exponent and it is 2, use a loop that vectorises. */
static void power_f32(const gp_row_run *run) {
  bool square = run->step[1] == 0 && *(const float *)run->in[1] == 2.0f;
  (square ? square_f32 : pow_f32)(run);
}

static void power_f64(const gp_row_run *run) {
  bool square = run->step[1] == 0 && *(const double *)run->in[1] == 2.0;
  (square ? square_f64 : pow_f64)(run);
}

GP_MAP_KERNEL(pow, power_f32, power_f64)

/* Set *out to 0 where x is 0, else to y: there the formulas below have 0 * infinity. */
static gp_status zero_where_zero(gp_vjp *v, gp_ref x, gp_ref y, gp_ref *out) {
  const gp_attrs none = {0};
  gp_ref zero, is_zero;
  GP_TRY(gp_build_constant(v->builder, gp_build_meta(v->builder, x)->dtype, 0, &zero));
  GP_TRY(gp_vjp_op2(v, GP_OP_eq, x, zero, &is_zero));
  return gp_build(v->builder, GP_OP_where, &none, (const gp_ref[]){is_zero, zero, y}, 3, out);
}

/* da = dy b a^(b - 1), 0 where b is 0. */
static gp_status vjp_base(gp_vjp *v) {
  gp_ref one, g;
  gp_dtype dtype = gp_build_meta(v->builder, v->in[1])->dtype;
  GP_TRY(gp_build_constant(v->builder, dtype, 1, &one));
  GP_TRY(gp_vjp_op2(v, GP_OP_sub, v->in[1], one, &g));
  GP_TRY(gp_vjp_op2(v, GP_OP_pow, v->in[0], g, &g));
  GP_TRY(gp_vjp_op2(v, GP_OP_mul, g, v->in[1], &g));
  GP_TRY(zero_where_zero(v, v->in[1], g, &g));
  GP_TRY(gp_vjp_op2(v, GP_OP_mul, v->dout[0], g, &g));
  return gp_vjp_set_broadcast(v, 0, g);
}

/* db = dy y log(a), 0 where a is 0. */
static gp_status vjp_exponent(gp_vjp *v) {
  gp_ref g;
  GP_TRY(gp_vjp_op1(v, GP_OP_log, v->in[0], &g));
  GP_TRY(gp_vjp_op2(v, GP_OP_mul, v->out[0], g, &g));
  GP_TRY(zero_where_zero(v, v->in[0], g, &g));
  GP_TRY(gp_vjp_op2(v, GP_OP_mul, v->dout[0], g, &g));
  return gp_vjp_set_broadcast(v, 1, g);
}

static gp_status vjp(gp_vjp *v) {
  if (v->need[0]) GP_TRY(vjp_base(v));
  if (v->need[1]) GP_TRY(vjp_exponent(v));
  return GP_OK;
}

GP_MAP_OP(pow, 2, .infer = gp_map_infer, .vjp = vjp, .cost = gp_map_cost_heavy)
