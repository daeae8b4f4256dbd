/* ops/arithmetic/neg.cu - x -> -x on a GPU.
 *
 * For integers it is 0 - x modulo 2^bits. */
#include "ops/elementwise/map.cuh"

struct negative {
  template <typename C> __device__ C operator()(C a) const { return -a; }
};

const gp_gpu_kernel gp_gpu_neg = {gp_map_number<1, negative>, NULL};
