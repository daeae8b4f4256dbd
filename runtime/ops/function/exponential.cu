/* ops/function/exponential.cu - x -> e^x on a GPU.
 *
 * The accurate function of the CUDA library (2 units in the last place), not the fast one. */
#include "ops/elementwise/map.cuh"

struct exponential {
  template <typename C> __device__ C operator()(C a) const { return exp(a); }
};

const gp_gpu_kernel gp_gpu_exp = {gp_map_float<1, exponential>, NULL};
