/* ops/reduce/extreme.cuh - the largest element along a dim, shared by max.cu and argmax.cu; see
 * extreme.c.
 *
 * NaN counts as larger than everything, and of equal elements the first one counts. So "larger" is
 * an order in which no two elements are equal, and any split among threads finds the same element.
 * A block searches `wide` neighbouring results with `deep` threads each; if results have no
 * neighbours, all its threads search a line. */
#ifndef GP_OPS_REDUCE_EXTREME_CUH
#define GP_OPS_REDUCE_EXTREME_CUH

#include "ops/axis.h"
#include "device/cuda/kernel/meta.cuh"
#include "ops/reduce/terms.cuh"

enum { GP_EXTREME_THREADS = 256 };

/* Integers are compared as they are, a half as the float that it stands for. */
template <typename T> static __device__ inline gp_compute<T> gp_comparable(T x) {
  return gp_load(x);
}
static __device__ inline int64_t gp_comparable(int64_t x) { return x; }
static __device__ inline int32_t gp_comparable(int32_t x) { return x; }
static __device__ inline uint8_t gp_comparable(uint8_t x) { return x; }

/* An element and its position; position -1: none found yet. */
template <typename T> struct gp_found {
  T value;
  int64_t position;
};

template <typename T>
static __device__ inline bool gp_is_better(const gp_found<T> &b, const gp_found<T> &a) {
  if (a.position < 0 || b.position < 0) return b.position >= 0;
  const auto x = gp_comparable(a.value), y = gp_comparable(b.value);
  const bool x_nan = x != x, y_nan = y != y;
  if (x_nan != y_nan) return y_nan;
  if (!x_nan && x != y) return y > x;
  return b.position < a.position;
}

template <typename T> struct gp_search {
  const T *x;
  T *values; /* NULL: not needed */
  int64_t *positions;
  gp_axis axis;
  int64_t tiles; /* blocks per outer index */
};

/* Find the best of this thread's elements, which are every deep-th of the column. */
template <typename T>
static __device__ gp_found<T> gp_search_column(const gp_search<T> &s, int64_t outer,
                                               int64_t column) {
  const T *x = s.x + outer * s.axis.size * s.axis.inner + column;
  gp_found<T> best = {T(), -1};
#pragma unroll 4
  for (int64_t i = threadIdx.y; i < s.axis.size; i += blockDim.y) {
    const gp_found<T> next = {x[i * s.axis.inner], i};
    if (gp_is_better(next, best)) best = next;
  }
  return best;
}

template <typename T> static __global__ void gp_search_kernel(gp_search<T> s) {
  __shared__ gp_found<T> found[GP_EXTREME_THREADS];
  const int64_t outer = blockIdx.x / s.tiles;
  const int64_t column = blockIdx.x % s.tiles * blockDim.x + threadIdx.x;
  const int me = threadIdx.y * blockDim.x + threadIdx.x;
  gp_found<T> best = {T(), -1};
  if (column < s.axis.inner) best = gp_search_column(s, outer, column);
  found[me] = best;
  for (int deep = blockDim.y / 2; deep > 0; deep /= 2) {
    __syncthreads();
    if ((int)threadIdx.y >= deep) continue;
    const gp_found<T> other = found[me + deep * blockDim.x];
    if (gp_is_better(other, found[me])) found[me] = other;
  }
  if (threadIdx.y > 0 || column >= s.axis.inner) return;
  const int64_t result = outer * s.axis.inner + column;
  s.positions[result] = found[me].position + 1;
  if (s.values) s.values[result] = found[me].value;
}

template <typename T>
static gp_status gp_search_launch(gp_gpu *gpu, const gp_call *call, void *values, void *positions) {
  const gp_axis axis = gp_axis_of(&call->in[0].meta->shape, call->attr->max.dim);
  int wide = 1, deep = 1;
  while (wide < 32 && wide < axis.inner) wide *= 2;
  while (wide * deep < GP_EXTREME_THREADS && (wide * deep < 32 || deep < axis.size)) deep *= 2;
  const int64_t tiles = (axis.inner + wide - 1) / wide, blocks = axis.outer * tiles;
  const gp_search<T> s = {(const T *)call->in[0].data, (T *)values, (int64_t *)positions, axis,
                          tiles};
  if (blocks == 0) return GP_OK;
  return GP_LAUNCH(gpu, gp_search_kernel<T>, dim3((unsigned)blocks), dim3(wide, deep), 0, s);
}

/* Write the positions (from 1), and the values unless NULL. */
static inline gp_status gp_search_run(gp_gpu *gpu, const gp_call *call, void *values,
                                      void *positions) {
  const gp_dtype dtype = call->in[0].meta->dtype;
  switch (dtype) {
  case GP_I64: return gp_search_launch<int64_t>(gpu, call, values, positions);
  case GP_I32: return gp_search_launch<int32_t>(gpu, call, values, positions);
  case GP_U8:
  case GP_BOOL: return gp_search_launch<uint8_t>(gpu, call, values, positions);
  default: GP_BY_FLOAT(dtype, return gp_search_launch<T>(gpu, call, values, positions));
  }
  return GP_OK;
}

#endif
