/* ops/norm/layer_norm.cu - see layer_norm.c: normalisation of rows, and its gradients.
 *
 * A warp keeps a short row in its registers, a block a long one in shared memory: x is read once.
 * Statistics of halves are f32. The gradient of the weight is a sum over rows (columns.cuh) whose
 * terms are computed as they are read; layer_norm_parts.cu makes all gradients in one pass. */
#include "ops/norm/layer_norm.cuh"
#include "ops/norm/rows.cuh"

/* ---- forward ------------------------------------------------------------------------------- */

/* Write the statistics: the backward pass reads them in place of x's sums and saves a pass. */
template <typename A, typename T>
static __device__ void put_stats(const layer<T> &a, int64_t row, A mean, A rstd) {
  gp_put(a.mean, a.stats, row, mean);
  gp_put(a.rstd, a.stats, row, rstd);
}

/* How the elements of a row are read: times `power`, a power of two, minus `zero`, one of them.
 * Rows whose sum or squares are too large for the type are scaled down, as in layer_norm.inc; all
 * others are read as they are, which changes no bit. */
template <typename T> struct scale {
  gp_compute<T> power, zero;
  T rest; /* in place of elements past the end: 0 once it is read */
};

static __device__ inline float scaled(float x, float power, float zero) {
  return __fsub_rn(__fmul_rn(x, power), zero);
}
static __device__ inline double scaled(double x, double power, double zero) {
  return __dsub_rn(__dmul_rn(x, power), zero);
}
template <typename T> static __device__ inline gp_compute<T> read(T x, const scale<T> &s) {
  return scaled(gp_load(x), s.power, s.zero);
}

template <typename T> static __device__ inline scale<T> plain_scale(void) { return {1, 0, T()}; }
template <typename T> static __device__ inline scale<T> small_scale(T first) {
  typedef gp_compute<T> A;
  const A power = sizeof(A) == sizeof(float) ? A(0x1p-96) : A(0x1p-600);
  return {power, gp_load(first) * power, first};
}
template <typename A> static __device__ inline bool is_finite(A x) { return x - x == 0; }

/* The factor for elements that are read so, minus the mean; and what the gradient gets. */
template <typename A> struct row_stats { A factor, mean, rstd; };

template <typename T, typename A>
static __device__ inline row_stats<A> stats_of(A mean, A variance, A eps, const scale<T> &s) {
  if (s.power == 1) {
    const A rstd = 1 / gp_sqrt(variance + eps);
    return {rstd, mean, rstd};
  }
  const A factor = variance > 0 ? 1 / gp_sqrt(variance) : A(1);
  return {factor, (mean + s.zero) / s.power, variance > 0 ? factor * s.power : 1 / gp_sqrt(eps)};
}

/* A warp works on a row, E elements a lane in registers. The second turn of the loop is for rows
 * that are too large for squares, so it is hardly ever taken. A lane sums in two chains, even and
 * odd, in an order that E alone decides. */
template <typename T, int E>
static __global__ void GP_SHORT_BOUNDS(T, E + 8) normalise_short(layer<T> a) {
  typedef gp_compute<T> A;
  const int64_t row = gp_short_row();
  if (row >= a.rows) return;
  const int n = (int)a.n;
  A x[E], mean, spread;
  scale<T> s = plain_scale<T>();
  gp_lanes_read<T>(x, a.x + row * n, n, a.paired);
  for (;;) {
    A even = 0, odd = 0;
    mean = gp_lanes_total(x) / (A)n;
#pragma unroll
    for (int e = 0; e < E; e++) {
      const A off = x[e] - mean;
      A *lane = e % 2 ? &odd : &even;
      if (gp_lane_at(e) < n) *lane = gp_plus(*lane, off * off);
    }
    spread = gp_lanes_sum(even, odd);
    if (is_finite(spread) || s.power != 1) break;
    s = small_scale(a.x[row * n]);
#pragma unroll
    for (int e = 0; e < E; e++) x[e] = gp_lane_at(e) < n ? scaled(x[e], s.power, s.zero) : A(0);
  }
  const row_stats<A> stats = stats_of(mean, spread / (A)n, (A)a.eps, s);
  A w[E], b[E];
  gp_lanes_read<T>(w, a.w, n, a.paired);
  gp_lanes_read<T>(b, a.b, n, a.paired);
#pragma unroll
  for (int e = 0; e < E; e++) x[e] = (x[e] - mean) * stats.factor * w[e] + b[e];
  gp_lanes_write(a.to + row * n, x, n, a.paired);
  if (threadIdx.x == 0) put_stats(a, row, stats.mean, stats.rstd);
}

