/* ops/activation/tanh.cu - the hyperbolic tangent on a GPU, and its gradient.
 *
 * It is the accurate function of the CUDA library, not the instruction tanh.approx. */
#include "ops/elementwise/map.cuh"

struct tangent {
  template <typename C> __device__ C operator()(C x) const { return tanh(x); }
};
struct tangent_dx {
  template <typename C> __device__ C operator()(C dy, C y) const { return dy * (C(1) - y * y); }
};

const gp_gpu_kernel gp_gpu_tanh = {gp_map_float<1, tangent>, NULL};
const gp_gpu_kernel gp_gpu_tanh_dx = {gp_map_float<2, tangent_dx>, NULL};
