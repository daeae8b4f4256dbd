/* ops/activation/gate.cuh - the sigmoid, which three activations are made of.
 *
 * Only exponentials of negative numbers are taken, as on the CPU: far values are small and right
 * instead of overflowing. */
#ifndef GP_OPS_ACTIVATION_GATE_CUH
#define GP_OPS_ACTIVATION_GATE_CUH

#include "ops/elementwise/map.cuh"

template <typename C> static __device__ inline C gp_sigmoid(C x) {
  const C e = exp(-fabs(x));
  return (x < C(0) ? e : C(1)) / (C(1) + e);
}

/* Functors are made with one of these: the sigmoid of their type, or one only as exact as halves
 * are stored, whose instructions take no longer than the memory does. Its exponential may overflow:
 * 1 / infinity is 0. */
struct gp_gate {
  template <typename C> __device__ C operator()(C x) const { return gp_sigmoid(x); }
};
struct gp_half_gate {
  __device__ float operator()(float x) const {
    return __fdividef(1.0f, 1.0f + exp2f(x * -1.4426950408889634f));
  }
};

/* Run an op with a functor for floats and one for halves. */
template <int N, typename F, typename Half>
static gp_status gp_map_gated(gp_gpu *gpu, const gp_gpu_call *call) {
  switch (call->op.out[0].meta->dtype) {
  case GP_BF16: return gp_map_same<N, gp_bf16>(gpu, gp_computed<Half>(), call);
  case GP_F16: return gp_map_same<N, gp_f16>(gpu, gp_computed<Half>(), call);
  case GP_F64: return gp_map_same<N, double>(gpu, gp_computed<F>(), call);
  default: return gp_map_same<N, float>(gpu, gp_computed<F>(), call);
  }
}

/* Clamp x to -bound .. bound. NaN stays NaN: fmin would hide it. */
template <typename C> static __device__ inline C gp_bounded(C x, C bound) {
  x = x < -bound ? -bound : x;
  return x > bound ? bound : x;
}

#endif
