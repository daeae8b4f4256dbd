/* ops/function/root.cu - the square root and its inverse on a GPU.
 *
 * Correctly rounded (the default of nvcc), the inverse by a division instead of the approximate
 * instruction: so the bits are those of the CPU. */
#include "ops/elementwise/unary.cuh"

GP_GPU_UNARY(sqrt, sqrt(a))
GP_GPU_UNARY(rsqrt, C(1) / sqrt(a))
