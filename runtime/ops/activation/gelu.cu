/* ops/activation/gelu.cu - x times the normal distribution function of x on a GPU, and its
 * gradient.
 *
 * The tanh form is written as a sigmoid, as in gelu.c.
 * Source: Hendrycks and Gimpel, "Gaussian error linear units" (2016), section 2. */
#include "ops/activation/gate.cuh"
#include "ops/constants.h"

/* Beyond these the result is x or 0 exactly. */
static __device__ inline float gelu_bound(float) { return GP_GELU_BOUND_F32; }
static __device__ inline double gelu_bound(double) { return GP_GELU_BOUND_F64; }

/* P(x); in double, erfc keeps the digits below 0. */
static __device__ inline float normal(float x) {
  return 0.5f * (1.0f + erff(x * (float)GP_ROOT_HALF));
}
static __device__ inline double normal(double x) { return 0.5 * erfc(-x * GP_ROOT_HALF); }

/* The sigmoid that stands for P(x) in the tanh form. */
template <typename Gate, typename C> static __device__ inline C gate(C x) {
  return Gate()(C(GP_TWICE_SLOPE) * (x + C(GP_GELU_CUBIC) * x * x * x));
}

/* Bound a factor, so that 0 times -infinity does not make NaN. */
template <typename C> static __device__ inline C low(C x) {
  return x < -gelu_bound(x) ? -gelu_bound(x) : x;
}

struct erf_form {
  template <typename C> __device__ C operator()(C x) const { return low(x) * normal(x); }
};
template <typename Gate> struct tanh_form {
  template <typename C> __device__ C operator()(C x) const { return low(x) * gate<Gate>(x); }
};

/* dy (P(x) + x p(x)). */
struct erf_form_dx {
  template <typename C> __device__ C operator()(C dy, C x) const {
    x = gp_bounded(x, gelu_bound(x));
    return dy * (normal(x) + x * C(GP_ROOT_2_PI) * exp(C(-0.5) * x * x));
  }
};

/* dy (s + x s (1 - s) d(2 u)/dx). */
template <typename Gate> struct tanh_form_dx {
  template <typename C> __device__ C operator()(C dy, C x) const {
    x = gp_bounded(x, gelu_bound(x));
    const C s = gate<Gate>(x);
    return dy *
           (s + x * s * (C(1) - s) * C(GP_TWICE_SLOPE) * (C(1) + C(3) * C(GP_GELU_CUBIC) * x * x));
  }
};

template <int N, typename Erf, template <typename> class Tanh>
static gp_status by_form(gp_gpu *gpu, const gp_gpu_call *call) {
  return call->op.attr->gelu.mode == GP_GELU_TANH
             ? gp_map_gated<N, Tanh<gp_gate>, Tanh<gp_half_gate>>(gpu, call)
             : gp_map_float<N, Erf>(gpu, call);
}

const gp_gpu_kernel gp_gpu_gelu = {by_form<1, erf_form, tanh_form>, NULL};
const gp_gpu_kernel gp_gpu_gelu_dx = {by_form<2, erf_form_dx, tanh_form_dx>, NULL};
