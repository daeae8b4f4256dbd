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

/* x between -bound and bound. NaN stays NaN: fmin would hide it. */
template <typename C> static __device__ inline C gp_bounded(C x, C bound) {
  x = x < -bound ? -bound : x;
  return x > bound ? bound : x;
}

#endif
