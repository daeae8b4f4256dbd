/* ops/long_rows.cuh - rows longer than GP_SHORT_ROW: a block works on a row, each thread on 16
 * bytes at a time.
 *
 * A thread takes its row in groups of as many elements as 16 bytes hold. If the length is a
 * multiple of that, the elements of a group are neighbours; else (a vocabulary of 50257) they lie a
 * block's threads apart, so that a warp still reads neighbours. The choice depends on the length
 * alone, never on the address, and so do the sums: a value has the same bits wherever it lies in
 * memory. Rows that are padded to a multiple (graph/pad.c) are read like rows of such a length, and
 * what pads them does not count. A row that fits is kept in shared memory and read from the GPU's
 * memory once. */
#ifndef GP_OPS_LONG_ROWS_CUH
#define GP_OPS_LONG_ROWS_CUH

#include "device/cuda/kernel/lanes.cuh"

enum {
  /* Bytes that every GPU gives a block, and that leave it room for others. */
  GP_LONG_KEPT = 48 * 1024,
  GP_LONG_THREADS = 512 /* at most: four such blocks hide each other's barriers */
};

/* One row as the threads of a block see it. */
template <typename T> struct gp_long_row {
  T *data;
  gp_pack<T> *kept; /* shared copy; NULL where it does not fit */
  int64_t n;
  bool spread; /* elements of a group lie blockDim.x apart */
  bool packed; /* groups can be moved by one access */
};

/* ---- on the host --------------------------------------------------------------------------- */

/* A power of two: kernels shift where they would divide. */
static inline int gp_long_threads(int64_t n, size_t item) {
  const int64_t groups = n * (int64_t)item / 16;
  return groups <= 512 ? 128 : groups <= 2048 ? 256 : GP_LONG_THREADS;
}

/* Count the groups of a thread; the last one may be partly or wholly past the end. */
static inline int64_t gp_long_groups(int64_t n, size_t item, int threads) {
  const int64_t all = (int64_t)(16 / item) * threads;
  return (n + all - 1) / all;
}

/* Return the shared bytes that keep `rows` rows of n; 0 if they do not fit. */
static inline size_t gp_long_shared(int64_t n, size_t item, int rows) {
  const int threads = gp_long_threads(n, item);
  const int64_t bytes = gp_long_groups(n, item, threads) * threads * 16 * rows;
  return bytes <= GP_LONG_KEPT ? (size_t)bytes : 0;
}

/* ---- on the device ------------------------------------------------------------------------- */

template <typename T>
static __device__ inline gp_long_row<T> gp_long_row_of(const T *data, int64_t n, gp_pack<T> *kept) {
  const bool spread = n % gp_pack<T>::count != 0;
  return {const_cast<T *>(data), kept, n, spread, !spread && ((uintptr_t)data & 15) == 0};
}

/* The same for a row of n elements that is padded to `wide`. */
template <typename T>
static __device__ inline gp_long_row<T> gp_long_row_padded(const T *data, int64_t n, int64_t wide,
                                                           gp_pack<T> *kept) {
  gp_long_row<T> row = gp_long_row_of(data, wide, kept);
  row.n = n;
  return row;
}

/* Count the groups of each of this block's threads, as gp_long_groups does. */
template <typename T> static __device__ inline int gp_long_count(const gp_long_row<T> &row) {
  const int all = gp_pack<T>::count * (int)blockDim.x;
  return (int)((row.n + all - 1) >> (__ffs(all) - 1));
}

/* Return where another row of the same length is kept, behind this one. */
template <typename T> static __device__ inline gp_pack<T> *gp_long_next(const gp_long_row<T> &row) {
  return row.kept ? row.kept + gp_long_count(row) * blockDim.x : NULL;
}

/* Return the position of element k of this thread's group i; it may be past the end. */
template <typename T>
static __device__ inline int64_t gp_long_at(const gp_long_row<T> &row, int i, int k) {
  const int64_t count = gp_pack<T>::count;
  return row.spread ? (i * count + k) * blockDim.x + threadIdx.x
                    : ((int64_t)i * blockDim.x + threadIdx.x) * count + k;
}

