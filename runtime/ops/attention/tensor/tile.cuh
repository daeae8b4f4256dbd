/* ops/attention/tensor/tile.cuh - tiles of halves in shared memory, and products of them by tensor
 * cores.
 *
 * A block has four warps and works on the scores of 64 rows. Each warp has 16 of the rows and as
 * many columns as the tile that the block walks over has rows. The scores stay in the registers
 * that products leave them in (mma.cuh): they become halves there and are the left operand of the
 * next product.
 *
 * The next tile is on its way while the block works on this one: there are two of each, and one
 * barrier for each step of the walk. Tiles have all of the width, filled up with zeros to D. Sums
 * run in ascending order. */
#ifndef GP_OPS_ATTENTION_TENSOR_TILE_CUH
#define GP_OPS_ATTENTION_TENSOR_TILE_CUH

#include <string.h>

#include "device/cuda/kernel/mma.cuh"
#include "ops/attention/flash_scores.cuh"

enum { SIDE = 64, WARPS = 4, LANES = 32, THREADS = WARPS * LANES, STRIP = SIDE / WARPS };

/* Rows of the tile that one step of a walk brings. Numbers of rows are below 2^30
 * (gp_tensor_takes). */
template <int D> struct keys_of { static const int at_once = D <= 64 ? 64 : 32; }; /* forward */
enum { OTHERS = 32 }; /* backward: a lane has two strips of scores */

/* Rows lie 16 bytes further apart than their length: the eight that a warp reads at once lie in
 * different banks. */
template <typename T, int ROWS, int D> struct alignas(16) half_tile { T at[ROWS][D + 8]; };

/* Scores of a warp: 16 rows, and N / 8 times 8 columns. */
template <int N> using strip = float[N / 8][4];

/* Return the row and the column, in its block's tile, of element e of a lane's c-th 8 columns. */
static __device__ inline int row_of(int e) {
  return threadIdx.x / LANES * STRIP + threadIdx.x % LANES / 4 + e / 2 * 8;
}
static __device__ inline int column_of(int c, int e) { return 8 * c + threadIdx.x % 4 * 2 + e % 2; }
/* Return the first of the warp's rows. */
static __device__ inline int first_row() { return threadIdx.x / LANES * STRIP; }

/* A head of the queries. Addresses are computed from the kernel's argument where they are used:
 * those that live through a walk cost registers. */
struct head_at {
  int batch, head;
};

/* ---- reading and writing ------------------------------------------------------------------- */

template <typename T>
static __device__ inline gp_pack<T> pack_at(const matrix<T> &from, int64_t row, int64_t column) {
  gp_pack<T> pack = {};
  if (row >= from.rows || column >= from.width) return pack;
  const T *at = from.at + row * from.row + column * from.column;
  for (int e = 0; e < gp_pack<T>::count && column + e < from.width; e++)
    pack.at[e] = at[e * from.column];
  return pack;
}

/* Begin to copy ROWS rows from `row` on, with zeros outside of the matrix. They are there after
 * gp_copies_wait and a barrier. Rows that are not packed are copied at once. */
template <typename T, int ROWS, int D>
static __device__ inline void fetch_rows(half_tile<T, ROWS, D> &to, const matrix<T> &from,
                                         int row) {
  const int count = gp_pack<T>::count, packs = D / count, step = THREADS / packs;
  const int first = threadIdx.x / packs, column = threadIdx.x % packs * count;
  const int left = column < (int)from.width ? (int)from.rows - row : 0; /* rows that exist */
  if (from.packed) {
    const T *at = from.at + (int64_t)(row + first) * from.row + column;
#pragma unroll
    for (int r = first; r < ROWS; r += step, at += step * from.row)
      gp_copy_async<16>(&to.at[r][column], r < left ? at : from.at, r < left);
  } else {
#pragma unroll 1
    for (int r = first; r < ROWS; r += step)
      *reinterpret_cast<gp_pack<T> *>(&to.at[r][column]) = pack_at(from, row + r, column);
  }
}

