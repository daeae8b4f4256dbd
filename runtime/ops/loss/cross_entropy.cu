/* ops/loss/cross_entropy.cu - see cross_entropy.c: losses of rows of logits, and their gradients.
 *
 * Logits are the largest value of a language model: the forward pass reads them once, the backward
 * pass reads and writes them once, and one kernel for both reads and writes them once. It has the
 * bits of the two. Rows may be padded (graph/pad.c). Loss and stats of half logits are f32. */
#include "ops/long_rows.cuh"
#include "ops/loss/rows.cuh"
#include "ops/short_rows.cuh"

/* ---- one row ------------------------------------------------------------------------------- */

/* What all kernels here read of logits, and the losses of their rows. */
template <typename T> struct losses {
  const T *x;
  int64_t distance; /* between rows */
  gp_ids ids;
  void *loss, *stats; /* each may be NULL */
  gp_dtype dtype;     /* of loss and stats */
  int64_t rows, n;
  double smoothing;
  bool paired;
};

/* A row's class, or -1, and its logit, which no thread may have written over yet. */
template <typename A> struct target {
  int64_t id;
  A hit;
};

template <typename T>
static __device__ target<gp_compute<T>> target_of(const losses<T> &a, int64_t row, bool first) {
  const int64_t id = gp_id_check(a.ids, row, first);
  return {id, id < 0 ? gp_compute<T>(0) : gp_load(a.x[row * a.distance + id])};
}

/* nll = log(sum exp(x - top)) + top - x[class]. In this order the parts keep their digits, and they
 * keep them in stats because they are stored separately: added, a large logit would swallow the
 * log. below: the sum of top - x over all logits. */
template <typename T>
static __device__ void put_loss(const losses<T> &a, int64_t row, target<gp_compute<T>> t,
                                gp_online<gp_compute<T>> o, gp_compute<T> below) {
  typedef gp_compute<T> A;
  const A rest = gp_log(o.sum), smoothing = (A)a.smoothing;
  A loss = 0;
  if (t.id >= 0) loss = rest + (o.top - t.hit);
  if (t.id >= 0 && smoothing != 0)
    loss = (1 - smoothing) * loss + smoothing * (rest + below / (A)a.n);
  if (a.loss) gp_put(a.loss, a.dtype, row, loss);
  if (!a.stats) return;
  gp_put(a.stats, a.dtype, 2 * row, o.top);
  gp_put(a.stats, a.dtype, 2 * row + 1, o.sum);
}

/* Sum the distances from the top, for smoothing. */
template <typename T, int E>
static __device__ gp_compute<T> lanes_below(const gp_compute<T> (&x)[E], gp_compute<T> top, int n) {
  gp_compute<T> even = 0, odd = 0;
#pragma unroll
  for (int e = 0; e < E; e++) {
    gp_compute<T> *lane = e % 2 ? &odd : &even;
    if (gp_lane_at(e) < n) *lane = gp_plus(*lane, top - x[e]);
  }
  return gp_lanes_sum(even, odd);
}

/* Sum the exponentials, as gp_lanes_total adds up what the threads hold. */
template <typename T, int E>
static __device__ gp_compute<T> lanes_exponentials(const gp_compute<T> (&x)[E], gp_compute<T> top) {
  gp_compute<T> even = 0, odd = 0;
#pragma unroll
  for (int e = 0; e < E; e += 2) {
    even = gp_plus(even, gp_exp_of<T>(x[e] - top));
    odd = gp_plus(odd, gp_exp_of<T>(x[e + 1] - top));
  }
  return gp_lanes_sum(even, odd);
}

/* Sum top - x over a row. It is a pass of its own, since only smoothing needs it. */
template <typename T>
static __device__ gp_compute<T> long_below(const gp_long_row<T> &x, gp_compute<T> top) {
  gp_compute<T> below = 0;
  for (int i = 0; i < gp_long_count(x); i++) {
    const gp_pack<T> group = gp_long_again(x, i, T());
#pragma unroll
    for (int k = 0; k < gp_pack<T>::count; k++)
      if (gp_long_at(x, i, k) < x.n) below = gp_plus(below, top - gp_load(group.at[k]));
  }
  return gp_block_sum(below);
}

