/* ops/attention/flash.cu - the forward pass of flash.cuh.
 *
 * A block makes the outputs of one tile of queries, walking over the keys with a running maximum
 * and sum. Wide heads (over CHUNKS tiles) are cut into groups of output columns, each of which
 * computes the scores again. */
#include "ops/attention/flash.cuh"

#include "ops/attention/flash_scores.cuh"

/* Running softmax of a thread's rows; all threads of a row hold the same. */
template <typename C> struct running { C top[STEP], sum[STEP]; };

/* ---- a tile of scores ---------------------------------------------------------------------- */

/* Turn products into scores. */
template <typename T, int N>
static __device__ void scale_and_mask(const gp_attention &a, const char *mask, int64_t query,
                                      int64_t key, gp_compute<T> s[STEP][STEP]) {
  const place<N> at;
  const int span = place<N>::span;
#pragma unroll
  for (int i = 0; i < STEP; i++)
#pragma unroll
    for (int j = 0; j < STEP; j++)
      s[i][j] = score_of<T>(a, mask, query + at.y + i * span, key + at.x + j * span, s[i][j]);
}

/* The threads of a row are neighbours in a warp; all of them reduce by the same tree. */
template <typename C, int N> static __device__ C row_max(C x) {
#pragma unroll
  for (int lane = place<N>::span / 2; lane > 0; lane /= 2) {
    const C other = __shfl_xor_sync(0xffffffffu, x, lane);
    x = other > x ? other : x;
  }
  return x;
}

template <typename C, int N> static __device__ C row_sum(C x) {
#pragma unroll
  for (int lane = place<N>::span / 2; lane > 0; lane /= 2)
    x += __shfl_xor_sync(0xffffffffu, x, lane);
  return x;
}

/* Turn the scores of row i into exponentials. Return the factor for the sums and outputs so
 * far. If no key has been seen yet there is no largest score: any number serves, and all
 * exponentials are 0. */
template <typename C, int N> static __device__ C exponentials(running<C> &r, int i, C s[STEP]) {
  C top = s[0];
#pragma unroll
  for (int j = 1; j < STEP; j++) top = s[j] > top ? s[j] : top;
  top = row_max<C, N>(top);
  top = r.top[i] > top ? r.top[i] : top;
  const C base = top == -C(INFINITY) ? C(0) : top, factor = exponential(r.top[i] - base);
  C sum = 0;
#pragma unroll
  for (int j = 0; j < STEP; j++) s[j] = exponential(s[j] - base), sum += s[j];
  r.sum[i] = r.sum[i] * factor + row_sum<C, N>(sum);
  r.top[i] = top;
  return factor;
}

/* Drop after the sums: what is dropped counts in them. */
template <typename C, int N>
static __device__ void drop(const dropout<C> &d, int64_t query, int64_t key, C s[STEP][STEP]) {
  const place<N> at;
#pragma unroll
  for (int i = 0; i < STEP; i++) {
    C factor[STEP];
    draw<C, N>(d, query + at.y + i * place<N>::span, key + at.x, factor);
#pragma unroll
    for (int j = 0; j < STEP; j++) s[i][j] *= factor[j];
  }
}

/* ---- kernel -------------------------------------------------------------------------------- */

/* The outputs of a block, and the running sums on the way to them. */
template <typename T, int N, int CHUNKS> struct forward_state {
  typedef gp_compute<T> C;
  running<C> rows;
  C out[CHUNKS][STEP][STEP];

  __device__ forward_state() {
    for (int i = 0; i < STEP; i++) rows.top[i] = -C(INFINITY), rows.sum[i] = 0;
    for (int c = 0; c < CHUNKS; c++)
      for (int i = 0; i < STEP * STEP; i++) out[c][i / STEP][i % STEP] = 0;
  }

  /* Turn scaled scores into exponentials, and rescale the outputs so far. */
  __device__ void soften(C s[STEP][STEP]) {
#pragma unroll
    for (int i = 0; i < STEP; i++) {
      const C factor = exponentials<C, N>(rows, i, s[i]);
#pragma unroll
      for (int c = 0; c < CHUNKS; c++)
#pragma unroll
        for (int j = 0; j < STEP; j++) out[c][i][j] *= factor;
    }
  }

  /* out += scores v */
  __device__ void add_values(tiles<C, N> &t, const matrix<T> &v, int64_t key, int64_t column) {
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
      load<T, N>(t.right, v, key, column + c * N);
      __syncthreads();
      add_product(out[c], t.scores, t.right);
      __syncthreads();
    }
  }

  /* A row whose keys are all masked has the sum 0; its zeros stay as they are. */
  __device__ void finish(const matrix<T> &o, int64_t query, int64_t column) {
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
#pragma unroll
      for (int i = 0; i < STEP; i++)
#pragma unroll
        for (int j = 0; j < STEP; j++) out[c][i][j] /= rows.sum[i] == 0 ? C(1) : rows.sum[i];
      write<T, N>(o, query, column + c * N, out[c]);
    }
  }
};

