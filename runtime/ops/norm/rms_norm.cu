/* ops/norm/rms_norm.cu - see rms_norm.c: rows divided by the root of their mean square on a GPU,
 * and the gradients.
 *
 * A warp keeps a short row in its registers, a block a long one in shared memory. The gradient of
 * the weight is a sum over rows (columns.cuh). */
#include "ops/norm/rows.cuh"
#include "ops/reduce/columns.cuh"

/* dy is NULL in the forward direction. */
template <typename T> struct rms {
  const T *dy, *x, *w;
  T *to;
  gp_compute<T> *rstd;
  int64_t rows, n;
  bool paired;
  gp_compute<T> eps;
};

/* A factor after which the squares of any numbers can be added up. */
template <typename A> static __device__ inline A shrink(void) {
  return sizeof(A) == sizeof(float) ? A(0x1p-96) : A(0x1p-600);
}
template <typename A> static __device__ inline bool is_finite(A x) { return x - x == 0; }

/* ---- forward --------------------------------------------------------------------------------- */

template <typename A, int E> static __device__ A square_sum(const A (&x)[E], A by) {
  A even = 0, odd = 0;
#pragma unroll
  for (int e = 0; e < E; e += 2) {
    even = gp_plus(even, (x[e] * by) * (x[e] * by));
    odd = gp_plus(odd, (x[e + 1] * by) * (x[e + 1] * by));
  }
  return gp_lanes_sum(even, odd);
}

template <typename T, int E>
static __global__ void GP_SHORT_BOUNDS(T, E) normalise_short(rms<T> a) {
  typedef gp_compute<T> A;
  const int64_t row = gp_short_row();
  if (row >= a.rows) return;
  const int n = (int)a.n;
  A x[E], w[E];
  gp_lanes_read<T>(x, a.x + row * n, n, a.paired);
  gp_lanes_read<T>(w, a.w, n, a.paired);
  const A sum = square_sum(x, A(1));
  A rstd = 1 / gp_sqrt(sum / (A)n + a.eps);
  if (!is_finite(sum)) rstd = shrink<A>() / gp_sqrt(square_sum(x, shrink<A>()) / (A)n);
#pragma unroll
  for (int e = 0; e < E; e++) x[e] = x[e] * rstd * w[e];
  gp_lanes_write(a.to + row * n, x, n, a.paired);
  if (threadIdx.x == 0) a.rstd[row] = rstd;
}

template <typename T>
static __device__ gp_compute<T> long_sum(const gp_long_row<T> &x, gp_compute<T> by) {
  gp_compute<T> sum = 0;
  for (int i = 0; i < gp_long_count(x); i++) {
    const gp_pack<T> group = gp_long_first(x, i, T());
#pragma unroll
    for (int k = 0; k < gp_pack<T>::count; k++)
      sum = gp_plus(sum, (gp_load(group.at[k]) * by) * (gp_load(group.at[k]) * by));
  }
  return gp_block_sum(sum);
}

template <typename T> static __global__ void normalise_long(rms<T> a, bool keep) {
  typedef gp_compute<T> A;
  GP_SHARED(gp_pack<T>, kept);
  const int64_t row = blockIdx.x, n = a.n;
  const gp_long_row<T> x = gp_long_row_of(a.x + row * n, n, keep ? kept : NULL);
  const gp_long_row<T> y = gp_long_row_of<T>(a.to + row * n, n, NULL);
  const gp_long_row<T> w = gp_long_row_of<T>(a.w, n, NULL);
  const A sum = long_sum(x, A(1));
  A rstd = 1 / gp_sqrt(sum / (A)n + a.eps);
  if (!is_finite(sum)) rstd = shrink<A>() / gp_sqrt(long_sum(x, shrink<A>()) / (A)n);
  for (int i = 0; i < gp_long_count(x); i++) {
    gp_pack<T> group = gp_long_again(x, i, T());
    const gp_pack<T> ws = gp_long_read(w, i, T());
#pragma unroll
    for (int k = 0; k < gp_pack<T>::count; k++)
      group.at[k] = gp_store<T>(gp_load(group.at[k]) * rstd * gp_load(ws.at[k]));
    gp_long_write(y, i, group);
  }
  if (threadIdx.x == 0) a.rstd[row] = rstd;
}

