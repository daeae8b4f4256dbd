/* ops/function/hyperbola.cu - hyperbolic functions and their inverses on a GPU; see hyperbola.c. */
#include "ops/elementwise/unary.cuh"

GP_GPU_UNARY(sinh, sinh(a))
GP_GPU_SLOPE(sinh, (a * cosh(b)))

GP_GPU_UNARY(cosh, cosh(a))
GP_GPU_SLOPE(cosh, (a * sinh(b)))

GP_GPU_UNARY(asinh, asinh(a))
GP_GPU_SLOPE(asinh, a / sqrt(b * b + C(1)))

GP_GPU_UNARY(acosh, acosh(a))
GP_GPU_SLOPE(acosh, a / sqrt((b - C(1)) * (b + C(1))))

GP_GPU_UNARY(atanh, atanh(a))
GP_GPU_SLOPE(atanh, a / ((C(1) - b) * (C(1) + b)))