/* Find the top of a row and the sum of its exponentials; keep the row where it fits. */
template <typename T>
static __device__ gp_online<gp_compute<T>> long_online(const gp_long_row<T> &x) {
  typedef gp_compute<T> A;
  const T least = gp_store<T>(-INFINITY);
  gp_online<A> o = {(A)-INFINITY, 0};
#pragma unroll 2
  for (int i = 0; i < gp_long_count(x); i++) {
    gp_pack<T> group = gp_long_first(x, i, least);
    gp_long_mask(x, i, &group, least);
    gp_online_add(&o, group);
  }
  return gp_online_join<T>(o);
}

/* The factors that the gradients of a row share, multiplied before. d: the gradient of its loss. */
template <typename A> struct slope {
  A top, share, each, hit;
  int64_t id;
};

template <typename A>
static __device__ slope<A> slope_of(gp_online<A> o, A d, int64_t id, A smoothing, int64_t n) {
  const A even = smoothing / (A)n;
  return {o.top, d / o.sum, d * even, d * (even + (1 - smoothing)), id};
}

/* d logit = dloss (softmax - target), the target being smoothed one-hot; 0 in rows whose id is
 * ignored, or is no class. */
template <typename T>
static __device__ T gradient_of(const slope<gp_compute<T>> &s, T x, int64_t at) {
  typedef gp_compute<T> A;
  const A part = s.share * gp_exp_of<T>(gp_load(x) - s.top);
  return gp_store<T>(s.id < 0 ? A(0) : part - (at == s.id ? s.hit : s.each));
}

template <typename T>
static __device__ gp_pack<T> gradients_of(const slope<gp_compute<T>> &s, const gp_long_row<T> &x,
                                          int i, gp_pack<T> group) {
#pragma unroll
  for (int k = 0; k < gp_pack<T>::count; k++)
    group.at[k] = gradient_of(s, group.at[k], gp_long_at(x, i, k));
  gp_long_mask(x, i, &group, T()); /* what pads a row is 0 */
  return group;
}

/* ---- forward ------------------------------------------------------------------------------- */

/* A warp works on a row. */
template <typename T, int E>
static __global__ void GP_SHORT_BOUNDS(T, E) losses_short(losses<T> a) {
  typedef gp_compute<T> A;
  const int64_t row = gp_short_row();
  if (row >= a.rows) return;
  A x[E];
  gp_lanes_read<T>(x, a.x + row * a.distance, (int)a.n, a.paired, (A)-INFINITY);
  const A top = gp_lanes_max(x);
  const A below = a.smoothing != 0 ? lanes_below<T>(x, top, (int)a.n) : A(0);
  const gp_online<A> o = {top, lanes_exponentials<T>(x, top)};
  if (threadIdx.x == 0) put_loss(a, row, target_of(a, row, true), o, below);
}

/* A block works on a row, and reads it once unless labels are smoothed: it keeps nothing, since a
 * vocabulary is too long for shared memory. One thread makes the loss and the statistics. */
template <typename T> static __global__ void losses_long(losses<T> a) {
  typedef gp_compute<T> A;
  const int64_t row = blockIdx.x;
  const gp_long_row<T> x = gp_long_row_padded<T>(a.x + row * a.distance, a.n, a.distance, NULL);
  const gp_online<A> o = long_online(x);
  const A below = a.smoothing == 0 ? A(0) : long_below(x, o.top);
  if (threadIdx.x == 0) put_loss(a, row, target_of(a, row, true), o, below);
}

template <typename T> static gp_status launch_losses(gp_gpu *gpu, const losses<T> &a) {
  if (a.n <= GP_SHORT_ROW)
    GP_BY_SHORT(a.n, return GP_LAUNCH(gpu, (losses_short<T, E>), gp_short_grid(a.rows),
                                      gp_short_block(), 0, a));
  return GP_LAUNCH(gpu, losses_long<T>, dim3((unsigned)a.rows), gp_long_threads(a.n, sizeof(T)), 0,
                   a);
}

