/* ops/attention/flash_tile.cuh - squares of values in shared memory and the products of a block.
 *
 * A block has (N / 4)^2 threads for tiles of N x N. A thread holds 4 x 4 values of a product in
 * registers: rows y + i N / 4, and columns x + j N / 4 of scores, or 4 x .. 4 x + 3 of outputs. So
 * each read of shared memory is 16 bytes, without bank conflicts, and feeds 16 multiplications. All
 * sums run in ascending order. */
#ifndef GP_OPS_ATTENTION_FLASH_TILE_CUH
#define GP_OPS_ATTENTION_FLASH_TILE_CUH

#include "device/cuda/attention.h"
#include "device/cuda/kernel/device.cuh"

enum { STEP = 4 };

/* ---- elements ------------------------------------------------------------------------------ */

/* A half whose dtype is told at run time. Halves come to these kernels where heads are wide, which
 * is rare: bf16 and f16 share one copy of each. */
struct some_half {
  uint16_t bits;
};

template <typename T> static __device__ inline gp_compute<T> element_load(T x, gp_dtype) {
  return gp_load(x);
}
static __device__ inline float element_load(some_half x, gp_dtype dtype) {
  if (dtype == GP_BF16) return gp_load(__ushort_as_bfloat16(x.bits));
  return gp_load(__ushort_as_half(x.bits));
}

template <typename T>
static __device__ inline void element_store(T *to, gp_compute<T> x, gp_dtype) {
  *to = gp_store<T>(x);
}
static __device__ inline void element_store(some_half *to, float x, gp_dtype dtype) {
  if (dtype == GP_BF16)
    *reinterpret_cast<gp_bf16 *>(to) = gp_store<gp_bf16>(x);
  else
    *reinterpret_cast<gp_f16 *>(to) = gp_store<gp_f16>(x);
}

/* Run the statement with T as the element type of a dtype. */
#define GP_BY_ELEMENT(dtype, statement)                                                            \
  if (dtype == GP_F32) {                                                                           \
    typedef float T;                                                                               \
    statement;                                                                                     \
  } else if (dtype == GP_F64) {                                                                    \
    typedef double T;                                                                              \
    statement;                                                                                     \
  } else {                                                                                         \
    typedef some_half T;                                                                           \
    statement;                                                                                     \
  }

/* ---- tiles --------------------------------------------------------------------------------- */

/* Rows of a tile: as many as fit the registers and shared memory of sm_80 twice. */
template <typename T> struct side_of { static const int rows = 64; };
template <> struct side_of<double> { static const int rows = 32; };

/* Blocks that a multiprocessor must hold at least, which bounds the registers: two hide each
 * other's waits for memory, unless a thread has too many outputs for that. outputs: tiles of
 * them. */
template <typename T> static constexpr int resident(int outputs) { return outputs <= 2 ? 2 : 1; }
template <> constexpr int resident<double>(int) { return 4; }
/* The most tiles of columns that a kernel makes at once; wider heads are cut into groups of them.
 * Only f32 has kernels for fewer as well: narrow heads of halves go to the tensor cores, and f64 is
 * rare. The compiler is spared the others. */
template <typename T> static constexpr int most_columns() { return sizeof(T) == 8 ? 2 : 4; }
template <typename T> static constexpr bool has_fewer() { return sizeof(T) == 4; }

template <typename T> static constexpr int threads_of() {
  return (side_of<T>::rows / STEP) * (side_of<T>::rows / STEP);
}

/* Rows lie 4 elements further apart than their length, against bank conflicts. */
template <typename C, int N> struct alignas(16) tile { C at[N][N + STEP]; };

template <typename C> struct alignas(16) quad { C at[STEP]; };

template <typename C> static __device__ inline quad<C> quad_at(const C *p) {
  return *reinterpret_cast<const quad<C> *>(p);
}

/* Where a thread works. */
template <int N> struct place {
  static const int span = N / STEP;
  int x, y;
  __device__ place() : x(threadIdx.x % span), y(threadIdx.x / span) {}
};

/* ---- reading ------------------------------------------------------------------------------- */

/* A head of a value [T, D] that can be read. packed: rows may be read 16 bytes at a time. */
template <typename T> struct matrix {
  T *at;
  int64_t row, column, rows, width;
  bool packed;
  gp_dtype dtype; /* of some_half */
};

template <typename T> static __device__ inline bool is_packed(const matrix<T> &m) {
  const int64_t count = gp_pack<T>::count;
  return m.column == 1 && m.row % count == 0 && m.width % count == 0 && ((uintptr_t)m.at & 15) == 0;
}

template <typename T>
static __device__ inline matrix<T> head_of(const gp_attention_value &v, int64_t b, int64_t h,
                                           int64_t rows, int64_t width) {
  matrix<T> m = {
      (T *)v.data + b * v.batch + h * v.head, v.row, v.column, rows, width, false, GP_F32};
  m.packed = is_packed(m);
  return m;
}

/* The same of one of the values with the attention's dtype and width. */
template <typename T>
static __device__ inline matrix<T> value_of(const gp_attention &a, const gp_attention_value &v,
                                            int64_t b, int64_t h, int64_t rows) {
  matrix<T> m = head_of<T>(v, b, h, rows, a.width);
  m.dtype = a.dtype;
  return m;
}

