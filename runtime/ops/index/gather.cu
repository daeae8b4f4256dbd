/* ops/index/gather.cu - see gather.c: elements of lines by positions, and sums by positions.
 *
 * A thread makes one element of the result. For a sum it goes through all positions of its line
 * and adds those that are its own, in order: nothing is atomic, and no bit depends on which
 * thread comes first. */
#include "ops/ids.cuh"
#include "ops/index/number.cuh"

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

template <typename T> static gp_status launch_sum(gp_gpu *gpu, const gp_gpu_call *call) {
  const gp_arg *in = call->op.in, *out = call->op.out;
  const int64_t dim = call->op.attr->scatter_sum.dim, n = gp_numel_of(out[0].meta);
  const gp_axis to = gp_axis_of(&out[0].meta->shape, dim);
  const scatter<T> s = {gp_ids_of(call, 1, to.size),         (const T *)in[0].data,
                        (const int64_t *)in[1].data,         (T *)out[0].data,
                        gp_axis_of(&in[0].meta->shape, dim), to};
  if (n == 0) return GP_OK;
  GP_GPU_TRY(GP_LAUNCH(gpu, scatter_kernel<T>, gp_blocks(n, THREADS), THREADS, 0, s, n));
  return gp_ids_finish(gpu, s.ids);
}

static gp_status run_sum(gp_gpu *gpu, const gp_gpu_call *call) {
  GP_BY_NUMBER(call->op.in[0].meta->dtype, return launch_sum<T>(gpu, call));
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_scatter_sum = {run_sum, NULL};
