/* ops/index/gather.cu - see gather.c: elements of lines by positions, and sums by positions.
 *
 * A thread makes one element of the result. For a sum it goes through all positions of its line
 * and adds those that are its own, in order: nothing is atomic, and no bit depends on which
 * thread comes first. Positions of long lines are sorted by the element that they add to
 * (ops/dense/sort.cuh), so that a thread finds its own side by side, in the same order. */
#include "ops/dense/sort.cuh"
#include "ops/ids.cuh"
#include "ops/index/scan.cuh"

enum { THREADS = 256 };

/* Check a position, which counts from 1; gp_id_check takes numbers from 0. */
static __device__ inline bool is_position(const gp_ids &ids, const int64_t *positions, int64_t at) {
  const int64_t position = positions[at];
  if (position >= 1 && position <= ids.count) return true;
  atomicMin((unsigned long long *)&ids.fault->key,
            (unsigned long long)ids.tag << 32 | (uint32_t)at);
  return false;
}

/* ---- gather --------------------------------------------------------------------------------- */

template <typename T> struct gather {
  gp_ids ids;
  const T *x;
  const int64_t *positions;
  T *y;
  gp_axis from, to;
};

/* Elements whose position is out of range are zero. */
template <typename T> static __global__ void gather_kernel(gather<T> g, int64_t n) {
  for (int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x; at < n;
       at += (int64_t)gridDim.x * THREADS) {
    const int64_t outer = at / (g.to.size * g.to.inner), j = at % g.to.inner;
    T value = 0;
    if (is_position(g.ids, g.positions, at))
      value = g.x[(outer * g.from.size + g.positions[at] - 1) * g.from.inner + j];
    g.y[at] = value;
  }
}

template <typename T> static gp_status launch(gp_gpu *gpu, const gp_gpu_call *call) {
  const gp_arg *in = call->op.in, *out = call->op.out;
  const int64_t dim = call->op.attr->gather.dim, n = gp_numel_of(out[0].meta);
  const gp_axis from = gp_axis_of(&in[0].meta->shape, dim);
  const gather<T> g = {gp_ids_of(call, 1, from.size),
                       (const T *)in[0].data,
                       (const int64_t *)in[1].data,
                       (T *)out[0].data,
                       from,
                       gp_axis_of(&out[0].meta->shape, dim)};
  if (n == 0) return GP_OK;
  GP_GPU_TRY(GP_LAUNCH(gpu, gather_kernel<T>, gp_blocks(n, THREADS), THREADS, 0, g, n));
  return gp_ids_finish(gpu, g.ids);
}

/* Choose the kernel by the size of an element. */
static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  switch (gp_item_of(call->op.out[0].meta->dtype)) {
  case 1: return launch<uint8_t>(gpu, call);
  case 2: return launch<uint16_t>(gpu, call);
  case 4: return launch<uint32_t>(gpu, call);
  default: return launch<uint64_t>(gpu, call);
  }
}

const gp_gpu_kernel gp_gpu_gather = {run, NULL};

/* ---- scatter_sum ---------------------------------------------------------------------------- */

template <typename T> struct scatter {
  gp_ids ids;
  const T *source;
  const int64_t *positions;
  T *y;
  gp_axis from, to;
};

/* The threads of the first element of each line report positions that are out of range. */
template <typename T> static __global__ void scatter_kernel(scatter<T> s, int64_t n) {
  for (int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x; at < n;
       at += (int64_t)gridDim.x * THREADS) {
    const int64_t line = at / s.to.inner, outer = line / s.to.size;
    const int64_t mine = line - outer * s.to.size + 1;
    const int64_t first = outer * s.from.size * s.from.inner + at % s.to.inner;
    typename gp_number<T>::wide sum = 0;
#pragma unroll 4
    for (int64_t i = 0; i < s.from.size; i++) {
      const int64_t k = first + i * s.from.inner;
      if (mine == 1 && !is_position(s.ids, s.positions, k)) continue;
      if (s.positions[k] == mine) sum += gp_number<T>::load(s.source[k]);
    }
    s.y[at] = gp_number<T>::store(sum);
  }
}

/* ---- long lines ------------------------------------------------------------------------------ */

/* Make the entries of n elements of the source: to which element of the result they are added. `to`
 * has `made` elements; those whose position is out of range come behind all. */
