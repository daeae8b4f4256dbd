/* ops/loss/bce.cu - binary cross-entropy of each element on a GPU; see bce.c. */
#include "ops/activation/gate.cuh"

/* ---- probabilities ------------------------------------------------------------------------- */

/* Bound a logarithm at -100. NaN is passed on. */
template <typename C> static __device__ inline C at_least(C x) { return x < C(-100) ? C(-100) : x; }

struct bce_of {
  template <typename C> __device__ C operator()(C p, C t) const {
    return (t - C(1)) * at_least(log1p(-p)) - t * at_least(log(p));
  }
};

struct bce_slope {
  template <typename C> __device__ C operator()(C dy, C p, C t) const {
    const C spread = (C(1) - p) * p;
    return dy * ((p - t) / (spread < C(1e-12) ? C(1e-12) : spread));
  }
};

const gp_gpu_kernel gp_gpu_bce = {gp_map_float<2, bce_of>, NULL};
const gp_gpu_kernel gp_gpu_bce_dx = {gp_map_float<3, bce_slope>, NULL};

/* ---- scores -------------------------------------------------------------------------------- */

struct bce_logits_of {
  template <typename C> __device__ C operator()(C x, C t) const {
    return (x > C(0) ? x * (C(1) - t) : -x * t) + log1p(exp(-fabs(x)));
  }
};

struct bce_logits_slope {
  template <typename C> __device__ C operator()(C dy, C x, C t) const {
    return dy * ((C(1) - t) * gp_sigmoid(x) - t * gp_sigmoid(-x));
  }
};

const gp_gpu_kernel gp_gpu_bce_logits = {gp_map_float<2, bce_logits_of>, NULL};
const gp_gpu_kernel gp_gpu_bce_logits_dx = {gp_map_float<3, bce_logits_slope>, NULL};
