/* ops/function/logarithm.cu - the natural logarithm on a GPU.
 *
 * The accurate function of the CUDA library; -inf at 0 and NaN below. */
#include "ops/elementwise/map.cuh"

struct logarithm {
  template <typename C> __device__ C operator()(C a) const { return log(a); }
};

const gp_gpu_kernel gp_gpu_log = {gp_map_float<1, logarithm>, NULL};