template <typename T, int N>
static __device__ void load_packs(tile<gp_compute<T>, N> &to, const matrix<T> &from, int64_t row,
                                  int64_t column) {
  const int count = gp_pack<T>::count, packs = N / count, threads = (N / STEP) * (N / STEP);
  for (int i = threadIdx.x; i < N * packs; i += threads) {
    const int r = i / packs, c = i % packs * count;
    gp_pack<T> pack = {};
    if (row + r < from.rows && column + c < from.width)
      pack = *reinterpret_cast<const gp_pack<T> *>(from.at + (row + r) * from.row + column + c);
#pragma unroll
    for (int e = 0; e < count; e++) to.at[r][c + e] = element_load(pack.at[e], from.dtype);
  }
}

template <typename T, int N>
static __device__ void load_elements(tile<gp_compute<T>, N> &to, const matrix<T> &from, int64_t row,
                                     int64_t column) {
  const int threads = (N / STEP) * (N / STEP);
#pragma unroll 2
  for (int i = threadIdx.x; i < N * N; i += threads) {
    const int r = i / N, c = i % N;
    const bool inside = row + r < from.rows && column + c < from.width;
    const T *at = from.at + (row + r) * from.row + (column + c) * from.column;
    to.at[r][c] = inside ? element_load(*at, from.dtype) : gp_compute<T>(0);
  }
}

/* Load the square that begins at (row, column); zeros outside of the matrix. */
template <typename T, int N>
static __device__ void load(tile<gp_compute<T>, N> &to, const matrix<T> &from, int64_t row,
                            int64_t column) {
  if (from.packed)
    load_packs<T, N>(to, from, row, column);
  else
    load_elements<T, N>(to, from, row, column);
}

/* ---- products ------------------------------------------------------------------------------ */

/* s += a b^T */
template <typename C, int N>
static __device__ void add_outer(C s[STEP][STEP], const tile<C, N> &a, const tile<C, N> &b) {
  const place<N> at;
#pragma unroll 2
  for (int d = 0; d < N; d += STEP) {
    quad<C> left[STEP], right[STEP];
#pragma unroll
    for (int i = 0; i < STEP; i++) {
      left[i] = quad_at(&a.at[at.y + i * place<N>::span][d]);
      right[i] = quad_at(&b.at[at.x + i * place<N>::span][d]);
    }
#pragma unroll
    for (int e = 0; e < STEP; e++)
#pragma unroll
      for (int i = 0; i < STEP; i++)
#pragma unroll
        for (int j = 0; j < STEP; j++) s[i][j] += left[i].at[e] * right[j].at[e];
  }
}

/* o += p b */
template <typename C, int N>
static __device__ void add_product(C o[STEP][STEP], const tile<C, N> &p, const tile<C, N> &b) {
  const place<N> at;
#pragma unroll 2
  for (int k = 0; k < N; k += STEP) {
    quad<C> left[STEP], right[STEP];
#pragma unroll
    for (int i = 0; i < STEP; i++) {
      left[i] = quad_at(&p.at[at.y + i * place<N>::span][k]);
      right[i] = quad_at(&b.at[k + i][STEP * at.x]);
    }
#pragma unroll
    for (int e = 0; e < STEP; e++)
#pragma unroll
      for (int i = 0; i < STEP; i++)
#pragma unroll
        for (int j = 0; j < STEP; j++) o[i][j] += left[i].at[e] * right[e].at[j];
  }
}

/* Put the scores that a thread holds where all threads can read them. */
template <typename C, int N> static __device__ void put(tile<C, N> &to, const C s[STEP][STEP]) {
  const place<N> at;
  const int span = place<N>::span;
#pragma unroll
  for (int i = 0; i < STEP; i++)
#pragma unroll
    for (int j = 0; j < STEP; j++) to.at[at.y + i * span][at.x + j * span] = s[i][j];
}

/* Write a square of outputs, as far as it lies inside of the matrix. */
template <typename T, int N>
static __device__ void write(const matrix<T> &to, int64_t row, int64_t column,
                             const gp_compute<T> o[STEP][STEP]) {
  const place<N> at;
#pragma unroll
  for (int i = 0; i < STEP; i++)
#pragma unroll
    for (int j = 0; j < STEP; j++) {
      const int64_t r = row + at.y + i * place<N>::span, c = column + STEP * at.x + j;
      if (r < to.rows && c < to.width)
        element_store(&to.at[r * to.row + c * to.column], o[i][j], to.dtype);
    }
}

/* ---- the tiles of a block -------------------------------------------------------------------- */

template <typename C, int N> struct tiles { tile<C, N> left, right, scores; };

/* Compute s = a b^T of rows from `row` of a and from `other` of b, over all of the width. At the
 * end the tiles are free to be written. A left operand of one tile is read once: if `reload` is
 * false it is there already. */
template <typename T, int N>
static __device__ void outer(gp_compute<T> s[STEP][STEP], tiles<gp_compute<T>, N> &t,
                             const matrix<T> &a, int64_t row, const matrix<T> &b, int64_t other,
                             bool reload) {
  for (int i = 0; i < STEP * STEP; i++) s[i / STEP][i % STEP] = 0;
  for (int64_t d = 0; d < a.width; d += N) {
    if (reload || a.width > N) load<T, N>(t.left, a, row, d);
    load<T, N>(t.right, b, other, d);
    __syncthreads();
    add_outer(s, t.left, t.right);
    __syncthreads();
  }
}

#endif
