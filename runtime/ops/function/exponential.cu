/* ops/function/exponential.cu - e^x and e^x - 1 on a GPU.
 *
 * They are the accurate functions of the CUDA library (2 units in the last place), not
 * the fast ones. */
#include "ops/elementwise/unary.cuh"

GP_GPU_UNARY(exp, exp(a))

GP_GPU_UNARY(expm1, expm1(a))
GP_GPU_SLOPE(expm1, (a * (b + C(1))))
