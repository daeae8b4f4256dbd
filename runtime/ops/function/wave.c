/* ops/function/wave.c - sine and cosine of x in radians, and their gradients.
 *
 * They are libm's, which are right for the largest arguments too: positions times frequencies need
 * not be reduced before. */
#include "ops/elementwise/unary.h"

GP_SLOPE(sin, GP_NO_SET, in, (a * cosf(b)), (a * cos(b)), heavy)
GP_UNARY(sin, GP_NO_SET, sinf(a), sin(a), heavy, .vjp = sin_vjp)

GP_SLOPE(cos, GP_NO_SET, in, (-a * sinf(b)), (-a * sin(b)), heavy)
GP_UNARY(cos, GP_NO_SET, cosf(a), cos(a), heavy, .vjp = cos_vjp)