/* The ops here begin with the same attributes. */
template <typename T> static losses<T> losses_of(const gp_gpu_call *call) {
  const gp_arg *x = &call->op.in[0];
  losses<T> a = {};
  a.x = (const T *)x->data, a.distance = gp_row_distance(x->meta);
  a.ids = gp_targets_of(call, call->op.attr->cross_entropy.ignore);
  a.rows = gp_rows_of(x->meta), a.n = gp_width_of(x->meta);
  a.smoothing = call->op.attr->cross_entropy.smoothing;
  a.paired = gp_is_paired<T>(a.x, a.n) && a.distance % 2 == 0;
  return a;
}

template <typename T> static gp_status forward(gp_gpu *gpu, const gp_gpu_call *call) {
  const gp_arg *out = call->op.out;
  losses<T> a = losses_of<T>(call);
  a.loss = out[0].data, a.stats = out[1].data, a.dtype = out[0].meta->dtype;
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
  int64_t rows, n, wide; /* wide: columns of dx */
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

/* A block has one row for each threadIdx.y; elements are independent, so long and short rows are
 * treated alike. dx may be x or, with two classes, the statistics: all lanes of a row that short
 * have read them before one writes. */
template <typename T> static __global__ void gradients_kernel(gradients<T> a) {
  typedef gp_compute<T> A;
  const int64_t row = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= a.rows) return;
  const int64_t id = gp_id_check(a.ids, row, threadIdx.x == 0);
  const gp_online<A> o = {gp_row_value<A>(a.stats, 2 * row), gp_row_value<A>(a.stats, 2 * row + 1)};
  const slope<A> s = slope_of(o, gp_row_value<A>(a.dloss, row), id, (A)a.smoothing, a.n);
  __syncwarp();
  const T *from = a.x + gp_offset_of(a.x_rows, row);
  const gp_long_row<T> x = gp_long_row_padded<T>(from, a.n, a.wide, NULL);
  const gp_long_row<T> dx = gp_long_row_of<T>(a.dx + row * a.wide, a.wide, NULL);
#pragma unroll 2
  for (int i = 0; i < gp_long_count(dx); i++) {
    gp_pack<T> group = {};
    if (id >= 0) group = logits_of(x, i, a.x_step);
    gp_long_write(dx, i, gradients_of(s, x, i, group));
  }
}

/* The logits of a gradient may be a view, such as that of every position but the last; dx is
 * row-major. The widths alone decide which kernel runs, as in the forward direction. */
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
  a.rows = gp_rows_of(x), a.n = gp_width_of(x), a.wide = gp_width_of(call->op.out[0].meta);
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

/* ---- both ---------------------------------------------------------------------------------- */

template <typename T> struct both {
  losses<T> of; /* the rows */
  gp_row_values dloss;
  T *dx; /* may be x */
  int64_t wide;
  bool keeps; /* the row fits shared memory */
};

/* As losses_short and gradients_kernel, by the lanes that hold the row. */
template <typename T, int E> static __global__ void GP_SHORT_BOUNDS(T, E) both_short(both<T> b) {
  typedef gp_compute<T> A;
  const losses<T> &a = b.of;
  const int64_t row = gp_short_row();
  if (row >= a.rows) return;
  A x[E];
  gp_lanes_read<T>(x, a.x + row * a.distance, (int)a.n, a.paired, (A)-INFINITY);
  const target<A> t = target_of(a, row, threadIdx.x == 0);
  const A d = gp_row_value<A>(b.dloss, row);
  const A top = gp_lanes_max(x);
  const A below = a.smoothing != 0 ? lanes_below<T>(x, top, (int)a.n) : A(0);
  const gp_online<A> o = {top, lanes_exponentials<T>(x, top)};
  const slope<A> s = slope_of(o, d, t.id, (A)a.smoothing, a.n);
  __syncwarp(); /* every lane has read the row's hit */
  T *dx = b.dx + row * b.wide;
#pragma unroll
  for (int k = 0; k < E; k++) {
    const int at = gp_lane_at(k);
    if (at < (int)a.n) dx[at] = gradient_of(s, gp_store<T>(x[k]), at);
  }
  for (int64_t at = a.n + threadIdx.x; at < b.wide; at += GP_WARP) dx[at] = T();
  if (threadIdx.x == 0) put_loss(a, row, t, o, below);
}