/* Sum x over a row, in the first pass, which keeps the row. */
template <typename T>
static __device__ gp_compute<T> long_sum(const gp_long_row<T> &x, const scale<T> &s) {
  gp_compute<T> sum = 0;
  for (int i = 0; i < gp_long_count(x); i++) {
    const gp_pack<T> group = gp_long_first(x, i, s.rest);
#pragma unroll
    for (int k = 0; k < gp_pack<T>::count; k++) sum = gp_plus(sum, read(group.at[k], s));
  }
  return gp_block_sum(sum);
}

/* Sum (x - mean)^2; elements past the end do not count. */
template <typename T>
static __device__ gp_compute<T> long_spread(const gp_long_row<T> &x, gp_compute<T> mean,
                                            const scale<T> &s) {
  gp_compute<T> sum = 0;
  for (int i = 0; i < gp_long_count(x); i++) {
    const gp_pack<T> group = gp_long_again(x, i, s.rest);
#pragma unroll
    for (int k = 0; k < gp_pack<T>::count; k++) {
      const gp_compute<T> off = read(group.at[k], s) - mean;
      if (gp_long_at(x, i, k) < x.n) sum = gp_plus(sum, off * off);
    }
  }
  return gp_block_sum(sum);
}

/* A block works on a row. `keep`: there is shared memory for the row; else it is read three times,
 * from the cache as far as that holds it. */
template <typename T> static __global__ void normalise_long(layer<T> a, bool keep) {
  typedef gp_compute<T> A;
  GP_SHARED(gp_pack<T>, kept);
  const int64_t row = blockIdx.x, n = a.n;
  const gp_long_row<T> x = gp_long_row_of(a.x + row * n, n, keep ? kept : NULL);
  const gp_long_row<T> y = gp_long_row_of<T>(a.to + row * n, n, NULL);
  const gp_long_row<T> w = gp_long_row_of<T>(a.w, n, NULL), b = gp_long_row_of<T>(a.b, n, NULL);
  A mean, spread;
  scale<T> s = plain_scale<T>();
  for (;;) {
    mean = long_sum(x, s) / (A)n;
    spread = long_spread(x, mean, s);
    if (is_finite(spread) || s.power != 1) break;
    s = small_scale(a.x[row * n]);
  }
  const row_stats<A> stats = stats_of(mean, spread / (A)n, (A)a.eps, s);
  for (int i = 0; i < gp_long_count(x); i++) {
    gp_pack<T> group = gp_long_again(x, i, T());
    const gp_pack<T> ws = gp_long_read(w, i, T()), bs = gp_long_read(b, i, T());
#pragma unroll
    for (int k = 0; k < gp_pack<T>::count; k++)
      group.at[k] = gp_store<T>((read(group.at[k], s) - mean) * stats.factor * gp_load(ws.at[k]) +
                                gp_load(bs.at[k]));
    gp_long_write(y, i, group);
  }
  if (threadIdx.x == 0) put_stats(a, row, stats.mean, stats.rstd);
}

