/* ops/elementwise/unary.h - ops of one operand that are a formula: each is its value and its slope.
 *
 * Formulas read the element as `a`, in f32 and in f64, and what `set(T)` declares before the loop
 * (GP_NO_SET: nothing). A formula without functions of one type is passed for both: its integer
 * literals take the type of the values beside them. The gradient is an op of its own, <op>_dx: one
 * pass over memory instead of one for each step of a product. It reads `a`, the gradient dy, and
 * `b`, the input or the output, and has the attributes of the op. */
#ifndef GP_OPS_ELEMENTWISE_UNARY_H
#define GP_OPS_ELEMENTWISE_UNARY_H

#include "ops/elementwise/loops.h"

#define GP_NO_SET(T) (void)0

/* Define run_<op> and the op. effort: light, middle, heavy (gp_map_cost_*). The rest are designated
 * initialisers, `.vjp = ..` if it has a gradient. */
#define GP_UNARY(op, set, f32, f64, effort, ...)                                                   \
  GP_MAP1_WITH(op##_f32, float, float, set(float), f32)                                            \
  GP_MAP1_WITH(op##_f64, double, double, set(double), f64)                                         \
  GP_MAP_KERNEL(op, op##_f32, op##_f64)                                                            \
  GP_MAP_OP(op, 1, .infer = gp_map_infer, .cost = gp_map_cost_##effort, __VA_ARGS__)

/* The same if i64 and i32 compute too, by a formula for type T. */
#define GP_UNARY_NUMBER(op, set, real, whole, ...)                                                 \
  GP_MAP1_WITH(op##_f32, float, float, set(float), real)                                           \
  GP_MAP1_WITH(op##_f64, double, double, set(double), real)                                        \
  GP_MAP1_WITH(op##_i64, int64_t, int64_t, set(int64_t), whole)                                    \
  GP_MAP1_WITH(op##_i32, int32_t, int32_t, set(int32_t), whole)                                    \
  GP_MAP_NUMBER_KERNEL(op)                                                                         \
  GP_MAP_OP(op, 1, .cost = gp_map_cost_light, __VA_ARGS__)

/* Define the op <op>_dx, and <op>_vjp, the rule that applies it to dy and `from`: in, out. */
#define GP_SLOPE(op, set, from, f32, f64, effort)                                                  \
  GP_MAP2_WITH(op##_dx_f32, float, float, set(float), f32)                                         \
  GP_MAP2_WITH(op##_dx_f64, double, double, set(double), f64)                                      \
  GP_MAP_KERNEL(op##_dx, op##_dx_f32, op##_dx_f64)                                                 \
  GP_MAP_OP(op##_dx, 2, .infer = gp_map_dx_infer, .cost = gp_map_cost_##effort)                    \
  static gp_status op##_vjp(gp_vjp *v) {                                                           \
    const gp_ref in[] = {v->dout[0], v->from[0]};                                                  \
    return gp_build(v->builder, GP_OP_##op##_dx, v->attr, in, 2, &v->din[0]);                      \
  }

#endif
