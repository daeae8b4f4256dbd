/* ops/choice/compare.cu - eq ne lt le gt ge on a GPU: two values of any one dtype -> bool.
 *
 * Halves are compared as the floats they stand for, as on the CPU. */
#include "ops/elementwise/map.cuh"

struct equal {
  template <typename C> __device__ bool operator()(C a, C b) const { return a == b; }
};
struct unequal {
  template <typename C> __device__ bool operator()(C a, C b) const { return a != b; }
};
struct less {
  template <typename C> __device__ bool operator()(C a, C b) const { return a < b; }
};
struct at_most {
  template <typename C> __device__ bool operator()(C a, C b) const { return a <= b; }
};
struct greater {
  template <typename C> __device__ bool operator()(C a, C b) const { return a > b; }
};
struct at_least {
  template <typename C> __device__ bool operator()(C a, C b) const { return a >= b; }
};

/* Stored floats as what they are computed in. */
template <typename F> struct of_floats {
  template <typename T> __device__ bool operator()(T a, T b) const {
    return F()(gp_load(a), gp_load(b));
  }
};

/* T: the type of both inputs. A bool is a byte that is 0 or 1. */
template <typename T, typename F>
static gp_status compare_as(gp_gpu *gpu, const gp_gpu_call *call) {
  return gp_map<uint8_t, T, T>(gpu, F(), &call->op.out[0], call->op.in);
}

template <typename F> static gp_status compare(gp_gpu *gpu, const gp_gpu_call *call) {
  const gp_dtype dtype = call->op.in[0].meta->dtype;
  switch (dtype) {
  case GP_I64: return compare_as<int64_t, F>(gpu, call);
  case GP_I32: return compare_as<int32_t, F>(gpu, call);
  case GP_U8:
  case GP_BOOL: return compare_as<uint8_t, F>(gpu, call);
  default: GP_BY_FLOAT(dtype, return (compare_as<T, of_floats<F>>(gpu, call)))
  }
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_eq = {compare<equal>, NULL};
const gp_gpu_kernel gp_gpu_ne = {compare<unequal>, NULL};
const gp_gpu_kernel gp_gpu_lt = {compare<less>, NULL};
const gp_gpu_kernel gp_gpu_le = {compare<at_most>, NULL};
const gp_gpu_kernel gp_gpu_gt = {compare<greater>, NULL};
const gp_gpu_kernel gp_gpu_ge = {compare<at_least>, NULL};
