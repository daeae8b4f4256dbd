/* ops/function/root.cu - the square root on a GPU.
 *
 * Correctly rounded (the default of nvcc), so the bits are those of the CPU. */
#include "ops/elementwise/map.cuh"

struct root {
  template <typename C> __device__ C operator()(C a) const { return sqrt(a); }
};

const gp_gpu_kernel gp_gpu_sqrt = {gp_map_float<1, root>, NULL};
