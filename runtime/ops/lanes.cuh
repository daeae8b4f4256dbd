/* ops/lanes.cuh - sums and maxima over rows on a GPU, in orders that the length alone decides.
 *
 * A row of up to GP_SHORT_ROW elements is a warp's, in registers: thread t has lanes 2 t and 2 t + 1 of
 * the 64 of ops/lanes.h, so sums have the very order (and the bits) that they have on the CPU. A longer
 * row is a block's, in groups of 16 bytes a thread; see ops/long_rows.cuh. Sums add by __fadd_rn, which
 * the compiler never contracts with a product. */
#ifndef GP_OPS_LANES_CUH
#define GP_OPS_LANES_CUH

#include <math.h>

#include "device/cuda/device.cuh"

enum {
  GP_WARP = 32,
  GP_WARP_LANES = 64,  /* two a thread */
  GP_SHORT_ROW = 1024, /* 32 elements a thread: two such rows still fit its registers */
  GP_SHORT_BLOCK = 4   /* rows, one a warp: small blocks end together with their rows */
};

/* ---- exact steps --------------------------------------------------------------------------- */

static __device__ inline float gp_plus(float a, float b) { return __fadd_rn(a, b); }
static __device__ inline double gp_plus(double a, double b) { return __dadd_rn(a, b); }
static __device__ inline uint64_t gp_plus(uint64_t a, uint64_t b) { return a + b; }

/* The larger one; a NaN in b is passed over. */
template <typename A> static __device__ inline A gp_larger(A a, A b) { return b > a ? b : a; }

/* exp as exact as the elements are stored: 2^x is one instruction and has more digits than a half. */
template <typename T> static __device__ inline gp_compute<T> gp_exp_of(gp_compute<T> x) {
  return exp2f(x * 1.4426950408889634f);
}
template <> __device__ inline float gp_exp_of<float>(float x) { return expf(x); }
template <> __device__ inline double gp_exp_of<double>(double x) { return exp(x); }

static __device__ inline float gp_log(float x) { return logf(x); }
static __device__ inline double gp_log(double x) { return log(x); }
static __device__ inline float gp_sqrt(float x) { return sqrtf(x); }
static __device__ inline double gp_sqrt(double x) { return sqrt(x); }

/* ---- over the threads of a warp ------------------------------------------------------------ */

/* Every thread gets the result; both sides of a step add the same two numbers. */
template <typename A> static __device__ inline A gp_warp_sum(A x) {
#pragma unroll
  for (int step = GP_WARP / 2; step > 0; step /= 2)
    x = gp_plus(x, __shfl_xor_sync(0xffffffffu, x, step));
  return x;
}

template <typename A> static __device__ inline A gp_warp_max(A x) {
#pragma unroll
  for (int step = GP_WARP / 2; step > 0; step /= 2)
    x = gp_larger(x, __shfl_xor_sync(0xffffffffu, x, step));
  return x;
}

/* The tree of ops/lanes.h: 32, 16, .. 2 between threads, 1 within each. */
template <typename A> static __device__ inline A gp_lanes_sum(A even, A odd) {
  even = gp_warp_sum(even);
  return gp_plus(even, gp_warp_sum(odd));
}

/* ---- over the threads of a block (of one dimension, whole warps) ---------------------------- */

template <typename A> static __device__ inline A gp_block_sum(A x) {
  __shared__ A part[GP_WARP];
  const int warp = threadIdx.x / GP_WARP, warps = blockDim.x / GP_WARP;
  x = gp_warp_sum(x);
  __syncthreads(); /* who still reads the parts of an earlier sum */
  if (threadIdx.x % GP_WARP == 0) part[warp] = x;
  __syncthreads();
  A sum = part[0];
  for (int w = 1; w < warps; w++) sum = gp_plus(sum, part[w]);
  return sum;
}

template <typename A> static __device__ inline A gp_block_max(A x) {
  __shared__ A part[GP_WARP];
  const int warp = threadIdx.x / GP_WARP, warps = blockDim.x / GP_WARP;
  x = gp_warp_max(x);
  __syncthreads();
  if (threadIdx.x % GP_WARP == 0) part[warp] = x;
  __syncthreads();
  A most = part[0];
  for (int w = 1; w < warps; w++) most = gp_larger(most, part[w]);
  return most;
}

/* ---- short rows: one warp each, blocks of (GP_WARP, GP_SHORT_BLOCK) -------------------------- */

/* Two neighbours by one access. */
template <typename T> struct alignas(2 * sizeof(T)) gp_pair { T at[2]; };

/* Can the rows of n elements that begin at p be read by pairs? */
template <typename T> static inline bool gp_is_paired(const void *p, int64_t n) {
  return n % 2 == 0 && ((uintptr_t)p & (2 * sizeof(T) - 1)) == 0;
}

/* For __launch_bounds__ of a kernel whose threads keep so many values: blocks that an SM's 64 Ki registers
 * hold. Left alone the compiler loads everything at once and leaves room for half as many. f64 is slow
 * whatever is done. */
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

/* The element of the row that is number e of this thread. */
static __device__ inline int gp_lane_at(int e) {
  return e / 2 * GP_WARP_LANES + 2 * (int)threadIdx.x + e % 2;
}

/* Read a row; elements past its end are `rest`. E: how many a thread has. */
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

/* Sums and maxima of what the threads hold; elements past the end must be 0 or -inf. */
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

/* Run the statement with E, the elements a thread needs for a short row of n; few sizes, since each is
 * a kernel of its own. 768 is GPT-2's. */
#define GP_BY_SHORT(n, statement)                                                                  \
  if ((n) <= 256) {                                                                                \
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
