/* ops/arithmetic/bits.cu - operations on the bits of integers on a GPU; see bits.c. */
#include "ops/elementwise/map.cuh"

#define GP_GPU_BITS(op, expr)                                                                      \
  struct op##_bits {                                                                               \
    __device__ int64_t operator()(int64_t a, int64_t b) const { return expr; }                     \
  };                                                                                               \
  static gp_status op##_gpu(gp_gpu *gpu, const gp_gpu_call *call) {                                \
    return gp_map_same<2, int64_t>(gpu, op##_bits(), call);                                        \
  }                                                                                                \
  const gp_gpu_kernel gp_gpu_##op = {op##_gpu, NULL};

GP_GPU_BITS(bitwise_and, a &b)
GP_GPU_BITS(bitwise_or, a | b)
GP_GPU_BITS(bitwise_xor, a ^ b)
GP_GPU_BITS(bitwise_left_shift, b<0 || b> 63 ? 0 : int64_t(uint64_t(a) << b))
GP_GPU_BITS(bitwise_right_shift, a >> (b < 0 || b > 63 ? 63 : b))
