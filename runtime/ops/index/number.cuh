/* ops/index/number.cuh - numbers of any dtype, in the type that scans compute them in.
 *
 * Halves are added and multiplied in f32, integers modulo 2^N as unsigned ones, as on the CPU. */
#ifndef GP_OPS_INDEX_NUMBER_CUH
#define GP_OPS_INDEX_NUMBER_CUH

#include "device/cuda/kernel/lanes.cuh"
#include "device/cuda/kernel/meta.cuh"
#include "ops/axis.h"

template <typename T> struct gp_number {
  typedef gp_compute<T> wide;
  static __device__ inline wide load(T x) { return gp_load(x); }
  static __device__ inline T store(wide x) { return gp_store<T>(x); }
};
template <> struct gp_number<int64_t> {
  typedef uint64_t wide;
  static __device__ inline wide load(int64_t x) { return (wide)x; }
  static __device__ inline int64_t store(wide x) { return (int64_t)x; }
};
template <> struct gp_number<int32_t> {
  typedef uint32_t wide;
  static __device__ inline wide load(int32_t x) { return (wide)x; }
  static __device__ inline int32_t store(wide x) { return (int32_t)x; }
};

/* clang-format off */
#define GP_BY_NUMBER(dtype, statement)                                                             \
  switch (dtype) {                                                                                 \
  case GP_I64: { typedef int64_t T; statement; } break;                                            \
  case GP_I32: { typedef int32_t T; statement; } break;                                            \
  default: GP_BY_FLOAT(dtype, statement)                                                           \
  }
/* clang-format on */

enum {
  GP_LINE_THREADS = 256,
  GP_LINE_WARPS = GP_LINE_THREADS / GP_WARP,
  /* With so many neighbouring lines or more, each has a thread: a warp then reads memory in
   * order. */
  GP_LINE_NEIGHBOURS = 16
};

/* Count the blocks for so many lines: one thread or one warp each. */
static inline dim3 gp_line_blocks(const gp_axis *axis) {
  const int64_t lines = axis->outer * axis->inner;
  const int64_t each = axis->inner >= GP_LINE_NEIGHBOURS ? GP_LINE_THREADS : GP_LINE_WARPS;
  return dim3((unsigned)((lines + each - 1) / each));
}

#endif