/* Return the operands of either direction: in[x] and in[x + 1] are x and w. */
template <typename T> static rms<T> rms_of(const gp_call *call, int x) {
  rms<T> a = {};
  a.dy = x > 0 ? (const T *)call->in[0].data : NULL;
  a.x = (const T *)call->in[x].data, a.w = (const T *)call->in[x + 1].data;
  a.to = (T *)call->out[0].data;
  a.rstd = (gp_compute<T> *)(x > 0 ? call->in[3].data : call->out[1].data);
  a.rows = gp_rows_of(call->in[x].meta), a.n = gp_width_of(call->in[x].meta);
  a.paired = gp_is_paired<T>(a.dy, a.n) && gp_is_paired<T>(a.x, a.n) && gp_is_paired<T>(a.w, a.n) &&
             gp_is_paired<T>(a.to, a.n);
  return a;
}

template <typename T> static gp_status forward(gp_gpu *gpu, const gp_call *call) {
  rms<T> a = rms_of<T>(call, 0);
  a.eps = (gp_compute<T>)call->attr->rms_norm.eps;
  GP_LAUNCH_ROWS(gpu, a, normalise_short, normalise_long, 1);
}

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  GP_BY_FLOAT(call->op.in[0].meta->dtype, return forward<T>(gpu, &call->op));
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_rms_norm = {run, NULL};

/* ---- gradient of the input ------------------------------------------------------------------- */

/* With h = x rstd and g = dy w: dx = rstd (g - h mean(g h)). */
template <typename T, int E>
static __global__ void GP_SHORT_BOUNDS(T, 2 * E) gradient_short(rms<T> a) {
  typedef gp_compute<T> A;
  const int64_t row = gp_short_row();
  if (row >= a.rows) return;
  const int n = (int)a.n;
  const A rstd = a.rstd[row];
  A h[E], g[E], w[E], even = 0, odd = 0;
  gp_lanes_read<T>(h, a.x + row * n, n, a.paired);
  gp_lanes_read<T>(g, a.dy + row * n, n, a.paired);
  gp_lanes_read<T>(w, a.w, n, a.paired);
#pragma unroll
  for (int e = 0; e < E; e++) g[e] *= w[e], h[e] *= rstd;
#pragma unroll
  for (int e = 0; e < E; e += 2) {
    even = gp_plus(even, g[e] * h[e]);
    odd = gp_plus(odd, g[e + 1] * h[e + 1]);
  }
  const A mean = gp_lanes_sum(even, odd) / (A)n;
#pragma unroll
  for (int e = 0; e < E; e++) g[e] = rstd * (g[e] - h[e] * mean);
  gp_lanes_write(a.to + row * n, g, n, a.paired);
}

