/* ops/attention/tensor/tile.cuh - squares of halves in shared memory, and products of them by
 * tensor cores.
 *
 * A block has four warps and works on 64 x 64 scores; each warp has 16 rows of them, in the
 * registers that products leave them in (mma.cuh): scores become halves there and are the left
 * operand of the next product.
 * Tiles are 64 rows of all of the width, filled up with zeros to D. Sums run in ascending order. */
#ifndef GP_OPS_ATTENTION_TENSOR_TILE_CUH
#define GP_OPS_ATTENTION_TENSOR_TILE_CUH

#include <string.h>

#include "device/cuda/kernel/mma.cuh"
#include "ops/attention/flash_scores.cuh"

enum { SIDE = 64, WARPS = 4, LANES = 32, THREADS = WARPS * LANES, STRIP = SIDE / WARPS };

/* Rows are 16 bytes further apart than their length: the eight that a warp reads at once lie in
 * other banks. */
template <typename T, int D> struct alignas(16) half_tile { T at[SIDE][D + 8]; };

/* 64 x 64 scores: of a warp, 16 rows and eight times 8 columns. */
enum { SCORES = SIDE / 8 };
typedef float strip[SCORES][4];

/* Where element e of the c-th 8 columns of a lane lies in its block's tile. */
static __device__ inline int row_of(int e) {
  return threadIdx.x / LANES * STRIP + threadIdx.x % LANES / 4 + e / 2 * 8;
}
static __device__ inline int column_of(int c, int e) { return 8 * c + threadIdx.x % 4 * 2 + e % 2; }

/* ---- reading and writing ------------------------------------------------------------------- */

template <typename T>
static __device__ inline gp_pack<T> pack_at(const matrix<T> &from, int64_t row, int64_t column) {
  gp_pack<T> pack = {};
  if (row >= from.rows || column >= from.width) return pack;
  const T *at = from.at + row * from.row + column * from.column;
  if (from.packed) return *reinterpret_cast<const gp_pack<T> *>(at);
  for (int e = 0; e < gp_pack<T>::count && column + e < from.width; e++)
    pack.at[e] = at[e * from.column];
  return pack;
}

/* 64 rows from `row` on; zeros outside of the matrix. */
template <typename T, int D>
static __device__ inline void load_rows(half_tile<T, D> &to, const matrix<T> &from, int64_t row) {
  const int count = gp_pack<T>::count, packs = D / count;
  for (int i = threadIdx.x; i < SIDE * packs; i += THREADS) {
    const int r = i / packs, c = i % packs * count;
    *reinterpret_cast<gp_pack<T> *>(&to.at[r][c]) = pack_at(from, row + r, c);
  }
}

/* Two halves in a register. */
template <typename T> static __device__ inline uint32_t two_halves(float low, float high) {
  const T pair[2] = {gp_store<T>(low), gp_store<T>(high)};
  uint32_t bits;
  memcpy(&bits, pair, sizeof bits);
  return bits;
}

/* A strip of outputs, those of rows from `row` on, times a factor for each of the lane's two
 * rows. */
template <typename T, int D>
static __device__ inline void write_rows(const matrix<T> &to, int64_t row,
                                         const float out[D / 8][4], const float factor[2]) {
#pragma unroll
  for (int c = 0; c < D / 8; c++)
#pragma unroll
    for (int e = 0; e < 4; e++) {
      const int64_t r = row + row_of(e), column = column_of(c, e);
      if (r < to.rows && column < to.width)
        to.at[r * to.row + column * to.column] = gp_store<T>(out[c][e] * factor[e / 2]);
    }
}

/* ---- products ------------------------------------------------------------------------------ */

/* s = a b^T of the warp's rows of a, and all rows of b. */
template <typename T, int D>
static __device__ inline void outer_product(strip s, const half_tile<T, D> &a,
                                            const half_tile<T, D> &b) {
  const int lane = threadIdx.x % LANES, row = threadIdx.x / LANES * STRIP + lane % 16;
  const int other = lane / 16 * 8 + lane % 8;
#pragma unroll
  for (int c = 0; c < SCORES * 4; c++) s[c / 4][c % 4] = 0;
#pragma unroll
  for (int k = 0; k < D; k += 16) {
    uint32_t left[4], right[4];
    gp_load_matrices(left, &a.at[row][k + lane / 16 * 8]);
#pragma unroll
    for (int c = 0; c < SCORES; c += 2) {
      gp_load_matrices(right, &b.at[8 * c + other][k + lane / 8 % 2 * 8]);
      gp_mma<T>(s[c], left, right);
      gp_mma<T>(s[c + 1], left, right + 2);
    }
  }
}

/* out += s b: the warp's rows of scores, rounded to halves, times all rows of b. */
template <typename T, int D>
static __device__ inline void add_rows(float out[D / 8][4], const strip s,
                                       const half_tile<T, D> &b) {
  const int lane = threadIdx.x % LANES;
#pragma unroll
  for (int c = 0; c < SCORES; c += 2) {
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

/* ---- dropout ------------------------------------------------------------------------------- */

/* Which of a tile's probabilities are kept, by query and key. Rows are 4 further apart, for the
 * banks. */
struct kept_tile {
  uint8_t at[SIDE][SIDE + 4];
};

/* Four words of a block of Philox belong to keys 16 apart: a thread draws them together. */
static __device__ inline void draw_tile(kept_tile &to, const dropout<float> &d, int64_t query,
                                        int64_t key) {
  if (!d.on) return;
  for (int i = threadIdx.x; i < SIDE * 16; i += THREADS) {
    const int q = i / 16, k = i % 16;
    float factor[STEP];
    draw<float, SIDE>(d, query + q, key + k, factor);
#pragma unroll
    for (int e = 0; e < STEP; e++) to.at[q][k + 16 * e] = factor[e] != 0;
  }
}

static __device__ inline float factor_of(const kept_tile &kept, const dropout<float> &d, int query,
                                         int key) {
  if (!d.on) return 1;
  return kept.at[query][key] ? d.keep : 0.0f;
}

#endif