/* Fetch the keys and values that a head attends to. */
template <typename T, int ROWS, int D>
static __device__ inline void fetch_keys(const gp_attention &a, head_at at,
                                         half_tile<T, ROWS, D> &k, half_tile<T, ROWS, D> &v,
                                         int row) {
  const int group = at.head / (int)sharers(a);
  fetch_rows(k, head_of<T>(a.k, at.batch, group, a.keys, a.width), row);
  fetch_rows(v, head_of<T>(a.v, at.batch, group, a.keys, a.width), row);
}

/* Begin to copy N numbers from `row` on, with zeros past the last one. */
template <int N>
static __device__ inline void fetch_numbers(float to[N], const matrix<float> &from, int row,
                                            int thread) {
  if (thread < 0 || thread >= N) return;
  const bool there = row + thread < (int)from.rows;
  gp_copy_async<4>(&to[thread], from.at + (there ? (row + thread) * from.row : 0), there);
}

/* Pack two halves into a register. */
template <typename T> static __device__ inline uint32_t two_halves(float low, float high) {
  const T pair[2] = {gp_store<T>(low), gp_store<T>(high)};
  uint32_t bits;
  memcpy(&bits, pair, sizeof bits);
  return bits;
}

/* Write a strip of outputs, those of rows from `row` on, times a factor for each of the
 * lane's two rows. */
template <typename T, int D>
static __device__ inline void write_rows(const matrix<T> &to, int row, const float out[D / 8][4],
                                         const float factor[2]) {
#pragma unroll
  for (int half = 0; half < 2; half++) {
    const int r = row + row_of(2 * half);
    if (r >= (int)to.rows) continue;
    T *at = to.at + (int64_t)r * to.row;
#pragma unroll
    for (int c = 0; c < D / 8; c++) {
      const float low = out[c][2 * half] * factor[half], high = out[c][2 * half + 1] * factor[half];
      const int column = column_of(c, 0);
      if (to.packed) {
        if (column < to.width)
          *reinterpret_cast<uint32_t *>(at + column) = two_halves<T>(low, high);
        continue;
      }
      if (column < to.width) at[column * to.column] = gp_store<T>(low);
      if (column + 1 < to.width) at[(column + 1) * to.column] = gp_store<T>(high);
    }
  }
}

/* ---- products ------------------------------------------------------------------------------ */

/* Compute s = a b^T of the warp's rows of a, and all N rows of b. */
template <typename T, int N, int D>
static __device__ inline void outer_product(strip<N> &s, const half_tile<T, SIDE, D> &a,
                                            const half_tile<T, N, D> &b) {
  const int lane = threadIdx.x % LANES, row = first_row() + lane % 16;
  const int other = lane / 16 * 8 + lane % 8;
#pragma unroll
  for (int c = 0; c < N / 2; c++) s[c / 4][c % 4] = 0;
#pragma unroll
  for (int k = 0; k < D; k += 16) {
    uint32_t left[4], right[4];
    gp_load_matrices(left, &a.at[row][k + lane / 16 * 8]);
#pragma unroll
    for (int c = 0; c < N / 8; c += 2) {
      gp_load_matrices(right, &b.at[8 * c + other][k + lane / 8 % 2 * 8]);
      gp_mma<T>(s[c], left, right);
      gp_mma<T>(s[c + 1], left, right + 2);
    }
  }
}

/* Compute out += s b: the warp's rows of scores, rounded to halves, times all rows of b. */
template <typename T, int N, int D>
static __device__ inline void add_rows(float out[D / 8][4], const strip<N> &s,
                                       const half_tile<T, N, D> &b) {
  const int lane = threadIdx.x % LANES;
#pragma unroll
  for (int c = 0; c < N / 8; c += 2) {
    const uint32_t left[4] = {two_halves<T>(s[c][0], s[c][1]), two_halves<T>(s[c][2], s[c][3]),
                              two_halves<T>(s[c + 1][0], s[c + 1][1]),
                              two_halves<T>(s[c + 1][2], s[c + 1][3])};
#pragma unroll
    for (int d = 0; d < D / 8; d += 2) {
      uint32_t right[4];
      gp_load_transposed(right, &b.at[8 * c + lane % 16][8 * d + lane / 16 * 8]);
      gp_mma<T>(out[d], left, right);
      gp_mma<T>(out[d + 1], left, right + 2);
    }
  }
}

