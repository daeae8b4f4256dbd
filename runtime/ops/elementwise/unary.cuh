/* ops/elementwise/unary.cuh - ops of one operand that are a formula, on a GPU; see unary.h.
 *
 * Formulas are for a type C, f32 or f64, which halves are computed in. */
#ifndef GP_OPS_ELEMENTWISE_UNARY_CUH
#define GP_OPS_ELEMENTWISE_UNARY_CUH

#include "ops/elementwise/map.cuh"

/* Define gp_gpu_<op>: the value of the formula at a. */
#define GP_GPU_UNARY(op, formula)                                                                  \
  struct op##_of {                                                                                 \
    template <typename C> __device__ C operator()(C a) const { return formula; }                   \
  };                                                                                               \
  const gp_gpu_kernel gp_gpu_##op = {gp_map_float<1, op##_of>, NULL};

/* Define gp_gpu_<op>_dx: the value of the formula at a, the gradient dy, and b, the input
 * or the output. */
#define GP_GPU_SLOPE(op, formula)                                                                  \
  struct op##_slope {                                                                              \
    template <typename C> __device__ C operator()(C a, C b) const { return formula; }              \
  };                                                                                               \
  const gp_gpu_kernel gp_gpu_##op##_dx = {gp_map_float<2, op##_slope>, NULL};

/* The same for an op with one real attribute, which formulas read as p. */
#define GP_GPU_UNARY_WITH(name, attribute, formula)                                                \
  struct name##_of {                                                                               \
    double real;                                                                                   \
    template <typename C> __device__ C operator()(C a) const {                                     \
      const C p = C(real);                                                                         \
      return formula;                                                                              \
    }                                                                                              \
  };                                                                                               \
  static gp_status run_##name(gp_gpu *gpu, const gp_gpu_call *call) {                              \
    return gp_map_float_with<1>(gpu, name##_of{call->op.attr->name.attribute}, call);              \
  }                                                                                                \
  const gp_gpu_kernel gp_gpu_##name = {run_##name, NULL};

#define GP_GPU_SLOPE_WITH(name, attribute, formula)                                                \
  struct name##_slope {                                                                            \
    double real;                                                                                   \
    template <typename C> __device__ C operator()(C a, C b) const {                                \
      const C p = C(real);                                                                         \
      return formula;                                                                              \
    }                                                                                              \
  };                                                                                               \
  static gp_status run_##name##_dx(gp_gpu *gpu, const gp_gpu_call *call) {                         \
    return gp_map_float_with<2>(gpu, name##_slope{call->op.attr->name##_dx.attribute}, call);      \
  }                                                                                                \
  const gp_gpu_kernel gp_gpu_##name##_dx = {run_##name##_dx, NULL};

#endif
