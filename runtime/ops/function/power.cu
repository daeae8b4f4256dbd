/* ops/function/power.cu - x x and 1 / x on a GPU: the bits of the CPU. */
#include "ops/elementwise/unary.cuh"

struct square_of {
  template <typename C> __device__ C operator()(C a) const { return a * a; }
};

const gp_gpu_kernel gp_gpu_square = {gp_map_number<1, square_of>, NULL};
GP_GPU_SLOPE(square, (a * (b + b)))

GP_GPU_UNARY(reciprocal, C(1) / a)
GP_GPU_SLOPE(reciprocal, (-a * b * b))
