/* ops/attention/tensor/backward.cu - the backward pass of tensor.cuh, as flash_backward.cu does it.
 *
 * dk and dv by tiles of keys, walking over the queries that see them, of all heads that share the
 * keys; dq by tiles of queries, walking over the keys. Rows of scores are keys in the one walk and
 * queries in the other. */
#include "ops/attention/tensor/tensor.cuh"

#include "ops/attention/tensor/tile.cuh"

/* own: the rows of the block, other: those that it walks over. */
template <typename T, int D> struct backward_tiles {
  half_tile<T, D> own[2], other[2]; /* q and d_o, k and v, or the other way around */
  float lse[SIDE], delta[SIDE];     /* of the tile's queries */
  kept_tile kept;
};

/* ---- a head -------------------------------------------------------------------------------- */

template <typename T> struct half_head {
  matrix<T> of_queries[2], of_keys[2]; /* q and d_o, k and v */
  matrix<float> lse;
  const float *delta;
  const char *mask;
  dropout<float> drop;
};

template <typename T>
static __device__ inline half_head<T> open_half_head(const gp_attention &a, int64_t b, int64_t h) {
  const int64_t group = h / sharers(a);
  half_head<T> x;
  x.of_queries[0] = head_of<T>(a.q, b, h, a.queries, a.width);
  x.of_queries[1] = head_of<T>(a.d_o, b, h, a.queries, a.width);
  x.of_keys[0] = head_of<T>(a.k, b, group, a.keys, a.width);
  x.of_keys[1] = head_of<T>(a.v, b, group, a.keys, a.width);
  x.lse = head_of<float>(a.lse, b, h, a.queries, 1);
  x.delta = (const float *)a.scratch + (b * a.heads + h) * a.queries;
  x.mask = mask_of<T>(a, b, h);
  x.drop = dropout_of<float>(a, b, h);
  return x;
}

/* ---- a tile of scores ---------------------------------------------------------------------- */

/* What belongs to the tile of scores of these queries and keys beside its operands. */
template <typename T, int D>
static __device__ inline void load_rest(backward_tiles<T, D> &t, const half_head<T> &x,
                                        int64_t query, int64_t key) {
  for (int i = threadIdx.x; i < SIDE; i += THREADS) {
    const bool there = query + i < x.lse.rows;
    t.lse[i] = there ? x.lse.at[(query + i) * x.lse.row] : 0;
    t.delta[i] = there ? x.delta[query + i] : 0;
  }
  draw_tile(t.kept, x.drop, query, key);
}

/* From scores and do v^T to what dv and dq, dk are products of. by_key: rows are keys. */
template <typename T, int D, bool by_key>
static __device__ inline void gradients(const gp_attention &a, const backward_tiles<T, D> &t,
                                        const half_head<T> &x, const int64_t first[2], strip s[2]) {
#pragma unroll
  for (int c = 0; c < SCORES; c++)
#pragma unroll
    for (int e = 0; e < 4; e++) {
      const int q = by_key ? column_of(c, e) : row_of(e), k = by_key ? row_of(e) : column_of(c, e);
      const float score = score_of<T>(a, x.mask, first[0] + q, first[1] + k, s[0][c][e]);
      const float p = score == -INFINITY ? 0.0f : expf(score - t.lse[q]);
      const float factor = factor_of(t.kept, x.drop, q, k);
      s[0][c][e] = p * factor;
      s[1][c][e] = p * (s[1][c][e] * factor - t.delta[q]);
    }
}

/* ---- dq ------------------------------------------------------------------------------------ */

