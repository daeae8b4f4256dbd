/* ops/attention/tensor/forward.cu - the forward pass of tensor.cuh.
 *
 * A block makes the outputs of 64 queries, walking over the keys with a running maximum and sum of
 * each row. */
#include "ops/attention/tensor/tensor.cuh"

#include "ops/attention/tensor/tile.cuh"

template <typename T, int D> struct forward_tiles {
  half_tile<T, SIDE, D> q;
  half_tile<T, keys_of<D>::at_once, D> k[2], v[2];
};

/* ---- softmax ------------------------------------------------------------------------------- */

/* For each of a lane's two rows: the largest score so far, the same in the four lanes of a row, and
 * the sum of the exponentials of its own columns. */
struct running_rows {
  float top[2], sum[2];
};

/* Return the largest score of a row, over the four lanes that share it. */
template <int N> static __device__ inline float top_of(const strip<N> &s, int half) {
  float top = s[0][2 * half];
#pragma unroll
  for (int c = 0; c < N / 8; c++)
#pragma unroll
    for (int e = 0; e < 2; e++) top = fmaxf(s[c][2 * half + e], top);
#pragma unroll
  for (int step = 2; step > 0; step /= 2) top = fmaxf(__shfl_xor_sync(0xffffffffu, top, step), top);
  return top;
}

/* Turn the scores of one of the rows into exponentials. Return the factor for its sums and outputs
 * so far. If no key has been seen yet, any number serves in place of the largest score. */
template <int N> static __device__ inline float soften_row(running_rows &r, int half, strip<N> &s) {
  const float top = fmaxf(r.top[half], top_of<N>(s, half));
  const float base = top == -INFINITY ? 0 : top, factor = gp_exp2(r.top[half] - base);
  float sum = 0;
#pragma unroll
  for (int c = 0; c < N / 8; c++)
#pragma unroll
    for (int e = 2 * half; e < 2 * half + 2; e++) s[c][e] = gp_exp2(s[c][e] - base), sum += s[c][e];
  r.sum[half] = r.sum[half] * factor + sum;
  r.top[half] = top;
  return factor;
}

template <int N, int D>
static __device__ inline void soften(running_rows &r, strip<N> &s, float out[D / 8][4]) {
#pragma unroll
  for (int half = 0; half < 2; half++) {
    const float factor = soften_row<N>(r, half, s);
#pragma unroll
    for (int d = 0; d < D / 8; d++)
#pragma unroll
      for (int e = 2 * half; e < 2 * half + 2; e++) out[d][e] *= factor;
  }
}

/* Drop after the sums: what is dropped counts in them. */
template <int N> static __device__ inline void drop(float keep, uint32_t kept, strip<N> &s) {
#pragma unroll
  for (int c = 0; c < N / 8; c++)
#pragma unroll
    for (int e = 0; e < 4; e++) s[c][e] *= factor_of(keep, kept, c, e);
}

/* ---- kernel -------------------------------------------------------------------------------- */

/* Return one over the sum of a row, 0 if there is none; the four lanes of a row add up their sums.
 * The first of them writes lse. */
static __device__ inline float finish_row(const gp_attention &a, const work &w, running_rows &r,
                                          int half) {
#pragma unroll
  for (int step = 2; step > 0; step /= 2)
    r.sum[half] += __shfl_xor_sync(0xffffffffu, r.sum[half], step);
  const bool none = r.sum[half] == 0;
  const int64_t query = w.row + row_of(2 * half);
  const matrix<float> lse = head_of<float>(a.lse, w.batch, w.head, a.queries, 1);
  if (threadIdx.x % 4 == 0 && query < a.queries)
    lse.at[query * lse.row] = none ? 0 : r.top[half] * LN_2 + logf(r.sum[half]);
  return none ? 0 : 1 / r.sum[half];
}

template <typename T, int D>
static __global__ void __launch_bounds__(THREADS, 3) attention_tensor_forward(gp_attention a) {
  const int N = keys_of<D>::at_once;
  typedef forward_tiles<T, D> shared;
  GP_SHARED(shared, t);
  const work w = work_of<SIDE>(a, {a.heads, a.queries, D}, a.causal);
  const head_at at = {(int)w.batch, (int)w.head};
  const float keep = dropout_of<float>(a, w.batch, w.head).keep;
  const int row = (int)w.row, keys = (int)a.keys;
  const int end = a.causal && row + SIDE < keys ? row + SIDE : keys;
  running_rows rows = {{-INFINITY, -INFINITY}, {0, 0}};
  uint32_t kept = 0;
  float out[D / 8][4] = {};
  fetch_rows(t->q, head_of<T>(a.q, w.batch, w.head, a.queries, a.width), row);
  fetch_keys(a, at, t->k[0], t->v[0], 0);
  int now = 0;
  for (int key = 0; key < end; key += N, now ^= 1) {
    gp_copies_wait();
    __syncthreads();
    if (key + N < end) fetch_keys(a, at, t->k[now ^ 1], t->v[now ^ 1], key + N);
    if (a.dropout > 0) /* for 64 keys at once */
      kept = key % SIDE == 0 ? draw_kept(dropout_of<float>(a, w.batch, w.head), row, key)
                             : kept >> N / 2 % 32;
    strip<N> s;
    outer_product<T, N, D>(s, t->q, t->k[now]);
    to_scores<T, N, false>(a, at, row, key, s);
    soften<N, D>(rows, s, out);
    if (a.dropout > 0) drop<N>(keep, kept, s);
    add_rows<T, N, D>(out, s, t->v[now]);
  }
  const float factor[2] = {finish_row(a, w, rows, 0), finish_row(a, w, rows, 1)};
  write_rows<T, D>(head_of<T>(a.o, w.batch, w.head, a.queries, a.width), row, out, factor);
}

/* ---- launching ----------------------------------------------------------------------------- */

bool gp_tensor_takes(const gp_gpu *gpu, const gp_attention *a) {
  const bool halves = a->dtype == GP_BF16 || a->dtype == GP_F16;
  const bool counted = a->queries < 1 << 30 && a->keys < 1 << 30; /* int counts them */
  return halves && counted && a->width <= 128 && gp_has_mma(gpu);
}

template <typename T, int D> static gp_status launch(gp_gpu *gpu, const gp_attention *a) {
  const int64_t blocks = count_blocks(a, {a->heads, a->queries, D}, SIDE);
  if (blocks == 0) return gp_flash_too_many(a);
  return GP_LAUNCH(gpu, (attention_tensor_forward<T, D>), (unsigned)blocks, THREADS,
                   sizeof(forward_tiles<T, D>), *a);
}

template <typename T> static gp_status launch_by_width(gp_gpu *gpu, const gp_attention *a) {
  return a->width <= 64 ? launch<T, 64>(gpu, a) : launch<T, 128>(gpu, a);
}

gp_status gp_tensor_forward(gp_gpu *gpu, const gp_attention *a) {
  if (a->batches * a->heads == 0 || a->queries == 0) return GP_OK;
  return a->dtype == GP_F16 ? launch_by_width<gp_f16>(gpu, a) : launch_by_width<gp_bf16>(gpu, a);
}
