/* ops/norm/layer_norm_parts.cu - the gradients of layer norm in one pass over dy and x.
 *
 * A block takes the rows of a part (norm/parts.h), four at a time. A thread works on the same 16
 * bytes of each row: it keeps the weight there and the sums of dy h and dy in registers, and has
 * eight such reads in flight. The block reduces the two sums of all four rows together. Rows too
 * long for a block take two passes. The width and the dtype alone decide which it is. */
#include <string.h>

#include "ops/norm/layer_norm.cuh"
#include "ops/norm/parts.h"

enum { GP_PARTS_THREADS = 512 }; /* at most: that leaves each 128 registers */

template <typename T> static int64_t threads_of(int64_t n) {
  const int64_t groups = (n + gp_pack<T>::count - 1) / gp_pack<T>::count;
  return (groups + GP_WARP - 1) / GP_WARP * GP_WARP;
}

/* Give every thread the sums of `values` over the block. buffer: another one than in
 * the last call. */
template <int COUNT, typename A>
static __device__ void sum_values(A (&values)[COUNT], A (*buffer)[GP_WARP]) {
  const int warp = threadIdx.x / GP_WARP, warps = blockDim.x / GP_WARP;
#pragma unroll
  for (int v = 0; v < COUNT; v++) values[v] = gp_warp_sum(values[v]);
  if (threadIdx.x % GP_WARP == 0)
    for (int v = 0; v < COUNT; v++) buffer[v][warp] = values[v];
  __syncthreads();
#pragma unroll
  for (int v = 0; v < COUNT; v++) {
    values[v] = buffer[v][0];
    for (int w = 1; w < warps; w++) values[v] = gp_plus(values[v], buffer[v][w]);
  }
}

/* A pack as it lies in memory. Split up, it would need a register for every half. */
struct raw_words {
  uint4 of;
};

template <typename T> static __device__ inline gp_pack<T> pack_of(const raw_words &w) {
  gp_pack<T> pack;
  memcpy(&pack, &w.of, sizeof pack);
  return pack;
}

/* The values of some rows that a thread reads. */
template <typename T> struct row_group {
  raw_words dy[GP_NORM_ROWS], x[GP_NORM_ROWS], more[GP_NORM_ROWS];
  gp_compute<T> mean[GP_NORM_ROWS], rstd[GP_NORM_ROWS];
};

/* Read the columns of a thread: neighbours, or a block's threads apart, as gp_long_row has them. */
template <typename T, bool PACKED>
static __device__ inline raw_words columns_of(const T *row, const gp_column_group &group) {
  if constexpr (PACKED) {
    if (group.first >= group.width) return {};
    return {*reinterpret_cast<const uint4 *>(row + group.first)};
  } else {
    const gp_pack<T> x = gp_columns_load<false>(row, group);
    raw_words raw;
    memcpy(&raw.of, &x, sizeof x);
    return raw;
  }
}

template <typename T, bool PACKED>
static __device__ void read_rows(const layer<T> &a, int64_t row, int64_t end,
                                 const gp_column_group &group, row_group<T> *to) {
#pragma unroll
  for (int u = 0; u < GP_NORM_ROWS; u++) {
    const int64_t at = row + u < end ? row + u : end - 1; /* past the end: the last row again */
    to->dy[u] = columns_of<T, PACKED>(a.dy + at * a.n, group);
    to->x[u] = columns_of<T, PACKED>(a.x + at * a.n, group);
    to->mean[u] = gp_get<gp_compute<T>>(a.mean, a.stats, at);
    to->rstd[u] = gp_get<gp_compute<T>>(a.rstd, a.stats, at);
  }
}

/* Read the gradient that bypasses the layer: it is in flight while the block adds its sums. */
template <typename T, bool PACKED>
static __device__ void read_more(const layer<T> &a, int64_t row, int64_t end,
                                 const gp_column_group &group, row_group<T> *to) {
#pragma unroll
  for (int u = 0; u < GP_NORM_ROWS; u++) {
    const int64_t at = row + u < end ? row + u : end - 1;
    if (a.more) to->more[u] = columns_of<T, PACKED>(a.more + at * a.n, group);
  }
}

/* Make the compiler forget what it computed from a pack: 64 more numbers would not fit the
 * registers until they are needed again. */
static __device__ inline void forget(raw_words *w) {
#ifndef GP_CUDA_ON_HOST
  asm volatile("" : "+r"(w->of.x), "+r"(w->of.y), "+r"(w->of.z), "+r"(w->of.w));
#else
  (void)w;
#endif
}

template <typename T> struct part_sums {
  gp_compute<T> *dw, *db; /* [P, C] each */
  int64_t rows;           /* of a part */
};

/* Write the rows' dx, with the means of g = dy w and of g h over each row. */
template <typename T, bool PACKED>
static __device__ void write_rows(const layer<T> &a, int64_t row, int64_t end,
                                  const gp_column_group &group, const row_group<T> &r,
                                  const gp_compute<T> *w, const gp_compute<T> *sums) {
  typedef gp_compute<T> A;
#pragma unroll
  for (int u = 0; u < GP_NORM_ROWS; u++) {
    if (row + u >= end) continue;
    const A mean_g = sums[2 * u] / (A)a.n, mean_gh = sums[2 * u + 1] / (A)a.n;
    const gp_pack<T> x = pack_of<T>(r.x[u]), dy = pack_of<T>(r.dy[u]), more = pack_of<T>(r.more[u]);
    gp_pack<T> out;
#pragma unroll
    for (int k = 0; k < gp_pack<T>::count; k++) {
      const A h = (gp_load(x.at[k]) - r.mean[u]) * r.rstd[u];
      const A to = r.rstd[u] * (gp_load(dy.at[k]) * w[k] - mean_g - h * mean_gh);
      out.at[k] = gp_store<T>(a.more ? gp_load(more.at[k]) + to : to);
    }
    gp_columns_store<PACKED>(a.to + (row + u) * a.n, out, group);
  }
}

