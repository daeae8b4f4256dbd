/* ops/activation/sigmoid.cu - x -> 1 / (1 + e^-x) on a GPU, and its gradient.
 *
 * The gradient reads the output. */
#include "ops/activation/gate.cuh"

struct sigmoid_dx {
  template <typename C> __device__ C operator()(C dy, C y) const { return dy * y * (C(1) - y); }
};

const gp_gpu_kernel gp_gpu_sigmoid = {gp_map_gated<1, gp_gate, gp_half_gate>, NULL};
const gp_gpu_kernel gp_gpu_sigmoid_dx = {gp_map_float<2, sigmoid_dx>, NULL};