template <typename T> static __global__ void gradient_long(rms<T> a, bool keep) {
  typedef gp_compute<T> A;
  const int count = gp_pack<T>::count;
  GP_SHARED(gp_pack<T>, kept);
  const int64_t row = blockIdx.x, n = a.n;
  const gp_long_row<T> x = gp_long_row_of(a.x + row * n, n, keep ? kept : NULL);
  const gp_long_row<T> dy = gp_long_row_of(a.dy + row * n, n, gp_long_next(x));
  const gp_long_row<T> dx = gp_long_row_of<T>(a.to + row * n, n, NULL);
  const gp_long_row<T> w = gp_long_row_of<T>(a.w, n, NULL);
  const A rstd = a.rstd[row];
  A sum = 0;
  for (int i = 0; i < gp_long_count(x); i++) {
    const gp_pack<T> xs = gp_long_first(x, i, T()), dys = gp_long_first(dy, i, T());
    const gp_pack<T> ws = gp_long_read(w, i, T());
#pragma unroll
    for (int k = 0; k < count; k++)
      sum = gp_plus(sum, gp_load(dys.at[k]) * gp_load(ws.at[k]) * (gp_load(xs.at[k]) * rstd));
  }
  const A mean = gp_block_sum(sum) / (A)n;
  for (int i = 0; i < gp_long_count(x); i++) {
    const gp_pack<T> xs = gp_long_again(x, i, T()), ws = gp_long_read(w, i, T());
    gp_pack<T> dys = gp_long_again(dy, i, T());
#pragma unroll
    for (int k = 0; k < count; k++)
      dys.at[k] = gp_store<T>(
          rstd * (gp_load(dys.at[k]) * gp_load(ws.at[k]) - gp_load(xs.at[k]) * rstd * mean));
    gp_long_write(dx, i, dys);
  }
}

template <typename T> static gp_status backward(gp_gpu *gpu, const gp_call *call) {
  const rms<T> a = rms_of<T>(call, 1);
  GP_LAUNCH_ROWS(gpu, a, gradient_short, gradient_long, 2);
}

static gp_status run_dx(gp_gpu *gpu, const gp_gpu_call *call) {
  GP_BY_FLOAT(call->op.in[0].meta->dtype, return backward<T>(gpu, &call->op));
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_rms_norm_dx = {run_dx, NULL};

/* ---- gradient of the weight ------------------------------------------------------------------ */

/* Terms dy x rstd of a sum over rows. */
template <typename T> struct rms_weight_terms {
  typedef gp_compute<T> sum;
  struct terms {
    gp_pack<T> dy, x;
    sum rstd;
  };
  static const int count = gp_pack<T>::count, sums = 1, ahead = 4;
  const T *dy, *x;
  const sum *rstd;

  bool packed(void) const { return gp_is_packed(dy) && gp_is_packed(x); }
  template <bool PACKED>
  __device__ terms read(int64_t, int64_t row, const gp_column_group &group) const {
    return {gp_columns_load<PACKED>(dy + row * group.width, group),
            gp_columns_load<PACKED>(x + row * group.width, group), rstd[row]};
  }
  __device__ void add(sum *to, const terms &t) const {
#pragma unroll
    for (int k = 0; k < count; k++)
      to[k] = gp_plus(to[k], gp_load(t.dy.at[k]) * (gp_load(t.x.at[k]) * t.rstd));
  }
};

static gp_columns plan_dw(const gp_call *call) {
  const gp_meta *dy = call->in[0].meta;
  return gp_columns_plan(1, gp_rows_of(dy), gp_width_of(dy), 16 / (int)gp_item_of(dy->dtype));
}

template <typename T> static gp_status weight_gradient(gp_gpu *gpu, const gp_gpu_call *call) {
  const gp_arg *in = call->op.in;
  const rms_weight_terms<T> source = {(const T *)in[0].data, (const T *)in[1].data,
                                      (const gp_compute<T> *)in[2].data};
  return gp_columns_run(gpu, source, plan_dw(&call->op), gp_sink_of(&call->op, 0), call->scratch);
}

static gp_status run_dw(gp_gpu *gpu, const gp_gpu_call *call) {
  GP_BY_FLOAT(call->op.in[0].meta->dtype, return weight_gradient<T>(gpu, call));
  return GP_OK;
}

static gp_status prepare_dw(gp_gpu *gpu, const gp_call *call, size_t *scratch) {
  (void)gpu;
  const gp_columns p = plan_dw(call);
  *scratch = gp_columns_scratch(&p, gp_sum_bytes(call->in[0].meta->dtype));
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_rms_norm_dw = {run_dw, prepare_dw};
