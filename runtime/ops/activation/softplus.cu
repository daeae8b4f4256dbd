/* ops/activation/softplus.cu - x -> log(1 + exp(beta x)) / beta on a GPU, and its gradient.
 *
 * Only exponentials of negative numbers are taken, as on the CPU. */
#include "ops/activation/gate.cuh"

struct softplus {
  double beta, threshold;
  template <typename C> __device__ C operator()(C x) const {
    const C z = x * C(beta);
    if (z > C(threshold)) return x;
    return ((z > C(0) ? z : C(0)) + log1p(exp(-fabs(z)))) / C(beta);
  }
};

struct softplus_dx {
  double beta, threshold;
  template <typename C> __device__ C operator()(C dy, C x) const {
    const C z = x * C(beta);
    return dy * (z > C(threshold) ? C(1) : gp_sigmoid(z));
  }
};

/* The two ops have the same attributes. */
template <int N, typename F> static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  const gp_attr_softplus &a = call->op.attr->softplus;
  return gp_map_float_with<N>(gpu, F{a.beta, a.threshold}, call);
}

const gp_gpu_kernel gp_gpu_softplus = {run<1, softplus>, NULL};
const gp_gpu_kernel gp_gpu_softplus_dx = {run<2, softplus_dx>, NULL};
