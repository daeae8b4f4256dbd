/* ops/activation/silu.cu - x -> x sigmoid(x) on a GPU, and its gradient.
 *
 * Where the sigmoid is 0 or 1 exactly, its factor is bounded: 0 * infinity would be NaN. */
#include "ops/activation/gate.cuh"
#include "ops/constants.h"

/* Beyond these the sigmoid is 0 in the type. */
static __device__ inline float silu_bound(float) { return GP_SIGMOID_BOUND_F32; }
static __device__ inline double silu_bound(double) { return GP_SIGMOID_BOUND_F64; }

template <typename Gate> struct silu {
  template <typename C> __device__ C operator()(C x) const {
    return (x < -silu_bound(x) ? -silu_bound(x) : x) * Gate()(x);
  }
};

/* dy s (1 + x (1 - s)). */
template <typename Gate> struct silu_dx {
  template <typename C> __device__ C operator()(C dy, C x) const {
    const C s = Gate()(x);
    return dy * (s * (C(1) + gp_bounded(x, silu_bound(x)) * (C(1) - s)));
  }
};

const gp_gpu_kernel gp_gpu_silu = {gp_map_gated<1, silu<gp_gate>, silu<gp_half_gate>>, NULL};
const gp_gpu_kernel gp_gpu_silu_dx = {gp_map_gated<2, silu_dx<gp_gate>, silu_dx<gp_half_gate>>,
                                      NULL};
