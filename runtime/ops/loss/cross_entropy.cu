/* ops/loss/cross_entropy.cu - see cross_entropy.c: losses of rows of logits, and their gradients.
 *
 * Logits are the largest value of a language model: the forward pass reads them once, the backward
 * pass reads and writes them once. Loss and stats of half logits are f32. */
#include "ops/long_rows.cuh"
#include "ops/loss/rows.cuh"
#include "ops/short_rows.cuh"

/* ---- forward ------------------------------------------------------------------------------- */

template <typename T> struct losses {
  const T *x;
  gp_ids ids;
  void *loss, *stats;
  gp_dtype dtype; /* of loss and stats */
  int64_t rows, n;
  double smoothing;
  bool paired;
};

/* nll = log(sum exp(x - top)) + top - x[class]. In this order the parts keep their digits, and they
 * keep them in stats because they are stored separately: added, a large logit would swallow the
 * log. below: the sum of top - x over all logits. */
template <typename T>
static __device__ void put_loss(const losses<T> &a, int64_t row, gp_online<gp_compute<T>> o,
                                gp_compute<T> below) {
  typedef gp_compute<T> A;
  const A rest = gp_log(o.sum), smoothing = (A)a.smoothing;
  const int64_t id = gp_id_check(a.ids, row, true);
  A loss = 0;
  if (id >= 0) loss = rest + (o.top - gp_load(a.x[row * a.n + id]));
  if (id >= 0 && smoothing != 0)
    loss = (1 - smoothing) * loss + smoothing * (rest + below / (A)a.n);
  gp_put(a.loss, a.dtype, row, loss);
  gp_put(a.stats, a.dtype, 2 * row, o.top);
  gp_put(a.stats, a.dtype, 2 * row + 1, o.sum);
}

/* A warp works on a row. It sums the distances from the top before x becomes its exponentials. */
template <typename T, int E>
static __global__ void GP_SHORT_BOUNDS(T, E) losses_short(losses<T> a) {
  typedef gp_compute<T> A;
  const int64_t row = gp_short_row();
  if (row >= a.rows) return;
  A x[E], below = 0;
  gp_lanes_read<T>(x, a.x + row * a.n, (int)a.n, a.paired, (A)-INFINITY);
  const A top = gp_lanes_max(x);
  if (a.smoothing != 0) {
    A even = 0, odd = 0;
#pragma unroll
    for (int e = 0; e < E; e++) {
      A *lane = e % 2 ? &odd : &even;
      if (gp_lane_at(e) < (int)a.n) *lane = gp_plus(*lane, top - x[e]);
    }
    below = gp_lanes_sum(even, odd);
  }
#pragma unroll
  for (int e = 0; e < E; e++) x[e] = gp_exp_of<T>(x[e] - top);
  const gp_online<A> o = {top, gp_lanes_total(x)};
  if (threadIdx.x == 0) put_loss(a, row, o, below);
}

/* Sum top - x over a row. It is a pass of its own, since only smoothing needs it. */
template <typename T>
static __device__ gp_compute<T> long_below(const gp_long_row<T> &x, gp_compute<T> top) {
  gp_compute<T> below = 0;
  for (int i = 0; i < gp_long_count(x); i++) {
    const gp_pack<T> group = gp_long_read(x, i, T());
#pragma unroll
    for (int k = 0; k < gp_pack<T>::count; k++)
      if (gp_long_at(x, i, k) < x.n) below = gp_plus(below, top - gp_load(group.at[k]));
  }
  return gp_block_sum(below);
}

/* A block works on a row, and reads it once unless labels are smoothed: it keeps nothing, since a
 * vocabulary is too long for shared memory. One thread makes the loss and the statistics. */
template <typename T> static __global__ void losses_long(losses<T> a) {
  typedef gp_compute<T> A;
  const int64_t row = blockIdx.x;
  const T least = gp_store<T>(-INFINITY);
  const gp_long_row<T> x = gp_long_row_of<T>(a.x + row * a.n, a.n, NULL);
  gp_online<A> o = {(A)-INFINITY, 0};
#pragma unroll 2
  for (int i = 0; i < gp_long_count(x); i++) gp_online_add(&o, gp_long_read(x, i, least));
  o = gp_online_join<T>(o);
  const A below = a.smoothing == 0 ? A(0) : long_below(x, o.top);
  if (threadIdx.x == 0) put_loss(a, row, o, below);
}

template <typename T> static gp_status launch_losses(gp_gpu *gpu, const losses<T> &a) {
  if (a.n <= GP_SHORT_ROW)
    GP_BY_SHORT(a.n, return GP_LAUNCH(gpu, (losses_short<T, E>), gp_short_grid(a.rows),
                                      gp_short_block(), 0, a));
  return GP_LAUNCH(gpu, losses_long<T>, dim3((unsigned)a.rows), gp_long_threads(a.n, sizeof(T)), 0,
                   a);
}

template <typename T> static gp_status forward(gp_gpu *gpu, const gp_gpu_call *call) {
  const gp_arg *in = call->op.in, *out = call->op.out;
  losses<T> a = {};
  a.x = (const T *)in[0].data, a.ids = gp_targets_of(call, call->op.attr->cross_entropy.ignore);
  a.loss = out[0].data, a.stats = out[1].data, a.dtype = out[0].meta->dtype;
  a.rows = gp_rows_of(in[0].meta), a.n = gp_width_of(in[0].meta);
  a.smoothing = call->op.attr->cross_entropy.smoothing;
  a.paired = gp_is_paired<T>(a.x, a.n);
  if (a.rows == 0) return GP_OK;
  GP_GPU_TRY(launch_losses(gpu, a));
  return gp_ids_finish(gpu, a.ids);
}

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  GP_BY_FLOAT(call->op.in[0].meta->dtype, return forward<T>(gpu, call));
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_cross_entropy = {run, NULL};

