/* tests/cuda/on_host/warp.h - barriers, shuffles and votes. A failure names the line of the
 * call. */
#ifndef GP_TESTS_CUDA_ON_HOST_WARP_H
#define GP_TESTS_CUDA_ON_HOST_WARP_H

#include "../fibers.h"

#include <string.h>

/* ---- the block ------------------------------------------------------------------------------ */

inline void __syncthreads(int line = __builtin_LINE()) { gp_host_barrier(false, line); }

inline int __syncthreads_count(int holds, int line = __builtin_LINE()) {
  return gp_host_barrier(holds != 0, line);
}

inline int __syncthreads_or(int holds, int line = __builtin_LINE()) {
  return gp_host_barrier(holds != 0, line) > 0;
}

inline int __syncthreads_and(int holds, int line = __builtin_LINE()) {
  return gp_host_barrier(holds == 0, line) == 0;
}

/* ---- the warp ------------------------------------------------------------------------------- */

inline void __syncwarp(unsigned mask = 0xffffffff, int line = __builtin_LINE()) {
  gp_host_meet(GP_HOST_SYNC, mask, 0, 0, line);
}

inline unsigned __ballot_sync(unsigned mask, int holds, int line = __builtin_LINE()) {
  return (unsigned)gp_host_meet(GP_HOST_BALLOT, mask, holds != 0, 0, line);
}

inline int __any_sync(unsigned mask, int holds, int line = __builtin_LINE()) {
  return __ballot_sync(mask, holds, line) != 0;
}

inline int __all_sync(unsigned mask, int holds, int line = __builtin_LINE()) {
  return __ballot_sync(mask, holds, line) == mask;
}

/* Returns the value that lane `source` brings. */
template <typename T> inline T gp_host_shuffle(unsigned mask, T value, int source, int line) {
  static_assert(sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8,
                "shuffles move 2, 4 or 8 bytes");
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof value);
  bits = gp_host_meet(GP_HOST_SHUFFLE, mask, bits, source, line);
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* Returns the first lane of the group of `width` lanes. */
inline int gp_host_group(int width) { return gp_host_now->lane & ~(width - 1); }

template <typename T>
inline T __shfl_sync(unsigned mask, T value, int lane, int width = 32,
                     int line = __builtin_LINE()) {
  return gp_host_shuffle(mask, value, gp_host_group(width) + (lane & (width - 1)), line);
}

/* Lanes without a partner in their group keep what they have. */
template <typename T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32,
                        int line = __builtin_LINE()) {
  const int self = gp_host_now->lane, lane = self - (int)delta;
  return gp_host_shuffle(mask, value, lane < gp_host_group(width) ? self : lane, line);
}

template <typename T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32,
                          int line = __builtin_LINE()) {
  const int self = gp_host_now->lane, lane = self + (int)delta;
  return gp_host_shuffle(mask, value, lane >= gp_host_group(width) + width ? self : lane, line);
}

template <typename T>
inline T __shfl_xor_sync(unsigned mask, T value, int flip, int width = 32,
                         int line = __builtin_LINE()) {
  const int self = gp_host_now->lane, lane = self ^ flip;
  return gp_host_shuffle(mask, value, lane >= gp_host_group(width) + width ? self : lane, line);
}

/* ---- reductions of integers, by shuffles ----------------------------------------------------- */

template <typename T, typename F>
inline T gp_host_reduce(unsigned mask, T value, F join, int line) {
  T all = T();
  bool first = true;
  for (int lane = 0; lane < 32; lane++) {
    if (!(mask >> lane & 1)) continue;
    const T one = gp_host_shuffle(mask, value, lane, line);
    all = first ? one : join(all, one);
    first = false;
  }
  return all;
}

#define GP_HOST_REDUCE(name, T, expression)                                                        \
  inline T name(unsigned mask, T value, int line = __builtin_LINE()) {                             \
    return gp_host_reduce(                                                                         \
        mask, value, [](T a, T b) -> T { return expression; }, line);                              \
  }
GP_HOST_REDUCE(__reduce_add_sync, unsigned, a + b)
GP_HOST_REDUCE(__reduce_min_sync, unsigned, a < b ? a : b)
GP_HOST_REDUCE(__reduce_max_sync, unsigned, a > b ? a : b)
GP_HOST_REDUCE(__reduce_min_sync, int, a < b ? a : b)
GP_HOST_REDUCE(__reduce_max_sync, int, a > b ? a : b)
GP_HOST_REDUCE(__reduce_and_sync, unsigned, a &b)
GP_HOST_REDUCE(__reduce_or_sync, unsigned, a | b)
GP_HOST_REDUCE(__reduce_xor_sync, unsigned, a ^ b)
#undef GP_HOST_REDUCE

inline int __reduce_add_sync(unsigned mask, int value, int line = __builtin_LINE()) {
  return (int)__reduce_add_sync(mask, (unsigned)value, line);
}

#endif