template <typename T> static gp_status forward(gp_gpu *gpu, const gp_gpu_call *call) {
  const gp_arg *in = call->op.in, *out = call->op.out;
  layer<T> a = {};
  a.x = (const T *)in[0].data, a.w = (const T *)in[1].data, a.b = (const T *)in[2].data;
  a.to = (T *)out[0].data, a.mean = out[1].data, a.rstd = out[2].data;
  a.stats = out[1].meta->dtype;
  a.rows = gp_rows_of(in[0].meta), a.n = gp_width_of(in[0].meta);
  a.eps = call->op.attr->layer_norm.eps;
  a.paired = gp_is_paired<T>(a.x, a.n) && gp_is_paired<T>(a.w, a.n) && gp_is_paired<T>(a.b, a.n) &&
             gp_is_paired<T>(a.to, a.n);
  GP_LAUNCH_ROWS(gpu, a, normalise_short, normalise_long, 1);
}

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  GP_BY_FLOAT(call->op.in[0].meta->dtype, return forward<T>(gpu, call));
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_layer_norm = {run, NULL};

/* ---- gradient of the input ----------------------------------------------------------------- */

/* With h = (x - mean) rstd and g = dy w: dx = rstd (g - mean(g) - h mean(g h)), plus `more`
 * if it is given. */
template <typename T, int E>
static __global__ void GP_SHORT_BOUNDS(T, 2 * E) gradient_short(layer<T> a) {
  typedef gp_compute<T> A;
  const int64_t row = gp_short_row();
  if (row >= a.rows) return;
  const int n = (int)a.n;
  const A mean = gp_get<A>(a.mean, a.stats, row), rstd = gp_get<A>(a.rstd, a.stats, row);
  A h[E], g[E], even = 0, odd = 0;
  gp_lanes_read<T>(h, a.x + row * n, n, a.paired);
  gp_lanes_read<T>(g, a.dy + row * n, n, a.paired);
  {
    A w[E];
    gp_lanes_read<T>(w, a.w, n, a.paired);
#pragma unroll
    for (int e = 0; e < E; e++) g[e] *= w[e], h[e] = (h[e] - mean) * rstd;
  }
#pragma unroll
  for (int e = 0; e < E; e += 2) {
    even = gp_plus(even, g[e] * h[e]); /* g is 0 past the end */
    odd = gp_plus(odd, g[e + 1] * h[e + 1]);
  }
  const A mean_gh = gp_lanes_sum(even, odd) / (A)n, mean_g = gp_lanes_total(g) / (A)n;
#pragma unroll
  for (int e = 0; e < E; e++) g[e] = rstd * (g[e] - mean_g - h[e] * mean_gh);
  if (a.more) {
    gp_lanes_read<T>(h, a.more + row * n, n, a.paired); /* into registers that are free now */
#pragma unroll
    for (int e = 0; e < E; e++) g[e] = h[e] + g[e];
  }
  gp_lanes_write(a.to + row * n, g, n, a.paired);
}

/* The same with a block per row: the second pass computes the terms again from what shared memory
 * kept, which costs less than keeping them too. */
template <typename T> static __global__ void gradient_long(layer<T> a, bool keep) {
  typedef gp_compute<T> A;
  const int count = gp_pack<T>::count;
  GP_SHARED(gp_pack<T>, kept);
  const int64_t row = blockIdx.x, n = a.n;
  const gp_long_row<T> x = gp_long_row_of(a.x + row * n, n, keep ? kept : NULL);
  const gp_long_row<T> dy = gp_long_row_of(a.dy + row * n, n, gp_long_next(x));
  const gp_long_row<T> dx = gp_long_row_of<T>(a.to + row * n, n, NULL);
  const gp_long_row<T> w = gp_long_row_of<T>(a.w, n, NULL);
  const A mean = gp_get<A>(a.mean, a.stats, row), rstd = gp_get<A>(a.rstd, a.stats, row);
  A g = 0, gh = 0;
  for (int i = 0; i < gp_long_count(x); i++) {
    const gp_pack<T> xs = gp_long_first(x, i, T()), dys = gp_long_first(dy, i, T());
    const gp_pack<T> ws = gp_long_read(w, i, T());
#pragma unroll
    for (int k = 0; k < count; k++) {
      const A one = gp_load(dys.at[k]) * gp_load(ws.at[k]);
      g = gp_plus(g, one);
      gh = gp_plus(gh, one * ((gp_load(xs.at[k]) - mean) * rstd));
    }
  }
  g = gp_block_sum(g) / (A)n, gh = gp_block_sum(gh) / (A)n;
  for (int i = 0; i < gp_long_count(x); i++) {
    const gp_pack<T> xs = gp_long_again(x, i, T()), ws = gp_long_read(w, i, T());
    gp_pack<T> dys = gp_long_again(dy, i, T()), more = {};
    if (a.more)
      more = gp_long_read(gp_long_row_of(a.more + row * n, n, (gp_pack<T> *)NULL), i, T());
#pragma unroll
    for (int k = 0; k < count; k++) {
      const A one = gp_load(dys.at[k]) * gp_load(ws.at[k]);
      const A to = rstd * (one - g - (gp_load(xs.at[k]) - mean) * rstd * gh);
      dys.at[k] = gp_store<T>(a.more ? gp_load(more.at[k]) + to : to);
    }
    gp_long_write(dx, i, dys);
  }
}

