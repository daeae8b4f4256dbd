/* ops/attention/tensor/backward.cu - the backward pass of tensor.cuh, as flash_backward.cu does it.
 *
 * One kernel makes dk and dv by tiles of keys, walking over the queries that see them, of all heads
 * that share the keys; the other makes dq by tiles of queries, walking over the keys. Rows of
 * scores are keys in the first walk and queries in the second. */
#include "ops/attention/tensor/tensor.cuh"

#include "ops/attention/tensor/tile.cuh"

/* ---- a head -------------------------------------------------------------------------------- */

/* Return rowsum(do * o) of a head's queries. */
static __device__ inline matrix<float> deltas_of(const gp_attention &a, int64_t b, int64_t h) {
  return {(float *)a.scratch + (b * a.heads + h) * a.queries, 1, 1, a.queries, 1, false, GP_F32};
}

/* Turn a score and do v^T into what dv, and dq and dk, are products of; lse is times log2(e). */
static __device__ inline void gradient(float lse, float delta, float factor, float &s, float &ds) {
  const float p = gp_exp2(s - lse);
  s = p * factor;
  ds = p * (ds * factor - delta);
}

/* ---- dq ------------------------------------------------------------------------------------ */

template <typename T, int D> struct dq_tiles {
  half_tile<T, SIDE, D> q, d_o;
  half_tile<T, OTHERS, D> k[2], v[2];
};

/* The numbers of a lane's two rows. */
struct row_numbers {
  float lse[2], delta[2];
};

static __device__ inline row_numbers numbers_of(const gp_attention &a, const work &w) {
  const matrix<float> lse = head_of<float>(a.lse, w.batch, w.head, a.queries, 1);
  const matrix<float> delta = deltas_of(a, w.batch, w.head);
  row_numbers r;
#pragma unroll
  for (int half = 0; half < 2; half++) {
    const int64_t query = w.row + row_of(2 * half);
    r.lse[half] = query < a.queries ? lse.at[query * lse.row] * LOG2_E : 0;
    r.delta[half] = query < a.queries ? delta.at[query] : 0;
  }
  return r;
}

template <typename T, int D>
static __global__ void __launch_bounds__(THREADS, 3) attention_tensor_dq(gp_attention a) {
  const int N = OTHERS;
  typedef dq_tiles<T, D> shared;
  GP_SHARED(shared, t);
  const work w = work_of<SIDE>(a, {a.heads, a.queries, D}, a.causal);
  const head_at at = {(int)w.batch, (int)w.head};
  const float keep = dropout_of<float>(a, w.batch, w.head).keep;
  const row_numbers r = numbers_of(a, w);
  const int row = (int)w.row, keys = (int)a.keys;
  const int end = a.causal && row + SIDE < keys ? row + SIDE : keys;
  uint32_t kept = 0;
  float dq[D / 8][4] = {};
  fetch_rows(t->q, head_of<T>(a.q, w.batch, w.head, a.queries, a.width), row);
  fetch_rows(t->d_o, head_of<T>(a.d_o, w.batch, w.head, a.queries, a.width), row);
  fetch_keys(a, at, t->k[0], t->v[0], 0);
  int now = 0;
  for (int key = 0; key < end; key += N, now ^= 1) {
    gp_copies_wait();
    __syncthreads();
    if (key + N < end) fetch_keys(a, at, t->k[now ^ 1], t->v[now ^ 1], key + N);
    if (a.dropout > 0) /* for 64 keys at once */
      kept = key % SIDE == 0 ? draw_kept(dropout_of<float>(a, w.batch, w.head), row, key)
                             : kept >> N / 2 % 32;
    strip<N> s, ds;
    outer_product<T, N, D>(s, t->q, t->k[now]);
    to_scores<T, N, false>(a, at, row, key, s);
    outer_product<T, N, D>(ds, t->d_o, t->v[now]);
#pragma unroll
    for (int c = 0; c < N / 8; c++)
#pragma unroll
      for (int e = 0; e < 4; e++)
        gradient(r.lse[e / 2], r.delta[e / 2], a.dropout > 0 ? factor_of(keep, kept, c, e) : 1.0f,
                 s[c][e], ds[c][e]);
    add_rows<T, N, D>(dq, ds, t->k[now]);
  }
  const float scale[] = {(float)a.scale, (float)a.scale};
  write_rows<T, D>(head_of<T>(a.d_q, w.batch, w.head, a.queries, a.width), row, dq, scale);
}

/* ---- dk and dv ----------------------------------------------------------------------------- */

/* What a step of the walk over queries reads of them. kept: which of a query's probabilities are
 * kept; bit n of byte i is key i + 16 n of the block, the order of the words of a block of
 * Philox. */
template <typename T, int D> struct query_tiles {
  half_tile<T, OTHERS, D> q, d_o;
  float lse[OTHERS], delta[OTHERS];
  uint8_t kept[OTHERS][16];
};

template <typename T, int D> struct dk_dv_tiles {
  half_tile<T, SIDE, D> k, v;
  query_tiles<T, D> queries[2];
};