template <typename T>
static __global__ void scatter_entries(scatter<T> s, gp_entry *entries, int64_t n, int64_t made) {
  for (int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x; at < n;
       at += (int64_t)gridDim.x * THREADS) {
    const int64_t outer = at / (s.from.size * s.from.inner), j = at % s.from.inner;
    int64_t to = made;
    if (is_position(s.ids, s.positions, at))
      to = (outer * s.to.size + s.positions[at] - 1) * s.to.inner + j;
    entries[at] = (gp_entry)to << 32 | (uint32_t)at;
  }
}

/* Return where the entries of `id` begin. */
static __device__ inline int64_t first_entry(const gp_entry *entries, int64_t n, uint32_t id) {
  int64_t low = 0, high = n;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (gp_entry_id(entries[middle]) < id)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

template <typename T>
static __global__ void scatter_sorted(scatter<T> s, const gp_entry *entries, int64_t n,
                                      int64_t made) {
  for (int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x; at < made;
       at += (int64_t)gridDim.x * THREADS) {
    typename gp_number<T>::wide sum = 0;
    int64_t e = first_entry(entries, n, (uint32_t)at);
    for (; e < n && gp_entry_id(entries[e]) == (uint32_t)at; e++)
      sum += gp_number<T>::load(s.source[(uint32_t)entries[e]]);
    s.y[at] = gp_number<T>::store(sum);
  }
}

template <typename T>
static gp_status sum_long(gp_gpu *gpu, const scatter<T> &s, int64_t n, int64_t made,
                          void *scratch) {
  gp_entry *const arrays[2] = {(gp_entry *)scratch, (gp_entry *)scratch + n};
  const gp_sort sort = gp_sort_plan(n, (uint64_t)made);
  const gp_entry *sorted;
  GP_GPU_TRY(
      GP_LAUNCH(gpu, scatter_entries<T>, gp_blocks(n, THREADS), THREADS, 0, s, arrays[0], n, made));
  GP_GPU_TRY(gp_sort_run(gpu, sort, arrays, (uint32_t *)(arrays[1] + n), &sorted));
  return GP_LAUNCH(gpu, scatter_sorted<T>, gp_blocks(made, THREADS), THREADS, 0, s, sorted, n,
                   made);
}

/* Entries have 32 bits for a place in the result, and as many for one in the source. */
static bool is_long(const gp_call *call) {
  const gp_axis from = gp_axis_of(&call->in[0].meta->shape, call->attr->scatter_sum.dim);
  return from.size > GP_SCAN_LONG && gp_numel_of(call->in[0].meta) < (int64_t)UINT32_MAX &&
         gp_numel_of(call->out[0].meta) < (int64_t)UINT32_MAX;
}

static gp_status prepare_sum(gp_gpu *gpu, const gp_call *call, size_t *scratch) {
  const int64_t n = gp_numel_of(call->in[0].meta);
  const gp_sort s = gp_sort_plan(n, UINT32_MAX);
  (void)gpu;
  *scratch = 0;
  if (is_long(call))
    *scratch = 2 * (size_t)n * sizeof(gp_entry) + gp_sort_counts(&s) * sizeof(uint32_t);
  return GP_OK;
}

/* ---- launching ------------------------------------------------------------------------------- */

template <typename T> static gp_status launch_sum(gp_gpu *gpu, const gp_gpu_call *call) {
  const gp_arg *in = call->op.in, *out = call->op.out;
  const int64_t dim = call->op.attr->scatter_sum.dim, n = gp_numel_of(out[0].meta);
  const gp_axis to = gp_axis_of(&out[0].meta->shape, dim);
  const scatter<T> s = {gp_ids_of(call, 1, to.size),         (const T *)in[0].data,
                        (const int64_t *)in[1].data,         (T *)out[0].data,
                        gp_axis_of(&in[0].meta->shape, dim), to};
  if (n == 0) return GP_OK;
  if (is_long(&call->op))
    GP_GPU_TRY(sum_long(gpu, s, gp_numel_of(in[0].meta), n, call->scratch));
  else
    GP_GPU_TRY(GP_LAUNCH(gpu, scatter_kernel<T>, gp_blocks(n, THREADS), THREADS, 0, s, n));
  return gp_ids_finish(gpu, s.ids);
}

static gp_status run_sum(gp_gpu *gpu, const gp_gpu_call *call) {
  GP_BY_NUMBER(call->op.in[0].meta->dtype, return launch_sum<T>(gpu, call));
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_scatter_sum = {run_sum, prepare_sum};
