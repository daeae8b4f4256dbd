/* ops/function/wave.cu - sine and cosine on a GPU, and their gradients.
 *
 * They are the accurate functions of the CUDA library, which reduce arguments of any size. */
#include "ops/elementwise/unary.cuh"

GP_GPU_UNARY(sin, sin(a))
GP_GPU_SLOPE(sin, (a * cos(b)))

GP_GPU_UNARY(cos, cos(a))
GP_GPU_SLOPE(cos, (-a * sin(b)))