template <typename T, bool PACKED>
static __global__ void __launch_bounds__(GP_PARTS_THREADS)
    gradients_kernel(layer<T> a, part_sums<T> parts) {
  typedef gp_compute<T> A;
  const int count = gp_pack<T>::count;
  __shared__ A buffer[2][2 * GP_NORM_ROWS][GP_WARP];
  const int64_t first = (int64_t)blockIdx.x * parts.rows;
  const int64_t end = first + parts.rows < a.rows ? first + parts.rows : a.rows;
  const bool spread = a.n % count != 0;
  const gp_column_group group = {spread ? (int64_t)threadIdx.x : (int64_t)threadIdx.x * count,
                                 spread ? (int64_t)blockDim.x : 1, a.n, !spread};
  A w[count], dw[count] = {}, db[count] = {};
#pragma unroll
  for (int k = 0; k < count; k++) w[k] = group.at(k) < a.n ? gp_load(a.w[group.at(k)]) : A(0);
  for (int64_t row = first, turn = 0; row < end; row += GP_NORM_ROWS, turn ^= 1) {
    row_group<T> r;
    A sums[2 * GP_NORM_ROWS] = {};
    read_rows<T, PACKED>(a, row, end, group, &r);
#pragma unroll
    for (int u = 0; u < GP_NORM_ROWS; u++) {
      const gp_pack<T> x = pack_of<T>(r.x[u]), dy = pack_of<T>(r.dy[u]);
#pragma unroll
      for (int k = 0; k < count; k++) {
        const A d = gp_load(dy.at[k]), g = d * w[k];
        const A h = (gp_load(x.at[k]) - r.mean[u]) * r.rstd[u];
        sums[2 * u] = gp_plus(sums[2 * u], g);
        sums[2 * u + 1] = gp_plus(sums[2 * u + 1], g * h);
        if (row + u < end) dw[k] = gp_plus(dw[k], d * h), db[k] = gp_plus(db[k], d);
      }
      forget(&r.x[u]), forget(&r.dy[u]);
    }
    read_more<T, PACKED>(a, row, end, group, &r);
    sum_values(sums, buffer[turn]);
    write_rows<T, PACKED>(a, row, end, group, r, w, sums);
  }
#pragma unroll
  for (int k = 0; k < count; k++) {
    if (group.at(k) >= a.n) continue;
    parts.dw[blockIdx.x * a.n + group.at(k)] = dw[k];
    parts.db[blockIdx.x * a.n + group.at(k)] = db[k];
  }
}

/* ---- launching ----------------------------------------------------------------------------- */

/* Make dx first, then the sums of the parts. */
template <typename T>
static gp_status in_two_passes(gp_gpu *gpu, const gp_gpu_call *call, const layer<T> &a,
                               const part_sums<T> &parts) {
  const gp_dtype dtype = gp_sum_dtype(gp_compute<T>());
  gp_columns p = gp_columns_plan(1, a.rows, a.n, gp_pack<T>::count);
  p.segments = gp_norm_parts(a.rows), p.per_segment = parts.rows;
  GP_GPU_TRY(gp_gpu_layer_norm_dx.run(gpu, call));
  return gp_layer_norm_columns(
      gpu, a, p, gp_column_sinks<2>{{{parts.dw, dtype, false}, {parts.db, dtype, false}}});
}

template <typename T> static gp_status launch(gp_gpu *gpu, const gp_gpu_call *call) {
  const layer<T> a = gp_layer_norm_backward<T>(call);
  const int64_t threads = threads_of<T>(a.n), count = gp_norm_parts(a.rows);
  gp_compute<T> *sums = (gp_compute<T> *)call->op.out[1].data;
  const part_sums<T> parts = {sums, sums + count * a.n, gp_norm_part_rows(a.rows)};
  if (a.rows == 0 || a.n == 0) return GP_OK;
  if (threads > GP_PARTS_THREADS) return in_two_passes(gpu, call, a, parts);
  const bool packed = a.n % gp_pack<T>::count == 0 && gp_is_packed(a.dy) && gp_is_packed(a.x) &&
                      gp_is_packed(a.to) && gp_is_packed(a.more);
  const dim3 grid((unsigned)count), block((unsigned)threads);
  if (packed) return GP_LAUNCH(gpu, (gradients_kernel<T, true>), grid, block, 0, a, parts);
  return GP_LAUNCH(gpu, (gradients_kernel<T, false>), grid, block, 0, a, parts);
}

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  GP_BY_FLOAT(call->op.in[0].meta->dtype, return launch<T>(gpu, call));
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_layer_norm_parts_dx = {run, NULL};

/* ---- joining the parts --------------------------------------------------------------------- */

template <typename T> static gp_status join(gp_gpu *gpu, const gp_gpu_call *call) {
  const gp_shape *shape = &call->op.in[0].meta->shape;
  gp_columns p = {};
  p.outer = 1, p.segments = shape->dim[1], p.width = shape->dim[2];
  const gp_column_sinks<2> out = {{gp_sink_of(&call->op, 0), gp_sink_of(&call->op, 1)}};
  return gp_columns_join(gpu, (const T *)call->op.in[0].data, p, out);
}

static gp_status run_dw(gp_gpu *gpu, const gp_gpu_call *call) {
  return call->op.in[0].meta->dtype == GP_F64 ? join<double>(gpu, call) : join<float>(gpu, call);
}

const gp_gpu_kernel gp_gpu_layer_norm_parts_dw = {run_dw, NULL};
