/* ops/activation/gelu.cu - x times the normal distribution function of x on a GPU, and its gradient.
 *
 * i[0] = 0 takes the erf form, 1 the tanh form, written as a sigmoid as in gelu.c.
 * Source: Hendrycks and Gimpel, "Gaussian error linear units" (2016), section 2. */
#include "ops/activation/gate.cuh"

#define ROOT_HALF   0.70710678118654752440
#define ROOT_2_PI   0.39894228040143267794 /* 1 / sqrt(2 pi) */
#define TWICE_SLOPE 1.59576912160573071176 /* 2 sqrt(2 / pi) */
#define CUBIC       0.044715

/* Beyond these the result is x or 0 exactly. */
static __device__ inline float gelu_bound(float) { return 20.0f; }
static __device__ inline double gelu_bound(double) { return 60.0; }

/* P(x): in double, below 0, erfc keeps the digits. */
static __device__ inline float normal(float x) {
  return 0.5f * (1.0f + erff(x * (float)ROOT_HALF));
}
static __device__ inline double normal(double x) { return 0.5 * erfc(-x * ROOT_HALF); }

/* The sigmoid that stands for P(x) in the tanh form. */
template <typename C> static __device__ inline C gate(C x) {
  return gp_sigmoid(C(TWICE_SLOPE) * (x + C(CUBIC) * x * x * x));
}

/* A factor that does not make NaN of 0 times -infinity. */
template <typename C> static __device__ inline C low(C x) {
  return x < -gelu_bound(x) ? -gelu_bound(x) : x;
}

struct erf_form {
  template <typename C> __device__ C operator()(C x) const { return low(x) * normal(x); }
};
struct tanh_form {
  template <typename C> __device__ C operator()(C x) const { return low(x) * gate(x); }
};

/* dy (P(x) + x p(x)). */
struct erf_form_dx {
  template <typename C> __device__ C operator()(C dy, C x) const {
    x = gp_bounded(x, gelu_bound(x));
    return dy * (normal(x) + x * C(ROOT_2_PI) * exp(C(-0.5) * x * x));
  }
};

/* dy (s + x s (1 - s) d(2 u)/dx). */
struct tanh_form_dx {
  template <typename C> __device__ C operator()(C dy, C x) const {
    x = gp_bounded(x, gelu_bound(x));
    const C s = gate(x);
    return dy * (s + x * s * (C(1) - s) * C(TWICE_SLOPE) * (C(1) + C(3) * C(CUBIC) * x * x));
  }
};

template <int N, typename Erf, typename Tanh>
static gp_status by_form(gp_gpu *gpu, const gp_gpu_call *call) {
  return call->op.attr->gelu.mode == GP_GELU_TANH ? gp_map_float<N, Tanh>(gpu, call)
                                                  : gp_map_float<N, Erf>(gpu, call);
}

const gp_gpu_kernel gp_gpu_gelu = {by_form<1, erf_form, tanh_form>, NULL};
const gp_gpu_kernel gp_gpu_gelu_dx = {by_form<2, erf_form_dx, tanh_form_dx>, NULL};
