/* ops/function/hyperbola.c - hyperbolic sine and cosine, their inverses and that of tanh.
 *
 * They are libm's, which keep the digits of a small x and overflow only where the result does. */
#include "ops/elementwise/unary.h"

GP_SLOPE(sinh, GP_NO_SET, in, (a * coshf(b)), (a * cosh(b)), heavy)
GP_UNARY(sinh, GP_NO_SET, sinhf(a), sinh(a), heavy, .vjp = sinh_vjp)

GP_SLOPE(cosh, GP_NO_SET, in, (a * sinhf(b)), (a * sinh(b)), heavy)
GP_UNARY(cosh, GP_NO_SET, coshf(a), cosh(a), heavy, .vjp = cosh_vjp)

GP_SLOPE(asinh, GP_NO_SET, in, a / sqrtf(b * b + 1), a / sqrt(b * b + 1), middle)
GP_UNARY(asinh, GP_NO_SET, asinhf(a), asinh(a), heavy, .vjp = asinh_vjp)

GP_SLOPE(acosh, GP_NO_SET, in, a / sqrtf((b - 1) * (b + 1)), a / sqrt((b - 1) * (b + 1)), middle)
GP_UNARY(acosh, GP_NO_SET, acoshf(a), acosh(a), heavy, .vjp = acosh_vjp)

GP_SLOPE(atanh, GP_NO_SET, in, a / ((1 - b) * (1 + b)), a / ((1 - b) * (1 + b)), light)
GP_UNARY(atanh, GP_NO_SET, atanhf(a), atanh(a), heavy, .vjp = atanh_vjp)