/* Write lse, by one thread a row of the first group of columns. */
template <typename C, int N>
static __device__ void write_lse(const gp_attention &a, const work &w, const running<C> &rows) {
  const place<N> at;
  if (at.x != 0 || w.column != 0) return;
  const matrix<C> lse = head_of<C>(a.lse, w.batch, w.head, a.queries, 1);
  for (int i = 0; i < STEP; i++) {
    const int64_t query = w.row + at.y + i * place<N>::span;
    const C value = rows.sum[i] == 0 ? C(0) : rows.top[i] + logarithm(rows.sum[i]);
    if (query < a.queries) lse.at[query * lse.row] = value;
  }
}

/* Count the keys that the queries of a tile see. */
static __device__ inline int64_t keys_seen(const gp_attention &a, int64_t query, int n) {
  return a.causal && query + n < a.keys ? query + n : a.keys;
}

template <typename T, int CHUNKS>
static __global__ void __launch_bounds__(threads_of<T>(), resident<T>(CHUNKS))
    attention_forward(gp_attention a) {
  typedef gp_compute<T> C;
  const int N = side_of<T>::rows;
  typedef tiles<C, N> shared;
  GP_SHARED(shared, t);
  const work w = work_of<N>(a, {a.heads, a.queries, CHUNKS * N}, a.causal);
  const int64_t group = w.head / sharers(a);
  const matrix<T> q = value_of<T>(a, a.q, w.batch, w.head, a.queries);
  const matrix<T> k = value_of<T>(a, a.k, w.batch, group, a.keys);
  const matrix<T> v = value_of<T>(a, a.v, w.batch, group, a.keys);
  const char *mask = mask_of<T>(a, w.batch, w.head);
  const dropout<C> d = dropout_of<C>(a, w.batch, w.head);
  forward_state<T, N, CHUNKS> state;
  for (int64_t key = 0; key < keys_seen(a, w.row, N); key += N) {
    C s[STEP][STEP];
    outer<T, N>(s, *t, q, w.row, k, key, key == 0);
    scale_and_mask<T, N>(a, mask, w.row, key, s);
    state.soften(s);
    if (d.on) drop<C, N>(d, w.row, key, s);
    put(t->scores, s);
    state.add_values(*t, v, key, w.column);
  }
  write_lse<C, N>(a, w, state.rows);
  state.finish(value_of<T>(a, a.o, w.batch, w.head, a.queries), w.row, w.column);
}

/* ---- launching ----------------------------------------------------------------------------- */

gp_status gp_flash_too_many(const gp_attention *a) {
  return gp_gpu_fail(GP_EUNSUPPORTED,
                     "attention: %lld heads of %lld queries and %lld keys are too many",
                     (long long)(a->batches * a->heads), (long long)a->queries, (long long)a->keys);
}

template <typename T, int CHUNKS> static gp_status launch(gp_gpu *gpu, const gp_attention *a) {
  const int n = side_of<T>::rows, threads = (n / STEP) * (n / STEP);
  const int64_t blocks = count_blocks(a, {a->heads, a->queries, CHUNKS * n}, n);
  if (blocks == 0) return gp_flash_too_many(a);
  return GP_LAUNCH(gpu, (attention_forward<T, CHUNKS>), (unsigned)blocks, threads,
                   sizeof(tiles<gp_compute<T>, side_of<T>::rows>), *a);
}

/* Choose how many columns of the output to make at once: as many as the registers hold. */
template <typename T> static gp_status launch_by_width(gp_gpu *gpu, const gp_attention *a) {
  const int n = side_of<T>::rows;
  if constexpr (has_fewer<T>()) {
    if (a->width <= n) return launch<T, 1>(gpu, a);
    if (a->width <= 2 * n) return launch<T, 2>(gpu, a);
  }
  return launch<T, most_columns<T>()>(gpu, a);
}

gp_status gp_flash_forward(gp_gpu *gpu, const gp_attention *a) {
  if (a->batches * a->heads == 0 || a->queries == 0) return GP_OK;
  GP_BY_ELEMENT(a->dtype, return launch_by_width<T>(gpu, a));
}