template <typename T, int D>
static __device__ inline void fetch_queries(const gp_attention &a, head_at at, query_tiles<T, D> &t,
                                            int query, int key) {
  fetch_rows(t.q, head_of<T>(a.q, at.batch, at.head, a.queries, a.width), query);
  fetch_rows(t.d_o, head_of<T>(a.d_o, at.batch, at.head, a.queries, a.width), query);
  fetch_numbers<OTHERS>(t.lse, head_of<float>(a.lse, at.batch, at.head, a.queries, 1), query,
                        threadIdx.x);
  fetch_numbers<OTHERS>(t.delta, deltas_of(a, at.batch, at.head), query, (int)threadIdx.x - OTHERS);
  if (!(a.dropout > 0)) return;
  const dropout<float> d = dropout_of<float>(a, at.batch, at.head);
#pragma unroll 1
  for (int i = threadIdx.x; i < OTHERS * 16; i += THREADS) {
    uint32_t word[STEP];
    draw_words<float, SIDE>(d, query + i / 16, key + i % 16, word);
    uint8_t bits = 0;
#pragma unroll
    for (int n = 0; n < STEP; n++) bits |= (uint8_t)((word[n] >= d.threshold) << n);
    t.kept[i / 16][i % 16] = bits;
  }
}

/* Compute the lane's gradients; its rows are keys, its columns queries. */
template <typename T, int D>
static __device__ inline void gradients(const gp_attention &a, const query_tiles<T, D> &t,
                                        float keep, strip<OTHERS> &s, strip<OTHERS> &ds) {
#pragma unroll
  for (int c = 0; c < OTHERS / 8; c++)
#pragma unroll
    for (int e = 0; e < 4; e++) {
      const int query = column_of(c, e), key = row_of(e);
      float factor = 1;
      if (a.dropout > 0) factor = t.kept[query][key % 16] >> key / 16 & 1 ? keep : 0.0f;
      gradient(t.lse[query] * LOG2_E, t.delta[query], factor, s[c][e], ds[c][e]);
    }
}

/* Add the gradients that come from one head of the queries. */
template <typename T, int D>
static __device__ inline void walk_queries(const gp_attention &a, head_at at, dk_dv_tiles<T, D> &t,
                                           int key, float d_kv[2][D / 8][4]) {
  const int N = OTHERS;
  const float keep = dropout_of<float>(a, at.batch, at.head).keep;
  const int queries = (int)a.queries;
  int query = a.causal ? key : 0;
  fetch_queries(a, at, t.queries[0], query, key);
  for (int now = 0; query < queries; query += N, now ^= 1) {
    gp_copies_wait();
    __syncthreads();
    if (query + N < queries) fetch_queries(a, at, t.queries[now ^ 1], query + N, key);
    const query_tiles<T, D> &tile = t.queries[now];
    strip<N> s, ds;
    outer_product<T, N, D>(s, t.k, tile.q);
    to_scores<T, N, true>(a, at, key, query, s);
    outer_product<T, N, D>(ds, t.v, tile.d_o);
    gradients(a, tile, keep, s, ds);
    add_rows<T, N, D>(d_kv[1], s, tile.d_o);
    add_rows<T, N, D>(d_kv[0], ds, tile.q);
  }
}

/* Blocks that a multiprocessor must hold, which bounds the registers. */
template <int D> static constexpr int dk_dv_blocks() { return D <= 64 ? 3 : 2; }

template <typename T, int D>
static __global__ void __launch_bounds__(THREADS, dk_dv_blocks<D>())
    attention_tensor_dk_dv(gp_attention a) {
  typedef dk_dv_tiles<T, D> shared;
  GP_SHARED(shared, t);
  const work w = work_of<SIDE>(a, {a.groups, a.keys, D}, false);
  const int row = (int)w.row;
  float d_kv[2][D / 8][4] = {};
  fetch_rows(t->k, head_of<T>(a.k, w.batch, w.head, a.keys, a.width), row);
  fetch_rows(t->v, head_of<T>(a.v, w.batch, w.head, a.keys, a.width), row);
  const int shared_by = (int)sharers(a), first = (int)w.head * shared_by;
  for (int i = 0; i < shared_by; i++) {
    if (i > 0) __syncthreads(); /* the tiles of the head before are no longer read */
    walk_queries(a, {(int)w.batch, first + i}, *t, row, d_kv);
  }
  gp_copies_wait(); /* needed if no query sees the keys */
  const float one[] = {1, 1}, scale[] = {(float)a.scale, (float)a.scale};
  write_rows<T, D>(head_of<T>(a.d_k, w.batch, w.head, a.keys, a.width), row, d_kv[0], scale);
  write_rows<T, D>(head_of<T>(a.d_v, w.batch, w.head, a.keys, a.width), row, d_kv[1], one);
}

/* ---- launching ----------------------------------------------------------------------------- */

template <typename T, int D> static gp_status launch(gp_gpu *gpu, const gp_attention *a) {
  const int64_t by_key = count_blocks(a, {a->groups, a->keys, D}, SIDE);
  const int64_t by_query = count_blocks(a, {a->heads, a->queries, D}, SIDE);
  if (by_key == 0 || (by_query == 0 && a->queries > 0)) return gp_flash_too_many(a);
  GP_GPU_TRY(GP_LAUNCH(gpu, (attention_tensor_dk_dv<T, D>), (unsigned)by_key, THREADS,
                       sizeof(dk_dv_tiles<T, D>), *a));
  if (by_query == 0) return GP_OK;
  return GP_LAUNCH(gpu, (attention_tensor_dq<T, D>), (unsigned)by_query, THREADS,
                   sizeof(dq_tiles<T, D>), *a);
}

template <typename T> static gp_status launch_by_width(gp_gpu *gpu, const gp_attention *a) {
  return a->width <= 64 ? launch<T, 64>(gpu, a) : launch<T, 128>(gpu, a);
}

gp_status gp_tensor_backward(gp_gpu *gpu, const gp_attention *a) {
  if (a->batches * a->heads == 0) return GP_OK;
  return a->dtype == GP_F16 ? launch_by_width<gp_f16>(gpu, a) : launch_by_width<gp_bf16>(gpu, a);
}
