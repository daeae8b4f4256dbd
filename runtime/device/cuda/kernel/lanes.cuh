/* device/cuda/kernel/lanes.cuh - sums and maxima over rows on a GPU, in an order that only the
 * row's length decides.
 *
 * Thread t of a warp has lanes 2 t and 2 t + 1 of the 64 in ops/math/lanes.h, so sums have the same
 * order (and the same bits) as on the CPU. Sums add with __fadd_rn, which the compiler never
 * contracts with a product. The loops over rows are in ops/short_rows.cuh (one warp per row) and
 * ops/long_rows.cuh (one block per row). */
#ifndef GP_DEVICE_CUDA_LANES_CUH
#define GP_DEVICE_CUDA_LANES_CUH

#include <math.h>

#include "device/cuda/kernel/device.cuh"

enum {
  GP_WARP = 32,
  GP_WARP_LANES = 64 /* two per thread */
};

/* ---- exact steps --------------------------------------------------------------------------- */

static __device__ inline float gp_plus(float a, float b) { return __fadd_rn(a, b); }
static __device__ inline double gp_plus(double a, double b) { return __dadd_rn(a, b); }
static __device__ inline uint64_t gp_plus(uint64_t a, uint64_t b) { return a + b; }

/* The larger one; a NaN in b is ignored. */
template <typename A> static __device__ inline A gp_larger(A a, A b) { return b > a ? b : a; }

/* exp, as exact as the elements' type: for halves 2^x is one instruction and has enough digits. */
template <typename T> static __device__ inline gp_compute<T> gp_exp_of(gp_compute<T> x) {
  return exp2f(x * 1.4426950408889634f);
}
template <> __device__ inline float gp_exp_of<float>(float x) { return expf(x); }
/* Functions of f64 are long and rare, so kernels call one copy. */
template <> GP_CALLED double gp_exp_of<double>(double x) { return exp(x); }

static __device__ inline float gp_log(float x) { return logf(x); }
static GP_CALLED double gp_log(double x) { return log(x); }
static __device__ inline float gp_sqrt(float x) { return sqrtf(x); }
static __device__ inline double gp_sqrt(double x) { return sqrt(x); }

/* ---- over the threads of a warp ------------------------------------------------------------ */

/* Sum over a warp; every thread gets the result. Both threads of a step add the same two
 * numbers. */
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

/* The tree of ops/math/lanes.h: steps 32, 16, .. 2 between threads, step 1 within each. */
template <typename A> static __device__ inline A gp_lanes_sum(A even, A odd) {
  even = gp_warp_sum(even);
  return gp_plus(even, gp_warp_sum(odd));
}

/* ---- over the threads of a block (of one dimension, whole warps) ---------------------------- */

template <typename A> static __device__ inline A gp_block_sum(A x) {
  __shared__ A part[GP_WARP];
  const int warp = threadIdx.x / GP_WARP, warps = blockDim.x / GP_WARP;
  x = gp_warp_sum(x);
  __syncthreads(); /* threads may still read the parts of an earlier sum */
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

#endif