/* ---- gradient of the logits ---------------------------------------------------------------- */

template <typename T> struct gradients {
  const T *x;
  gp_strides x_rows;
  int64_t x_step; /* between the logits of a row */
  gp_ids ids;
  gp_row_values stats, dloss;
  T *dx;
  int64_t rows, n;
  double smoothing;
};

/* Read a group of the row, whose elements may lie x_step apart. */
template <typename T>
static __device__ gp_pack<T> logits_of(const gp_long_row<T> &x, int i, int64_t step) {
  gp_pack<T> group;
  if (step == 1) return gp_long_read(x, i, T());
#pragma unroll
  for (int k = 0; k < gp_pack<T>::count; k++) {
    const int64_t at = gp_long_at(x, i, k);
    group.at[k] = at < x.n ? x.data[at * step] : T();
  }
  return group;
}

/* d logits = dloss (softmax - target), the target being smoothed one-hot. Factors that all classes
 * share are multiplied before. A block has one row for each threadIdx.y; elements are independent,
 * so long and short rows are treated alike. Rows whose id is ignored, or is no class, get zeros. dx
 * may be x or, with two classes, the statistics: all lanes of a row that short have read them
 * before one writes. */
template <typename T> static __global__ void gradients_kernel(gradients<T> a) {
  typedef gp_compute<T> A;
  const int64_t row = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= a.rows) return;
  const int64_t id = gp_id_check(a.ids, row, threadIdx.x == 0);
  const A top = gp_row_value<A>(a.stats, 2 * row), sum = gp_row_value<A>(a.stats, 2 * row + 1);
  const A d = gp_row_value<A>(a.dloss, row), share = d / sum;
  __syncwarp();
  const A smoothing = (A)a.smoothing, even = smoothing / (A)a.n;
  const A each = d * even, hit = d * (even + (1 - smoothing));
  const gp_long_row<T> x = gp_long_row_of<T>(a.x + gp_offset_of(a.x_rows, row), a.n, NULL);
  const gp_long_row<T> dx = gp_long_row_of<T>(a.dx + row * a.n, a.n, NULL);
#pragma unroll 2
  for (int i = 0; i < gp_long_count(x); i++) {
    gp_pack<T> group = {};
    if (id >= 0) group = logits_of(x, i, a.x_step);
#pragma unroll
    for (int k = 0; k < gp_pack<T>::count; k++) {
      const A part = share * gp_exp_of<T>(gp_load(group.at[k]) - top);
      const A target = gp_long_at(x, i, k) == id ? hit : each;
      group.at[k] = gp_store<T>(id < 0 ? 0 : part - target);
    }
    gp_long_write(dx, i, group);
  }
}

/* The logits of a gradient may be a view, such as that of every position but the last; dx is
 * row-major. The width alone decides which kernel runs, as in the forward direction. */
template <typename T> static gp_status backward(gp_gpu *gpu, const gp_gpu_call *call) {
  const gp_arg *in = call->op.in;
  const gp_meta *x = in[0].meta;
  const int last = x->shape.rank - 1;
  gradients<T> a = {};
  a.x = (const T *)in[0].data, a.x_rows = gp_strides_of(x, last);
  a.x_step = x->shape.dim[last] > 1 ? x->stride[last] : 1;
  a.ids = gp_targets_of(call, call->op.attr->cross_entropy.ignore),
  a.stats = gp_row_values_of(&in[2]), a.dloss = gp_row_values_of(&in[3]);
  a.dx = (T *)call->op.out[0].data;
  a.rows = gp_rows_of(x), a.n = gp_width_of(x),
  a.smoothing = call->op.attr->cross_entropy.smoothing;
  if (a.rows == 0) return GP_OK;
  const bool is_short = a.n <= GP_SHORT_ROW;
  const dim3 block = is_short ? gp_short_block() : dim3(gp_long_threads(a.n, sizeof(T)));
  const dim3 grid = is_short ? gp_short_grid(a.rows) : dim3((unsigned)a.rows);
  GP_GPU_TRY(GP_LAUNCH(gpu, gradients_kernel<T>, grid, block, 0, a));
  return gp_ids_finish(gpu, a.ids);
}

static gp_status run_dx(gp_gpu *gpu, const gp_gpu_call *call) {
  GP_BY_FLOAT(call->op.in[0].meta->dtype, return backward<T>(gpu, call));
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_cross_entropy_dx = {run_dx, NULL};

/* ---- count --------------------------------------------------------------------------------- */

enum { COUNT_THREADS = 1024 }; /* one block: targets are few beside logits */

static __global__ void count_kernel(gp_ids ids, int64_t n, int64_t *count) {
  uint64_t mine = 0;
  for (int64_t i = threadIdx.x; i < n; i += COUNT_THREADS)
    mine += !(ids.has_ignore && gp_id_at(ids, i) == ids.ignore);
  mine = gp_block_sum(mine);
  if (threadIdx.x == 0) *count = (int64_t)mine;
}

static gp_status run_count(gp_gpu *gpu, const gp_gpu_call *call) {
  gp_ids ids = gp_ids_of(call, 0, 0);
  ids.has_ignore = call->op.attr->cross_entropy.ignore.given;
  ids.ignore = call->op.attr->cross_entropy.ignore.value;
  return GP_LAUNCH(gpu, count_kernel, 1, COUNT_THREADS, 0, ids, gp_numel_of(call->op.in[0].meta),
                   (int64_t *)call->op.out[0].data);
}

const gp_gpu_kernel gp_gpu_cross_entropy_count = {run_count, NULL};