/* ---- scores -------------------------------------------------------------------------------- */

/* Scores are kept times log2(e), so that the exponential is one instruction. */
#define LOG2_E 1.44269504088896340736f
#define LN_2   0.69314718055994530942f

/* Hide scores among the warp's products of a tile of rows from `row` and columns from `column` on.
 * by_key: rows are keys and columns queries. Pairs that do not see each other get minus infinity.
 * Rows that do not exist keep any numbers, and so do columns that are queries: these are not read,
 * or are multiplied by zeros. */
template <int N, bool by_key>
static __device__ inline void hide(const gp_attention &a, int row, int column, strip<N> &s) {
  const int columns = by_key ? N : (int)a.keys - column, diagonal = row - column;
#pragma unroll
  for (int c = 0; c < N / 8; c++)
#pragma unroll
    for (int e = 0; e < 4; e++) {
      const int i = row_of(e) + diagonal, j = column_of(c, e); /* from one origin */
      if (j >= columns || (a.causal && (by_key ? i > j : j > i))) s[c][e] = -INFINITY;
    }
}

template <typename T, int N, bool by_key>
static __device__ inline void add_mask(const gp_attention &a, const char *mask, int row, int column,
                                       strip<N> &s) {
#pragma unroll
  for (int c = 0; c < N / 8; c++)
#pragma unroll
    for (int e = 0; e < 4; e++) {
      const int i = row + row_of(e), j = column + column_of(c, e);
      const int query = by_key ? j : i, key = by_key ? i : j;
      if (query < a.queries && key < a.keys)
        s[c][e] = fmaf(bias_of<T>(a, mask, query, key), LOG2_E, s[c][e]);
    }
}

template <typename T, int N, bool by_key>
static __device__ inline void to_scores(const gp_attention &a, head_at at, int row, int column,
                                        strip<N> &s) {
  const float scale = (float)a.scale * LOG2_E;
#pragma unroll
  for (int c = 0; c < N / 2; c++) s[c / 4][c % 4] *= scale;
  if (a.masked) add_mask<T, N, by_key>(a, mask_of<T>(a, at.batch, at.head), row, column, s);
  /* Most tiles lie below the diagonal and inside. */
  const bool inside = by_key || column + N <= a.keys;
  const int last_key = by_key ? row + first_row() + STRIP - 1 : column + N - 1;
  const int first_query = by_key ? column : row + first_row();
  if (!inside || (a.causal && last_key > first_query)) hide<N, by_key>(a, row, column, s);
}

/* ---- dropout ------------------------------------------------------------------------------- */

/* Return which of the probabilities of 64 keys from `key` on (a multiple of 64) a lane keeps: bit 4
 * c + e is element e of the c-th 8 columns. The four words of a block of Philox belong to keys 16
 * apart, which lie in one lane, so no other lane draws them. Rows are queries, from `query` on. */
static __device__ inline uint32_t draw_kept(const dropout<float> &d, int query, int key) {
  uint32_t kept = 0;
#pragma unroll 1
  for (int i = 0; i < 8; i++) { /* the two rows, the two columns, the first 8 columns or the next */
    const int e = i % 4, c = i / 4;
    uint32_t word[STEP];
    draw_words<float, SIDE>(d, query + row_of(e), key + column_of(c, e), word);
#pragma unroll
    for (int n = 0; n < STEP; n++)
      kept |= (uint32_t)(word[n] >= d.threshold) << (4 * (c + 2 * n) + e);
  }
  return kept;
}

static __device__ inline float factor_of(float keep, uint32_t kept, int c, int e) {
  return kept >> (4 * c + e) & 1 ? keep : 0.0f;
}

#endif
