/* ops/arithmetic/pow.cu - a, b -> a ^ b on a GPU.
 *
 * Squares are a product, as on the CPU; the choice is made per element. */
#include "ops/elementwise/map.cuh"

struct power {
  template <typename C> __device__ C operator()(C a, C b) const {
    return b == C(2) ? a * a : pow(a, b);
  }
};

const gp_gpu_kernel gp_gpu_pow = {gp_map_float<2, power>, NULL};
