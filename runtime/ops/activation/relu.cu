/* ops/activation/relu.cu - x -> max(x, 0) on a GPU, and its gradient.
 *
 * It keeps NaN, as on the CPU. */
#include "ops/elementwise/map.cuh"

struct relu {
  template <typename C> __device__ C operator()(C x) const { return x <= C(0) ? C(0) : x; }
};
struct relu_dx {
  template <typename C> __device__ C operator()(C dy, C y) const { return y <= C(0) ? C(0) : dy; }
};

const gp_gpu_kernel gp_gpu_relu = {gp_map_float<1, relu>, NULL};
const gp_gpu_kernel gp_gpu_relu_dx = {gp_map_float<2, relu_dx>, NULL};
