/* ops/function/root.cu - the square root and its inverse on a GPU.
 *
 * The root is correctly rounded (the default of nvcc), and the inverse is a division instead of the
 * approximate instruction, so the bits are those of the CPU. */
#include "ops/elementwise/unary.cuh"

GP_GPU_UNARY(sqrt, sqrt(a))
GP_GPU_UNARY(rsqrt, C(1) / sqrt(a))
