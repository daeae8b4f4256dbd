/* device/cuda/gemm/own.cu - our own kernel for matrix products that cuBLASLt refuses.
 *
 * It is slow (f32 arithmetic, no tensor cores) but handles whatever the library refuses: any
 * distance between rows, any alignment. Each element is one sum over k in ascending order, in f64
 * for f64, else in f32; then the old value is added, then the bias. */
#include "device/cuda/gemm/own.h"
#include "device/cuda/kernel/device.cuh"

/* A block computes a square of D, of which each thread has 4 x 4 elements, 16 apart, so that
 * neighbouring threads access neighbouring elements. DEPTH steps of k lie in shared memory at a
 * time. */
enum { SIDE = 16, EACH = 4, TILE = SIDE * EACH, DEPTH = 16, BLOCK = SIDE * SIDE };

/* An operand as op() presents it: element (i, j) is at i * row + j * column. */
typedef struct view {
  int64_t rows, columns, row, column;
} view;

/* ---- kernel -------------------------------------------------------------------------------- */

/* Load the square of rows from `row` on and of k: element (k, i); zeros beyond the edge. */
template <typename T>
static __device__ inline void load(gp_compute<T> (*to)[TILE + 1], const T *from, const view &v,
                                   int64_t row, int64_t k) {
  for (int i = (int)threadIdx.x; i < TILE * DEPTH; i += BLOCK) {
    const int r = v.column == 1 ? i / DEPTH : i % TILE, c = v.column == 1 ? i % DEPTH : i / TILE;
    const bool inside = row + r < v.rows && k + c < v.columns;
    to[c][r] = inside ? gp_load(from[(row + r) * v.row + (k + c) * v.column]) : gp_compute<T>(0);
  }
}

template <typename C>
static __device__ inline void add_products(C sums[EACH][EACH], C (*left)[TILE + 1],
                                           C (*right)[TILE + 1], int64_t steps) {
  const int y = (int)threadIdx.x / SIDE, x = (int)threadIdx.x % SIDE;
  for (int k = 0; k < steps; k++)
    for (int i = 0; i < EACH; i++)
      for (int j = 0; j < EACH; j++) sums[i][j] += left[k][y + SIDE * i] * right[k][x + SIDE * j];
}

template <typename D>
static __device__ inline void store(const gp_gpu_gemm &g, int64_t matrix, int64_t row,
                                    int64_t column, gp_compute<D> sum) {
  if (row >= g.m || column >= g.n) return;
  const int64_t at = matrix * g.stride_d + row * g.ldd + column;
  const D *c = (const D *)(g.c ? g.c : g.d);
  if (g.accumulate) sum = gp_load(c[at]) + sum;
  if (g.biased) sum = sum + gp_load(((const D *)g.bias)[column]);
  ((D *)g.d)[at] = gp_store<D>(sum);
}

/* How many blocks a multiprocessor should hold: this bounds the registers. */
template <typename T> static constexpr int blocks_of() { return sizeof(T) > 4 ? 1 : 2; }

template <typename T, typename D>
static __global__ void __launch_bounds__(BLOCK, blocks_of<T>())
    multiply(gp_gpu_gemm g, view a, view b, int64_t across, int64_t squares) {
  typedef gp_compute<T> C;
  __shared__ C left[DEPTH][TILE + 1], right[DEPTH][TILE + 1];
  const int y = (int)threadIdx.x / SIDE, x = (int)threadIdx.x % SIDE;
  const int64_t each = squares / g.batch;
  for (int64_t square = blockIdx.x; square < squares; square += gridDim.x) {
    const int64_t matrix = square / each, place = square % each;
    const int64_t row = place / across * TILE, column = place % across * TILE;
    C sums[EACH][EACH] = {};
    for (int64_t k = 0; k < g.k; k += DEPTH) {
      load<T>(left, (const T *)g.a + matrix * g.stride_a, a, row, k);
      load<T>(right, (const T *)g.b + matrix * g.stride_b, b, column, k);
      __syncthreads();
      add_products<C>(sums, left, right, g.k - k < DEPTH ? g.k - k : (int64_t)DEPTH);
      __syncthreads();
    }
    for (int i = 0; i < EACH; i++)
      for (int j = 0; j < EACH; j++)
        store<D>(g, matrix, row + y + SIDE * i, column + x + SIDE * j, (gp_compute<D>)sums[i][j]);
  }
}

/* ---- launching ----------------------------------------------------------------------------- */

template <typename T, typename D> static gp_status launch(gp_gpu *gpu, const gp_gpu_gemm *g) {
  const view a = {g->m, g->k, g->transpose_a ? 1 : g->lda, g->transpose_a ? g->lda : 1};
  const view b = {g->n, g->k, g->transpose_b ? g->ldb : 1, g->transpose_b ? 1 : g->ldb};
  const int64_t across = (g->n + TILE - 1) / TILE, down = (g->m + TILE - 1) / TILE;
  const int64_t squares = across * down * g->batch;
  return GP_LAUNCH(gpu, (multiply<T, D>), gp_blocks(squares, 1), BLOCK, 0, *g, a, b, across,
                   squares);
}

/* The result of halves is of the same type, or f32. */
template <typename T> static gp_status launch_half(gp_gpu *gpu, const gp_gpu_gemm *g) {
  return g->d_type == GP_F32 ? launch<T, float>(gpu, g) : launch<T, T>(gpu, g);
}

gp_status gp_gemm_own(gp_gpu *gpu, const gp_gpu_gemm *g) {
  switch (g->type) {
  case GP_F64: return launch<double, double>(gpu, g);
  case GP_F32: return launch<float, float>(gpu, g);
  case GP_BF16: return launch_half<gp_bf16>(gpu, g);
  default: return launch_half<gp_f16>(gpu, g);
  }
}
