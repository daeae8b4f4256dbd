/* device/cuda/kernel/divisor.cuh - numbers that kernels divide by without a division.
 *
 * The host works out a factor, and a kernel multiplies. GPUs have no instruction that divides
 * integers: 32 bits take twenty instructions, 64 bits a call of a hundred.
 *
 * Source: Granlund and Montgomery, "Division by invariant integers using multiplication" (1994),
 * figure 4.1. Its quotient is exact for all n below the bounds here, which keep high + n from
 * overflowing. */
#ifndef GP_DEVICE_CUDA_DIVISOR_CUH
#define GP_DEVICE_CUDA_DIVISOR_CUH

#include "device/cuda/kernel/device.cuh"

/* ---- 31 bits --------------------------------------------------------------------------------- */

struct gp_divisor {
  uint32_t by, factor, shift;
};

/* by: 0 (of an empty dim, where nothing is divided) or more. */
static inline gp_divisor gp_divisor_make(uint32_t by) {
  gp_divisor d = {by, 0, 0};
  if (by == 0) return d;
  while (d.shift < 31 && (UINT32_C(1) << d.shift) < by) d.shift++;
  const uint64_t above = (UINT64_C(1) << d.shift) - by;
  d.factor = (uint32_t)((above << 32) / by + 1);
  return d;
}

/* n / d for n < 2^31. */
static __device__ inline uint32_t gp_divide(uint32_t n, const gp_divisor &d) {
  const uint32_t high = (uint32_t)((uint64_t)n * d.factor >> 32);
  return (high + n) >> d.shift;
}

/* ---- 63 bits --------------------------------------------------------------------------------- */

struct gp_wide_divisor {
  int64_t by;
  uint64_t factor;
  uint32_t shift;
};

static inline gp_wide_divisor gp_wide_divisor_make(int64_t by) {
  __extension__ typedef unsigned __int128 wide;
  gp_wide_divisor d = {by, 0, 0};
  if (by <= 0) return d;
  while (d.shift < 63 && (UINT64_C(1) << d.shift) < (uint64_t)by) d.shift++;
  const uint64_t above = (UINT64_C(1) << d.shift) - (uint64_t)by;
  d.factor = (uint64_t)(((wide)above << 64) / (wide)by + 1);
  return d;
}

/* n / d for 0 <= n < 2^63. */
static __device__ inline int64_t gp_wide_divide(int64_t n, const gp_wide_divisor &d) {
  return (int64_t)((__umul64hi((uint64_t)n, d.factor) + (uint64_t)n) >> d.shift);
}

#endif