/* As losses_long and gradients_kernel: the row is read once if it is kept in shared memory. Each
 * thread writes the groups that it has read. */
template <typename T> static __global__ void both_long(both<T> b) {
  typedef gp_compute<T> A;
  GP_SHARED(gp_pack<T>, kept);
  const losses<T> &a = b.of;
  const int64_t row = blockIdx.x;
  const gp_long_row<T> x =
      gp_long_row_padded<T>(a.x + row * a.distance, a.n, b.wide, b.keeps ? kept : NULL);
  const gp_long_row<T> dx = gp_long_row_of<T>(b.dx + row * b.wide, b.wide, NULL);
  const target<A> t = target_of(a, row, threadIdx.x == 0);
  const A d = gp_row_value<A>(b.dloss, row);
  const gp_online<A> o = long_online(x); /* its barriers: all have read the row's hit */
  const A below = a.smoothing == 0 ? A(0) : long_below(x, o.top);
  const slope<A> s = slope_of(o, d, t.id, (A)a.smoothing, a.n);
#pragma unroll 2
  for (int i = 0; i < gp_long_count(dx); i++)
    gp_long_write(dx, i, gradients_of(s, x, i, gp_long_again(x, i, T())));
  if (threadIdx.x == 0) put_loss(a, row, t, o, below);
}

/* The bytes of shared memory for a row: two blocks of a vocabulary of 50,257 halves fit a
 * multiprocessor of 227 KiB. 0: the row does not fit, and is read twice. */
template <typename T> static size_t shared_for(gp_gpu *gpu, int64_t wide, int threads) {
  enum { MOST = 110 << 10 };
  const size_t bytes = (size_t)gp_long_groups(wide, sizeof(T), threads) * (size_t)threads * 16;
  const void *kernel = (const void *)both_long<T>;
  return bytes <= MOST && gp_gpu_allow_shared(gpu, kernel, bytes) == GP_OK ? bytes : 0;
}

template <typename T> static gp_status launch_both(gp_gpu *gpu, both<T> b) {
  const int64_t n = b.of.n;
  if (n <= GP_SHORT_ROW)
    GP_BY_SHORT(n, return GP_LAUNCH(gpu, (both_short<T, E>), gp_short_grid(b.of.rows),
                                    gp_short_block(), 0, b));
  const int threads = gp_long_threads(n, sizeof(T));
  const size_t shared = shared_for<T>(gpu, b.wide, threads);
  b.keeps = shared > 0;
  return GP_LAUNCH(gpu, both_long<T>, dim3((unsigned)b.of.rows), threads, shared, b);
}

template <typename T> static gp_status forward_both(gp_gpu *gpu, const gp_gpu_call *call) {
  const gp_arg *out = call->op.out;
  both<T> b = {};
  b.of = losses_of<T>(call);
  b.of.loss = call->op.n_out > 1 ? out[1].data : NULL;
  b.of.dtype = call->op.in[2].meta->dtype; /* that of the losses, too */
  b.dloss = gp_row_values_of(&call->op.in[2]);
  b.dx = (T *)out[0].data, b.wide = gp_width_of(out[0].meta);
  if (b.of.rows == 0) return GP_OK;
  GP_GPU_TRY(launch_both(gpu, b));
  return gp_ids_finish(gpu, b.of.ids);
}

static gp_status run_both(gp_gpu *gpu, const gp_gpu_call *call) {
  GP_BY_FLOAT(call->op.in[0].meta->dtype, return forward_both<T>(gpu, call));
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_cross_entropy_both = {run_both, NULL};

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
