/* ops/function/logarithm.cu - the natural logarithms of x and 1 + x on a GPU.
 *
 * They are the accurate functions of the CUDA library; -inf at 0 and NaN below. */
#include "ops/elementwise/unary.cuh"

GP_GPU_UNARY(log, log(a))

GP_GPU_UNARY(log1p, log1p(a))
GP_GPU_SLOPE(log1p, a / (b + C(1)))
