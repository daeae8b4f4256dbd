/* ops/choice/predicate.cuh - predicates of elements of any one dtype on a GPU -> bool.
 *
 * A half is tested as the float that it stands for, as on the CPU. */
#ifndef GP_OPS_CHOICE_PREDICATE_CUH
#define GP_OPS_CHOICE_PREDICATE_CUH

#include "ops/elementwise/map.cuh"

/* Convert stored floats to the type that they are computed in, and test those. */
template <typename F> struct gp_asked_floats {
  template <typename... T> __device__ bool operator()(T... a) const { return F()(gp_load(a)...); }
};

/* T: the type of all N inputs. A bool is a byte that is 0 or 1. */
template <int N, typename T, typename F>
static gp_status gp_ask_as(gp_gpu *gpu, const gp_gpu_call *call) {
  if constexpr (N == 1) return gp_map<uint8_t, T>(gpu, F(), &call->op.out[0], call->op.in);
  if constexpr (N == 2) return gp_map<uint8_t, T, T>(gpu, F(), &call->op.out[0], call->op.in);
}

/* Run the op that tests N elements by F. */
template <int N, typename F> static gp_status gp_ask(gp_gpu *gpu, const gp_gpu_call *call) {
  const gp_dtype dtype = call->op.in[0].meta->dtype;
  switch (dtype) {
  case GP_I64: return gp_ask_as<N, int64_t, F>(gpu, call);
  case GP_I32: return gp_ask_as<N, int32_t, F>(gpu, call);
  case GP_U8:
  case GP_BOOL: return gp_ask_as<N, uint8_t, F>(gpu, call);
  default: GP_BY_FLOAT(dtype, return (gp_ask_as<N, T, gp_asked_floats<F>>(gpu, call)))
  }
  return GP_OK;
}

/* Define gp_gpu_<op>: the value of the formula for a, or for a and b. */
#define GP_GPU_PREDICATE1(op, formula)                                                             \
  struct op##_asked {                                                                              \
    template <typename C> __device__ bool operator()(C a) const { return formula; }                \
  };                                                                                               \
  const gp_gpu_kernel gp_gpu_##op = {gp_ask<1, op##_asked>, NULL};
#define GP_GPU_PREDICATE2(op, formula)                                                             \
  struct op##_asked {                                                                              \
    template <typename C> __device__ bool operator()(C a, C b) const { return formula; }           \
  };                                                                                               \
  const gp_gpu_kernel gp_gpu_##op = {gp_ask<2, op##_asked>, NULL};

#endif