template <typename T, int D>
static __global__ void __launch_bounds__(THREADS) attention_tensor_dq(gp_attention a) {
  typedef backward_tiles<T, D> shared;
  GP_SHARED(shared, t);
  const work w = work_of<SIDE>(a, {a.heads, a.queries, D}, a.causal);
  const half_head<T> x = open_half_head<T>(a, w.batch, w.head);
  float dq[D / 8][4] = {};
  for (int i = 0; i < 2; i++) load_rows(t->own[i], x.of_queries[i], w.row);
  for (int64_t key = 0; key < a.keys && !(a.causal && key >= w.row + SIDE); key += SIDE) {
    strip s[2];
    const int64_t first[] = {w.row, key};
    for (int i = 0; i < 2; i++) load_rows(t->other[i], x.of_keys[i], key);
    load_rest(*t, x, w.row, key);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 2; i++) outer_product(s[i], t->own[i], t->other[i]);
    gradients<T, D, false>(a, *t, x, first, s);
    add_rows(dq, s[1], t->other[0]);
    __syncthreads();
  }
  const float scale[] = {(float)a.scale, (float)a.scale};
  write_rows<T, D>(head_of<T>(a.d_q, w.batch, w.head, a.queries, a.width), w.row, dq, scale);
}

/* ---- dk and dv ----------------------------------------------------------------------------- */

/* Those of one head of the queries, added. */
template <typename T, int D>
static __device__ inline void walk_queries(const gp_attention &a, backward_tiles<T, D> &t,
                                           const half_head<T> &x, int64_t key,
                                           float d_kv[2][D / 8][4]) {
  for (int64_t query = a.causal ? key : 0; query < a.queries; query += SIDE) {
    strip s[2];
    const int64_t first[] = {query, key};
    for (int i = 0; i < 2; i++) load_rows(t.other[i], x.of_queries[i], query);
    load_rest(t, x, query, key);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 2; i++) outer_product(s[i], t.own[i], t.other[i]);
    gradients<T, D, true>(a, t, x, first, s);
    add_rows(d_kv[1], s[0], t.other[1]);
    add_rows(d_kv[0], s[1], t.other[0]);
    __syncthreads();
  }
}

template <typename T, int D>
static __global__ void __launch_bounds__(THREADS) attention_tensor_dk_dv(gp_attention a) {
  typedef backward_tiles<T, D> shared;
  GP_SHARED(shared, t);
  const work w = work_of<SIDE>(a, {a.groups, a.keys, D}, false);
  float d_kv[2][D / 8][4] = {};
  for (int64_t i = 0; i < sharers(a); i++) {
    const half_head<T> x = open_half_head<T>(a, w.batch, w.head * sharers(a) + i);
    for (int own = 0; own < 2 && i == 0; own++) load_rows(t->own[own], x.of_keys[own], w.row);
    walk_queries(a, *t, x, w.row, d_kv);
  }
  const float one[] = {1, 1}, scale[] = {(float)a.scale, (float)a.scale};
  write_rows<T, D>(head_of<T>(a.d_k, w.batch, w.head, a.keys, a.width), w.row, d_kv[0], scale);
  write_rows<T, D>(head_of<T>(a.d_v, w.batch, w.head, a.keys, a.width), w.row, d_kv[1], one);
}

/* ---- launching ----------------------------------------------------------------------------- */

template <typename T, int D> static gp_status launch(gp_gpu *gpu, const gp_attention *a) {
  const size_t shared = sizeof(backward_tiles<T, D>);
  const int64_t by_key = count_blocks(a, {a->groups, a->keys, D}, SIDE);
  const int64_t by_query = count_blocks(a, {a->heads, a->queries, D}, SIDE);
  if (by_key == 0 || (by_query == 0 && a->queries > 0)) return gp_flash_too_many(a);
  GP_GPU_TRY(GP_LAUNCH(gpu, (attention_tensor_dk_dv<T, D>), (unsigned)by_key, THREADS, shared, *a));
  if (by_query == 0) return GP_OK;
  return GP_LAUNCH(gpu, (attention_tensor_dq<T, D>), (unsigned)by_query, THREADS, shared, *a);
}

template <typename T> static gp_status launch_by_width(gp_gpu *gpu, const gp_attention *a) {
  return a->width <= 64 ? launch<T, 64>(gpu, a) : launch<T, 128>(gpu, a);
}

gp_status gp_tensor_backward(gp_gpu *gpu, const gp_attention *a) {
  if (a->batches * a->heads == 0) return GP_OK;
  return a->dtype == GP_F16 ? launch_by_width<gp_f16>(gpu, a) : launch_by_width<gp_bf16>(gpu, a);
}
