/* ops/function/rsqrt.cu - 1 / sqrt(x) on a GPU.
 *
 * A root and a division, as on the CPU, instead of the approximate instruction: the same bits. */
#include "ops/elementwise/map.cuh"

struct inverse_root {
  template <typename C> __device__ C operator()(C a) const { return C(1) / sqrt(a); }
};

const gp_gpu_kernel gp_gpu_rsqrt = {gp_map_float<1, inverse_root>, NULL};
