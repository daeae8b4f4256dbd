/* ops/function/power.c - x x and 1 / x, each one correctly rounded operation, and their gradients.
 *
 * Integers are squared too, and wrap around. */
#include "ops/elementwise/unary.h"

/* dx = 2 dy x. */
GP_SLOPE(square, GP_NO_SET, in, (a * (b + b)), (a * (b + b)), light)

GP_MAP1(square_f32, float, float, (a * a))
GP_MAP1(square_f64, double, double, (a * a))

/* Unsigned: integers wrap around instead of being undefined. */
GP_MAP1(square_i64, uint64_t, uint64_t, (a * a))
GP_MAP1(square_i32, uint32_t, uint32_t, (a * a))

GP_MAP_NUMBER_KERNEL(square)

GP_MAP_OP(square, 1, .infer = gp_map_infer, .vjp = square_vjp, .cost = gp_map_cost_light)

/* dx = -dy y y, so the input need not be kept. */
GP_SLOPE(reciprocal, GP_NO_SET, out, (-a * b * b), (-a * b * b), light)
GP_UNARY(reciprocal, GP_NO_SET, 1 / a, 1 / a, light, .vjp = reciprocal_vjp)
