/* ops/attention/flash_backward.cu - the backward pass of flash.cuh, in three kernels without
 * atomics.
 *
 * The first computes delta = rowsum(do * o). The second makes dk and dv by tiles of keys, walking
 * over the queries that see them (of all heads that share the keys, one after the other), and the
 * third dq by tiles of queries, walking over the keys. Scores are computed twice, so that each sum
 * has one thread and one order. */
#include "ops/attention/flash.cuh"

#include "ops/attention/flash_scores.cuh"

/* ---- delta --------------------------------------------------------------------------------- */

enum { WARP = 32, DELTA_WARPS = 8 };

/* A warp works on a query: lanes take every 32nd column, then a tree adds them. */
template <typename T> static __global__ void attention_delta(gp_attention a) {
  typedef gp_compute<T> C;
  const int64_t rows = a.batches * a.heads * a.queries, lane = threadIdx.x % WARP;
  const int64_t row = (int64_t)blockIdx.x * DELTA_WARPS + threadIdx.x / WARP;
  if (row >= rows) return;
  const int64_t i = row % a.queries, h = row / a.queries % a.heads, b = row / a.queries / a.heads;
  const matrix<T> o = head_of<T>(a.o, b, h, a.queries, a.width);
  const matrix<T> d = head_of<T>(a.d_o, b, h, a.queries, a.width);
  C sum = 0;
  for (int64_t c = lane; c < a.width; c += WARP)
    sum += gp_load(o.at[i * o.row + c * o.column]) * gp_load(d.at[i * d.row + c * d.column]);
#pragma unroll
  for (int step = WARP / 2; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (lane == 0) ((C *)a.scratch)[row] = sum;
}

/* ---- a head -------------------------------------------------------------------------------- */

/* What all tiles of a head read. */
template <typename T> struct head {
  typedef gp_compute<T> C;
  matrix<T> q, k, v, d_o;
  matrix<C> lse;
  const C *delta;
  const char *mask;
  dropout<C> drop;
};

template <typename T>
static __device__ head<T> open_head(const gp_attention &a, int64_t b, int64_t h) {
  typedef gp_compute<T> C;
  const int64_t group = h / sharers(a);
  head<T> x;
  x.q = value_of<T>(a, a.q, b, h, a.queries);
  x.k = value_of<T>(a, a.k, b, group, a.keys);
  x.v = value_of<T>(a, a.v, b, group, a.keys);
  x.d_o = value_of<T>(a, a.d_o, b, h, a.queries);
  x.lse = head_of<C>(a.lse, b, h, a.queries, 1);
  x.delta = (const C *)a.scratch + (b * a.heads + h) * a.queries;
  x.mask = mask_of<T>(a, b, h);
  x.drop = dropout_of<C>(a, b, h);
  return x;
}

/* Return exp(score - lse), or 0 if the query does not see the key or one of them does not exist. */
template <typename T>
static __device__ inline gp_compute<T> probability(const gp_attention &a, const head<T> &x,
                                                   int64_t query, int64_t key, gp_compute<T> s) {
  typedef gp_compute<T> C;
  const C score = score_of<T>(a, x.mask, query, key, s);
  return score == -C(INFINITY) ? C(0) : exponential(score - x.lse.at[query * x.lse.row]);
}

/* Turn a score and do v^T into what dv, and dq and dk, are products of. factor: that of dropout. */
template <typename T>
static __device__ inline void gradient(const gp_attention &a, const head<T> &x, int64_t query,
                                       int64_t key, gp_compute<T> factor, gp_compute<T> &s,
                                       gp_compute<T> &ds) {
  const gp_compute<T> p = probability(a, x, query, key, s);
  const gp_compute<T> delta = query < a.queries ? x.delta[query] : gp_compute<T>(0);
  s = p * factor;
  ds = p * (ds * factor - delta);
}

/* Scale the gradient of a score as the score was; at this place there are fewer numbers. */
template <typename C> static __device__ inline void scale_tile(C o[STEP][STEP], double scale) {
  for (int i = 0; i < STEP * STEP; i++) o[i / STEP][i % STEP] *= C(scale);
}

/* out += scores x[row ..], by chunks of columns. */
template <typename T, int N, int CHUNKS>
static __device__ void add_rows(gp_compute<T> out[CHUNKS][STEP][STEP], tiles<gp_compute<T>, N> &t,
                                const gp_compute<T> scores[STEP][STEP], const matrix<T> &x,
                                int64_t row, int64_t column) {
  put(t.scores, scores);
#pragma unroll
  for (int c = 0; c < CHUNKS; c++) {
    load<T, N>(t.right, x, row, column + c * N);
    __syncthreads();
    add_product(out[c], t.scores, t.right);
    __syncthreads();
  }
}

template <typename T, int N, int CHUNKS>
static __device__ void write_rows(const matrix<T> &to, const work &w,
                                  gp_compute<T> out[CHUNKS][STEP][STEP], double scale) {
#pragma unroll
  for (int c = 0; c < CHUNKS; c++) {
    scale_tile(out[c], scale);
    write<T, N>(to, w.row, w.column + c * N, out[c]);
  }
}

/* ---- dq ------------------------------------------------------------------------------------ */

/* Compute s and ds of the tile that begins at (row, column). by_key: its rows are keys and its
 * columns queries; else the other way around. */
template <typename T, int N, bool by_key>
static __device__ void gradients(const gp_attention &a, const head<T> &x, int64_t row,
                                 int64_t column, gp_compute<T> s[STEP][STEP],
                                 gp_compute<T> ds[STEP][STEP]) {
  typedef gp_compute<T> C;
  const place<N> at;
  const int span = place<N>::span;
  const int64_t query = by_key ? column + at.x : row + at.y;
  const int64_t key = by_key ? row + at.y : column + at.x;
#pragma unroll
  for (int i = 0; i < STEP; i++) {
    const int64_t q = query + i * span;
    C factor[STEP] = {1, 1, 1, 1};
    if (x.drop.on) draw<C, N>(x.drop, q, key, factor);
#pragma unroll
    for (int j = 0; j < STEP; j++) {
      const int r = by_key ? j : i, c = by_key ? i : j;
      gradient(a, x, q, key + j * span, factor[j], s[r][c], ds[r][c]);
    }
  }
}

/* A causal walk ends at the last key that the last query of the tile sees. */
template <typename T, int CHUNKS>
static __global__ void __launch_bounds__(threads_of<T>(), resident<T>(CHUNKS))
    attention_dq(gp_attention a) {
  typedef gp_compute<T> C;
  const int N = side_of<T>::rows;
  typedef tiles<C, N> shared;
  GP_SHARED(shared, t);
  const work w = work_of<N>(a, {a.heads, a.queries, CHUNKS * N}, a.causal);
  const head<T> x = open_head<T>(a, w.batch, w.head);
  C out[CHUNKS][STEP][STEP] = {};
  for (int64_t key = 0; key < a.keys && !(a.causal && key >= w.row + N); key += N) {
    C s[STEP][STEP], ds[STEP][STEP];
    outer<T, N>(s, *t, x.q, w.row, x.k, key, true);
    outer<T, N>(ds, *t, x.d_o, w.row, x.v, key, true);
    gradients<T, N, false>(a, x, w.row, key, s, ds);
    add_rows<T, N, CHUNKS>(out, *t, ds, x.k, key, w.column);
  }
  write_rows<T, N, CHUNKS>(value_of<T>(a, a.d_q, w.batch, w.head, a.queries), w, out, a.scale);
}

/* ---- dk and dv ----------------------------------------------------------------------------- */

/* A causal walk begins at the first query that sees the first key of the tile. One block owns its
 * keys for all heads that share them, so the order of the sums is that of the loops. */
template <typename T, int CHUNKS>
static __global__ void __launch_bounds__(threads_of<T>(), resident<T>(2 * CHUNKS))
    attention_dk_dv(gp_attention a) {
  typedef gp_compute<T> C;
  const int N = side_of<T>::rows;
  typedef tiles<C, N> shared;
  GP_SHARED(shared, t);
  const work w = work_of<N>(a, {a.groups, a.keys, CHUNKS * N}, false);
  C dk[CHUNKS][STEP][STEP] = {}, dv[CHUNKS][STEP][STEP] = {};
  for (int64_t i = 0; i < sharers(a); i++) {
    const head<T> x = open_head<T>(a, w.batch, w.head * sharers(a) + i);
    for (int64_t query = a.causal ? w.row : 0; query < a.queries; query += N) {
      C s[STEP][STEP], ds[STEP][STEP];
      outer<T, N>(s, *t, x.k, w.row, x.q, query, true);
      outer<T, N>(ds, *t, x.v, w.row, x.d_o, query, true);
      gradients<T, N, true>(a, x, w.row, query, s, ds);
      add_rows<T, N, CHUNKS>(dv, *t, s, x.d_o, query, w.column);
      add_rows<T, N, CHUNKS>(dk, *t, ds, x.q, query, w.column);
    }
  }
  write_rows<T, N, CHUNKS>(value_of<T>(a, a.d_v, w.batch, w.head, a.keys), w, dv, 1);
  write_rows<T, N, CHUNKS>(value_of<T>(a, a.d_k, w.batch, w.head, a.keys), w, dk, a.scale);
}

/* ---- launching ----------------------------------------------------------------------------- */

template <typename T> static gp_status launch_delta(gp_gpu *gpu, const gp_attention *a) {
  const int64_t rows = a->batches * a->heads * a->queries;
  const int64_t blocks = (rows + DELTA_WARPS - 1) / DELTA_WARPS;
  if (blocks == 0) return GP_OK;
  if (blocks > INT32_MAX) return gp_flash_too_many(a);
  return GP_LAUNCH(gpu, attention_delta<T>, (unsigned)blocks, DELTA_WARPS * WARP, 0, *a);
}

/* There is at least one key (infer checks it), so a count of 0 blocks means too many. */
template <typename T, int CHUNKS>
static gp_status launch_dk_dv(gp_gpu *gpu, const gp_attention *a) {
  const int n = side_of<T>::rows, threads = (n / STEP) * (n / STEP);
  const int64_t blocks = count_blocks(a, {a->groups, a->keys, CHUNKS * n}, n);
  if (blocks == 0) return gp_flash_too_many(a);
  return GP_LAUNCH(gpu, (attention_dk_dv<T, CHUNKS>), (unsigned)blocks, threads,
                   sizeof(tiles<gp_compute<T>, side_of<T>::rows>), *a);
}

template <typename T, int CHUNKS> static gp_status launch_dq(gp_gpu *gpu, const gp_attention *a) {
  const int n = side_of<T>::rows, threads = (n / STEP) * (n / STEP);
  const int64_t blocks = count_blocks(a, {a->heads, a->queries, CHUNKS * n}, n);
  if (a->queries == 0) return GP_OK;
  if (blocks == 0) return gp_flash_too_many(a);
  return GP_LAUNCH(gpu, (attention_dq<T, CHUNKS>), (unsigned)blocks, threads,
                   sizeof(tiles<gp_compute<T>, side_of<T>::rows>), *a);
}

/* Two outputs need twice the registers, so there are fewer columns at once than in
 * the forward pass. */
template <typename T> static gp_status launch_all(gp_gpu *gpu, const gp_attention *a) {
  const int n = side_of<T>::rows;
  if constexpr (has_fewer<T>())
    if (a->width <= n) {
      GP_GPU_TRY((launch_dk_dv<T, 1>(gpu, a)));
      return launch_dq<T, 1>(gpu, a);
    }
  GP_GPU_TRY((launch_dk_dv<T, 2>(gpu, a)));
  if constexpr (has_fewer<T>())
    if (a->width <= 2 * n) return launch_dq<T, 2>(gpu, a);
  return launch_dq<T, most_columns<T>()>(gpu, a);
}

size_t gp_flash_scratch(const gp_attention *a) {
  const size_t rows = (size_t)(a->batches * a->heads * a->queries);
  return a->backward ? rows * (a->dtype == GP_F64 ? sizeof(double) : sizeof(float)) : 0;
}

gp_status gp_flash_delta(gp_gpu *gpu, const gp_attention *a) {
  GP_BY_FLOAT(a->dtype, return launch_delta<T>(gpu, a));
  return GP_OK;
}

gp_status gp_flash_backward(gp_gpu *gpu, const gp_attention *a) {
  if (a->batches * a->heads == 0) return GP_OK;
  GP_BY_ELEMENT(a->dtype, return launch_all<T>(gpu, a));
}