template <typename T> static gp_status backward(gp_gpu *gpu, const gp_gpu_call *call) {
  const layer<T> a = gp_layer_norm_backward<T>(call);
  GP_LAUNCH_ROWS(gpu, a, gradient_short, gradient_long, 2);
}

/* The sixth operand is the gradient that bypasses the layer, if graph/fuse.c joined it. */
static gp_status run_dx(gp_gpu *gpu, const gp_gpu_call *call) {
  GP_BY_FLOAT(call->op.in[0].meta->dtype, return backward<T>(gpu, call));
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_layer_norm_dx = {run_dx, NULL};

/* ---- gradient of the weight ---------------------------------------------------------------- */

/* 16 bytes of a row are one group of columns: a thread reads them at once. */
static gp_columns plan_dw(const gp_call *call) {
  const gp_meta *dy = call->in[0].meta;
  return gp_columns_plan(1, gp_rows_of(dy), gp_width_of(dy), 16 / (int)gp_item_of(dy->dtype));
}

template <typename T, int SUMS>
static gp_status weight_gradient(gp_gpu *gpu, const gp_gpu_call *call) {
  const gp_arg *in = call->op.in;
  const weight_terms<T, SUMS> source = {(const T *)in[0].data, (const T *)in[1].data, in[2].data,
                                        in[3].data, in[2].meta->dtype};
  gp_column_sinks<SUMS> out;
  for (int s = 0; s < SUMS; s++) out.of[s] = gp_sink_of(&call->op, s);
  return gp_columns_run_all(gpu, source, plan_dw(&call->op), out, call->scratch);
}

template <int SUMS> static gp_status run_dw(gp_gpu *gpu, const gp_gpu_call *call) {
  GP_BY_FLOAT(call->op.in[0].meta->dtype, return (weight_gradient<T, SUMS>(gpu, call)));
  return GP_OK;
}

/* Reserve scratch for the partial sums of the blocks that share a column; the run joins them in
 * ascending order. */
template <int SUMS> static gp_status prepare_dw(gp_gpu *gpu, const gp_call *call, size_t *scratch) {
  (void)gpu;
  const gp_columns p = plan_dw(call);
  *scratch = gp_columns_scratch(&p, SUMS * gp_sum_bytes(call->in[0].meta->dtype));
  return GP_OK;
}

template <typename T>
gp_status gp_layer_norm_columns(gp_gpu *gpu, const layer<T> &a, const gp_columns &p,
                                const gp_column_sinks<2> &out) {
  const weight_terms<T, 2> source = {a.dy, a.x, a.mean, a.rstd, a.stats};
  return gp_columns_launch(gpu, source, p, out);
}

#define COLUMNS_OF(T)                                                                              \
  template gp_status gp_layer_norm_columns<T>(gp_gpu *, const layer<T> &, const gp_columns &,      \
                                              const gp_column_sinks<2> &);
COLUMNS_OF(float)
COLUMNS_OF(double)
COLUMNS_OF(gp_bf16)
COLUMNS_OF(gp_f16)

const gp_gpu_kernel gp_gpu_layer_norm_dw = {run_dw<1>, prepare_dw<1>};
const gp_gpu_kernel gp_gpu_layer_norm_bias_dw = {run_dw<2>, prepare_dw<2>};
