/* ops/choice/extreme.cu - maximum, minimum and clamp on a GPU, and their gradients; see
 * extreme.c. */
#include "ops/elementwise/map.cuh"

/* ---- maximum, minimum ----------------------------------------------------------------------- */

struct larger {
  template <typename C> __device__ C operator()(C a, C b) const {
    return a > b || !(a == a) ? a : b;
  }
};

struct smaller {
  template <typename C> __device__ C operator()(C a, C b) const {
    return a < b || !(a == a) ? a : b;
  }
};

/* The part of the gradient that `mine` gets if the larger one is taken. */
struct share {
  template <typename C> __device__ C operator()(C dy, C mine, C other) const {
    return mine == other ? dy / C(2) : mine < other ? C(0) : dy;
  }
};

const gp_gpu_kernel gp_gpu_maximum = {gp_map_signed<2, larger>, NULL};
const gp_gpu_kernel gp_gpu_minimum = {gp_map_signed<2, smaller>, NULL};
const gp_gpu_kernel gp_gpu_maximum_dx = {gp_map_float<3, share>, NULL};

/* ---- clamp ---------------------------------------------------------------------------------- */

/* Return a bound as a number of type C; one beyond the ends of an integer type becomes that end. */
template <typename C> static __device__ inline C bound_in(double x) { return C(x); }
template <> __device__ inline int64_t bound_in<int64_t>(double x) {
  return x >= 0x1p63 ? INT64_MAX : x < -0x1p63 ? INT64_MIN : int64_t(x);
}
template <> __device__ inline int32_t bound_in<int32_t>(double x) {
  return x >= 0x1p31 ? INT32_MAX : x < -0x1p31 ? INT32_MIN : int32_t(x);
}

struct nearest {
  double min, max;
  template <typename C> __device__ C operator()(C a) const {
    const C low = bound_in<C>(min), high = bound_in<C>(max);
    return !(a == a) ? a : a > high || low > high ? high : a < low ? low : a;
  }
};

struct nearest_dx {
  double min, max;
  template <typename C> __device__ C operator()(C dy, C x) const {
    return x >= C(min) && x <= C(max) ? dy : C(0);
  }
};

static gp_status run_clamp(gp_gpu *gpu, const gp_gpu_call *call) {
  const gp_attr_clamp &a = call->op.attr->clamp;
  return gp_map_signed_with<1>(gpu, nearest{a.min, a.max}, call);
}

/* The two ops have the same attributes. */
static gp_status run_clamp_dx(gp_gpu *gpu, const gp_gpu_call *call) {
  const gp_attr_clamp &a = call->op.attr->clamp;
  return gp_map_float_with<2>(gpu, nearest_dx{a.min, a.max}, call);
}

const gp_gpu_kernel gp_gpu_clamp = {run_clamp, NULL};
const gp_gpu_kernel gp_gpu_clamp_dx = {run_clamp_dx, NULL};
