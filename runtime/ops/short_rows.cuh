/* ops/short_rows.cuh - rows of up to GP_SHORT_ROW elements: a warp works on a row, which stays in
 * its registers.
 *
 * A thread reads and writes pairs of neighbours, its two lanes; so a warp moves whole lines of the
 * cache, and all of a row is in flight at once. Blocks are (GP_WARP, GP_SHORT_BLOCK). */
#ifndef GP_OPS_SHORT_ROWS_CUH
#define GP_OPS_SHORT_ROWS_CUH

#include "device/cuda/kernel/lanes.cuh"

enum {
  GP_SHORT_ROW = 1024, /* 32 elements a thread: two such rows still fit its registers */
  GP_SHORT_BLOCK = 4   /* rows: small blocks end together with their rows */
};

/* Two neighbours by one access. */
template <typename T> struct alignas(2 * sizeof(T)) gp_pair { T at[2]; };

/* Tell whether the rows of n elements that begin at p can be read by pairs. */
template <typename T> static inline bool gp_is_paired(const void *p, int64_t n) {
  return n % 2 == 0 && ((uintptr_t)p & (2 * sizeof(T) - 1)) == 0;
}

/* For __launch_bounds__ of a kernel whose threads keep so many values: the number of blocks that an
 * SM's 64 Ki registers hold. Without it the compiler loads everything at once and leaves room for
 * half as many. f64 is slow in any case. */
template <typename T> static constexpr int gp_short_resident(int values) {
  return sizeof(T) == sizeof(double) ? 2 : 512 / (64 + values);
}
#define GP_SHORT_BOUNDS(T, values)                                                                 \
  __launch_bounds__(GP_WARP *GP_SHORT_BLOCK, gp_short_resident<T>(values))

static inline dim3 gp_short_grid(int64_t rows) {
  return dim3((unsigned)((rows + GP_SHORT_BLOCK - 1) / GP_SHORT_BLOCK));
}
static inline dim3 gp_short_block(void) { return dim3(GP_WARP, GP_SHORT_BLOCK); }

static __device__ inline int64_t gp_short_row(void) {
  return (int64_t)blockIdx.x * GP_SHORT_BLOCK + threadIdx.y;
}

/* Return the place in the row of this thread's element e. */
static __device__ inline int gp_lane_at(int e) {
  return e / 2 * GP_WARP_LANES + 2 * (int)threadIdx.x + e % 2;
}

/* Read a row; elements past its end read as `rest`. E: elements of a thread. */
template <typename T, int E>
static __device__ inline void gp_lanes_read(gp_compute<T> (&x)[E], const T *from, int n,
                                            bool paired, gp_compute<T> rest = 0) {
  if (paired) {
#pragma unroll
    for (int e = 0; e < E; e += 2) {
      const int j = gp_lane_at(e);
      x[e] = x[e + 1] = rest;
      if (j >= n) continue;
      const gp_pair<T> pair = *reinterpret_cast<const gp_pair<T> *>(from + j);
      x[e] = gp_load(pair.at[0]), x[e + 1] = gp_load(pair.at[1]);
    }
    return;
  }
#pragma unroll
  for (int e = 0; e < E; e++) x[e] = gp_lane_at(e) < n ? gp_load(from[gp_lane_at(e)]) : rest;
}

template <typename T, int E>
static __device__ inline void gp_lanes_write(T *to, const gp_compute<T> (&y)[E], int n,
                                             bool paired) {
#pragma unroll
  for (int e = 0; e < E; e += 2) {
    const int j = gp_lane_at(e);
    const gp_pair<T> pair = {{gp_store<T>(y[e]), gp_store<T>(y[e + 1])}};
    if (paired) {
      if (j < n) *reinterpret_cast<gp_pair<T> *>(to + j) = pair;
    } else {
      if (j < n) to[j] = pair.at[0];
      if (j + 1 < n) to[j + 1] = pair.at[1];
    }
  }
}

/* Add up what the threads hold, or take its maximum; elements past the end must be 0 or -inf. */
template <typename A, int E> static __device__ inline A gp_lanes_total(const A (&x)[E]) {
  A even = 0, odd = 0;
#pragma unroll
  for (int e = 0; e < E; e += 2) even = gp_plus(even, x[e]), odd = gp_plus(odd, x[e + 1]);
  return gp_lanes_sum(even, odd);
}

template <typename A, int E> static __device__ inline A gp_lanes_max(const A (&x)[E]) {
  A most = -INFINITY;
#pragma unroll
  for (int e = 0; e < E; e++) most = gp_larger(most, x[e]);
  return gp_warp_max(most);
}

/* Run the statement with E, the elements a thread needs for a short row of n; few sizes, since each
 * is a kernel of its own. 768 is GPT-2's. */
#define GP_BY_SHORT(n, statement)                                                                  \
  if constexpr (sizeof(T) == sizeof(double)) {                                                     \
    const int E = 32;                                                                              \
    statement;                                                                                     \
  } else if ((n) <= 256) {                                                                         \
    const int E = 8;                                                                               \
    statement;                                                                                     \
  } else if ((n) <= 768) {                                                                         \
    const int E = 24;                                                                              \
    statement;                                                                                     \
  } else {                                                                                         \
    const int E = 32;                                                                              \
    statement;                                                                                     \
  }

#endif
