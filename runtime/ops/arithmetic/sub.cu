/* ops/arithmetic/sub.cu - a, b -> a - b on a GPU.
 *
 * One pass over memory, as on the CPU. */
#include "ops/elementwise/map.cuh"

struct minus {
  template <typename C> __device__ C operator()(C a, C b) const { return a - b; }
};

const gp_gpu_kernel gp_gpu_sub = {gp_map_number<2, minus>, NULL};
