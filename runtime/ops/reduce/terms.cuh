/* ops/reduce/terms.cuh - the types that elements are added in: shared by sums over lines and over
 * columns.
 *
 * Half types are added in f32, integers in 64 bits (modulo 2^64), as on the CPU. */
#ifndef GP_OPS_REDUCE_TERMS_CUH
#define GP_OPS_REDUCE_TERMS_CUH

#include "device/cuda/kernel/lanes.cuh"
#include "device/cuda/kernel/meta.cuh"

template <typename T> struct gp_sum_of { typedef gp_compute<T> type; };
template <> struct gp_sum_of<uint64_t> { typedef uint64_t type; };
template <> struct gp_sum_of<int32_t> { typedef uint64_t type; };
template <> struct gp_sum_of<uint8_t> { typedef uint64_t type; };

static __device__ inline uint64_t gp_load(uint64_t x) { return x; }
static __device__ inline uint64_t gp_load(int32_t x) { return (uint64_t)(int64_t)x; }
static __device__ inline uint64_t gp_load(uint8_t x) { return x; }

/* The dtype that sums are stored as between passes. */
static inline gp_dtype gp_sum_dtype(float) { return GP_F32; }
static inline gp_dtype gp_sum_dtype(double) { return GP_F64; }
static inline gp_dtype gp_sum_dtype(uint64_t) { return GP_I64; }

/* Return the bytes of the sum of elements of a dtype. */
static inline size_t gp_sum_bytes(gp_dtype dtype) {
  return dtype == GP_F32 || dtype == GP_BF16 || dtype == GP_F16 ? sizeof(float) : sizeof(double);
}

#endif
