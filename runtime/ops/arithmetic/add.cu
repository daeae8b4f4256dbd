/* ops/arithmetic/add.cu - a, b -> a + b on a GPU.
 *
 * Bandwidth is all that counts: the layouts of biases and residuals are those of map.cuh. */
#include "ops/elementwise/map.cuh"

struct plus {
  template <typename C> __device__ C operator()(C a, C b) const { return a + b; }
};

const gp_gpu_kernel gp_gpu_add = {gp_map_number<2, plus>, NULL};
