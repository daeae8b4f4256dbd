/* ops/arithmetic/div.cu - a, b -> a / b on a GPU.
 *
 * The division is correctly rounded (the default of nvcc), so the bits are those of the CPU. */
#include "ops/elementwise/map.cuh"

struct over {
  template <typename C> __device__ C operator()(C a, C b) const { return a / b; }
};

const gp_gpu_kernel gp_gpu_div = {gp_map_float<2, over>, NULL};