/* Read group i; elements past the end read as `rest`. */
template <typename T>
static __device__ inline gp_pack<T> gp_long_read(const gp_long_row<T> &row, int i, T rest) {
  gp_pack<T> group;
  const int64_t first = gp_long_at(row, i, 0);
  if (row.packed && first < row.n) return *reinterpret_cast<const gp_pack<T> *>(row.data + first);
#pragma unroll
  for (int k = 0; k < gp_pack<T>::count; k++) {
    const int64_t at = gp_long_at(row, i, k);
    group.at[k] = at < row.n ? row.data[at] : rest;
  }
  return group;
}

/* Let elements past the end, read along with a group of a padded row, be `rest`. */
template <typename T>
static __device__ inline void gp_long_mask(const gp_long_row<T> &row, int i, gp_pack<T> *group,
                                           T rest) {
#pragma unroll
  for (int k = 0; k < gp_pack<T>::count; k++)
    if (gp_long_at(row, i, k) >= row.n) group->at[k] = rest;
}

/* Read a group for the first time, and keep it; later reads take it from there. A thread only reads
 * its own groups, so no barrier is needed. */
template <typename T>
static __device__ inline gp_pack<T> gp_long_first(const gp_long_row<T> &row, int i, T rest) {
  const gp_pack<T> group = gp_long_read(row, i, rest);
  if (row.kept) row.kept[i * blockDim.x + threadIdx.x] = group;
  return group;
}

template <typename T>
static __device__ inline gp_pack<T> gp_long_again(const gp_long_row<T> &row, int i, T rest) {
  return row.kept ? row.kept[i * blockDim.x + threadIdx.x] : gp_long_read(row, i, rest);
}

template <typename T>
static __device__ inline void gp_long_write(const gp_long_row<T> &row, int i,
                                            const gp_pack<T> &group) {
  const int64_t first = gp_long_at(row, i, 0);
  if (row.packed) {
    if (first < row.n) *reinterpret_cast<gp_pack<T> *>(row.data + first) = group;
    return;
  }
#pragma unroll
  for (int k = 0; k < gp_pack<T>::count; k++) {
    const int64_t at = gp_long_at(row, i, k);
    if (at < row.n) row.data[at] = group.at[k];
  }
}

/* ---- the largest and the sum of exponentials in one pass ------------------------------------ */

/* The sum of exp(x - top) over the elements so far; top is -inf at first. */
template <typename A> struct gp_online { A top, sum; };

/* Return exp(x - top); a top of -inf (all elements so far are -inf) must not make NaN of them
 * yet. */
template <typename T>
static __device__ inline gp_compute<T> gp_exp_below(gp_compute<T> x, gp_compute<T> top) {
  return gp_exp_of<T>(x - (top == -INFINITY ? 0 : top));
}

template <typename T>
static __device__ inline void gp_online_add(gp_online<gp_compute<T>> *o, const gp_pack<T> &group) {
  gp_compute<T> top = o->top;
#pragma unroll
  for (int k = 0; k < gp_pack<T>::count; k++) top = gp_larger(top, gp_load(group.at[k]));
  if (top > o->top) o->sum *= gp_exp_of<T>(o->top - top), o->top = top;
#pragma unroll
  for (int k = 0; k < gp_pack<T>::count; k++)
    o->sum = gp_plus(o->sum, gp_exp_below<T>(gp_load(group.at[k]), top));
}

/* Join the sums of a block's threads; a row of nothing but -inf has no sum (NaN), as on the CPU. */
template <typename T>
static __device__ inline gp_online<gp_compute<T>> gp_online_join(gp_online<gp_compute<T>> o) {
  const gp_compute<T> top = gp_block_max(o.top);
  const gp_compute<T> sum = o.top == top ? o.sum : o.sum * gp_exp_of<T>(o.top - top);
  const gp_compute<T> all = gp_block_sum(sum);
  return {top, top == -INFINITY ? (gp_compute<T>)NAN : all};
}

#endif
