/* ops/function/rounding.cu - absolute value, sign and the whole numbers around x on a GPU;
 * see rounding.c. */
#include "ops/elementwise/unary.cuh"

struct abs_of {
  template <typename C> __device__ C operator()(C a) const { return fabs(a); }
  /* Unsigned: the least integer, whose absolute value does not exist, stays what it is. */
  __device__ uint64_t operator()(uint64_t a) const { return a >> 63 ? 0 - a : a; }
  __device__ uint32_t operator()(uint32_t a) const { return a >> 31 ? 0 - a : a; }
};

const gp_gpu_kernel gp_gpu_abs = {gp_map_number<1, abs_of>, NULL};
GP_GPU_SLOPE(abs, b > C(0) ? a : b < C(0) ? -a : C(0))

struct sign_of {
  template <typename C> __device__ C operator()(C a) const { return C((a > C(0)) - (a < C(0))); }
};

const gp_gpu_kernel gp_gpu_sign = {gp_map_signed<1, sign_of>, NULL};

GP_GPU_UNARY(floor, floor(a))
GP_GPU_UNARY(ceil, ceil(a))
GP_GPU_UNARY(round, rint(a))
