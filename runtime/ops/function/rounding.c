/* ops/function/rounding.c - absolute value, sign and the whole numbers around x.
 *
 * round goes to the even one of two that are equally near. All but abs are flat between steps: no
 * gradient flows through them. As in PyTorch the sign of NaN is 0, and so is the slope of abs at 0;
 * the others keep NaN, infinities and the sign of zero. */
#include "ops/elementwise/unary.h"

GP_SLOPE(abs, GP_NO_SET, in, b > 0 ? a : (b < 0 ? -a : 0), b > 0 ? a : (b < 0 ? -a : 0), light)

GP_MAP1(abs_f32, float, float, fabsf(a))
GP_MAP1(abs_f64, double, double, fabs(a))

/* Unsigned: the least integer, whose absolute value does not exist, stays what it is. */
GP_MAP1(abs_i64, uint64_t, uint64_t, a >> 63 ? 0 - a : a)
GP_MAP1(abs_i32, uint32_t, uint32_t, a >> 31 ? 0 - a : a)

GP_MAP_NUMBER_KERNEL(abs)

GP_MAP_OP(abs, 1, .infer = gp_map_infer, .vjp = abs_vjp, .cost = gp_map_cost_light)

GP_UNARY_NUMBER(sign, GP_NO_SET, (a > 0) - (a < 0), (a > 0) - (a < 0), .infer = gp_map_infer)

GP_UNARY(floor, GP_NO_SET, floorf(a), floor(a), light)
GP_UNARY(ceil, GP_NO_SET, ceilf(a), ceil(a), light)
GP_UNARY(round, GP_NO_SET, rintf(a), rint(a), light)
