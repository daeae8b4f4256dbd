/* ops/attention/tensor/forward.cu - the forward pass of tensor.cuh.
 *
 * A block makes the outputs of 64 queries, walking over the keys with a running maximum and sum of
 * each row. */
#include "ops/attention/tensor/tensor.cuh"

#include "ops/attention/tensor/tile.cuh"

template <typename T, int D> struct forward_tiles {
  half_tile<T, D> q, k, v;
  kept_tile kept;
};

/* ---- softmax ------------------------------------------------------------------------------- */

/* Of a lane's two rows: the largest score so far, the same in the four lanes of a row, and the sum
 * of the exponentials of its own columns. */
struct running_rows {
  float top[2], sum[2];
};

/* The largest score of a row that a lane has, together with the other three. */
static __device__ inline float top_of(const strip s, int half) {
  float top = s[0][2 * half];
#pragma unroll
  for (int c = 0; c < SCORES; c++)
#pragma unroll
    for (int e = 0; e < 2; e++) top = s[c][2 * half + e] > top ? s[c][2 * half + e] : top;
#pragma unroll
  for (int step = 2; step > 0; step /= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, top, step);
    top = other > top ? other : top;
  }
  return top;
}

/* Scores of one of the rows become exponentials. Returns what its sums and outputs so far are to be
 * multiplied by.
 * Where no key has been seen yet, any number serves in place of the largest score. */
static __device__ inline float soften_row(running_rows &r, int half, strip s) {
  const float found = top_of(s, half), top = r.top[half] > found ? r.top[half] : found;
  const float base = top == -INFINITY ? 0 : top, factor = expf(r.top[half] - base);
  float sum = 0;
#pragma unroll
  for (int c = 0; c < SCORES; c++)
#pragma unroll
    for (int e = 2 * half; e < 2 * half + 2; e++) s[c][e] = expf(s[c][e] - base), sum += s[c][e];
  r.sum[half] = r.sum[half] * factor + sum;
  r.top[half] = top;
  return factor;
}

template <int D>
static __device__ inline void soften(running_rows &r, strip s, float out[D / 8][4]) {
#pragma unroll
  for (int half = 0; half < 2; half++) {
    const float factor = soften_row(r, half, s);
#pragma unroll
    for (int d = 0; d < D / 8; d++)
#pragma unroll
      for (int e = 2 * half; e < 2 * half + 2; e++) out[d][e] *= factor;
  }
}

/* ---- a tile of scores ---------------------------------------------------------------------- */

/* Products to scores. */
template <typename T>
static __device__ inline void mask_scores(const gp_attention &a, const char *mask, int64_t query,
                                          int64_t key, strip s) {
#pragma unroll
  for (int c = 0; c < SCORES; c++)
#pragma unroll
    for (int e = 0; e < 4; e++)
      s[c][e] = score_of<T>(a, mask, query + row_of(e), key + column_of(c, e), s[c][e]);
}

/* After the sums: what is dropped counts in them. */
static __device__ inline void drop(const kept_tile &kept, const dropout<float> &d, strip s) {
  if (!d.on) return;
#pragma unroll
  for (int c = 0; c < SCORES; c++)
#pragma unroll
    for (int e = 0; e < 4; e++) s[c][e] *= factor_of(kept, d, row_of(e), column_of(c, e));
}

/* ---- kernel -------------------------------------------------------------------------------- */

/* One over the sum of a row, 0 where there is none; the four lanes of a row add up theirs. lse is
 * written by the first of them. */
static __device__ inline float finish_row(const gp_attention &a, const work &w, running_rows &r,
                                          int half) {
#pragma unroll
  for (int step = 2; step > 0; step /= 2)
    r.sum[half] += __shfl_xor_sync(0xffffffffu, r.sum[half], step);
  const bool none = r.sum[half] == 0;
  const int64_t query = w.row + row_of(2 * half);
  const matrix<float> lse = head_of<float>(a.lse, w.batch, w.head, a.queries, 1);
  if (threadIdx.x % 4 == 0 && query < a.queries)
    lse.at[query * lse.row] = none ? 0 : r.top[half] + logf(r.sum[half]);
  return none ? 0 : 1 / r.sum[half];
}

/* Two barriers a tile: it is there, and it is no longer read. Several blocks of a multiprocessor
 * hide each other's waits for memory. */
template <typename T, int D>
static __global__ void __launch_bounds__(THREADS) attention_tensor_forward(gp_attention a) {
  typedef forward_tiles<T, D> shared;
  GP_SHARED(shared, t);
  const work w = work_of<SIDE>(a, {a.heads, a.queries, D}, a.causal);
  const int64_t group = w.head / sharers(a);
  const matrix<T> k = head_of<T>(a.k, w.batch, group, a.keys, a.width);
  const matrix<T> v = head_of<T>(a.v, w.batch, group, a.keys, a.width);
  const char *mask = mask_of<T>(a, w.batch, w.head);
  const dropout<float> d = dropout_of<float>(a, w.batch, w.head);
  running_rows rows = {{-INFINITY, -INFINITY}, {0, 0}};
  float out[D / 8][4] = {};
  load_rows(t->q, head_of<T>(a.q, w.batch, w.head, a.queries, a.width), w.row);
  for (int64_t key = 0; key < a.keys && !(a.causal && key >= w.row + SIDE); key += SIDE) {
    strip s;
    load_rows(t->k, k, key), load_rows(t->v, v, key);
    draw_tile(t->kept, d, w.row, key);
    __syncthreads();
    outer_product(s, t->q, t->k);
    mask_scores<T>(a, mask, w.row, key, s);
    soften<D>(rows, s, out);
    drop(t->kept, d, s);
    add_rows(out, s, t->v);
    __syncthreads();
  }
  const float factor[2] = {finish_row(a, w, rows, 0), finish_row(a, w, rows, 1)};
  write_rows<T, D>(head_of<T>(a.o, w.batch, w.head, a.queries, a.width), w.row, out, factor);
}

/* ---- launching ----------------------------------------------------------------------------- */

bool gp_tensor_takes(const gp_gpu *gpu, const gp_attention *a) {
  const bool halves = a->dtype == GP_BF16 || a->dtype == GP_F16;
  return halves && a->width <= 128 && gp_has_mma(gpu);
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
