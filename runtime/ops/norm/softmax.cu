/* ops/norm/softmax.cu - see softmax.c: softmax and log_softmax of rows, and their gradients.
 *
 * A short row stays in the registers of a warp. For a long one, one pass finds the largest value
 * and the sum of exponentials; the second pass reads what the first one kept. Results may be
 * written over an input: a thread writes only elements that it has read for the last time. */
#include "ops/norm/rows.cuh"
#include "device/cuda/kernel/meta.cuh"

/* dy is NULL in the forward direction, where x is the input; else x is the output. */
template <typename T> struct soft {
  const T *dy, *x;
  T *to;
  int64_t rows, n;
  bool paired, log;
};

/* ---- forward ------------------------------------------------------------------------------- */

/* Elements past the end are -infinity: they are never the largest and add nothing. */
template <typename T, int E> static __global__ void GP_SHORT_BOUNDS(T, E) softmax_short(soft<T> a) {
  typedef gp_compute<T> A;
  const int64_t row = gp_short_row();
  if (row >= a.rows) return;
  const int n = (int)a.n;
  A x[E], e[E];
  gp_lanes_read<T>(x, a.x + row * n, n, a.paired, (A)-INFINITY);
  const A top = gp_lanes_max(x);
#pragma unroll
  for (int k = 0; k < E; k++) x[k] -= top, e[k] = gp_exp_of<T>(x[k]);
  const A sum = gp_lanes_total(e), scale = 1 / sum, rest = a.log ? gp_log(sum) : 0;
#pragma unroll
  for (int k = 0; k < E; k++) x[k] = a.log ? x[k] - rest : e[k] * scale;
  gp_lanes_write(a.to + row * n, x, n, a.paired);
}

/* The running sum is scaled when a larger value comes, so one pass finds both.
 * Source: Milakov, Gimelshein, "Online normalizer calculation for softmax" (2018), algorithm 3. */
template <typename T> static __global__ void softmax_long(soft<T> a, bool keep) {
  typedef gp_compute<T> A;
  GP_SHARED(gp_pack<T>, kept);
  const int64_t row = blockIdx.x;
  const T least = gp_store<T>(-INFINITY);
  const gp_long_row<T> x = gp_long_row_of(a.x + row * a.n, a.n, keep ? kept : NULL);
  const gp_long_row<T> y = gp_long_row_of<T>(a.to + row * a.n, a.n, NULL);
  gp_online<A> o = {(A)-INFINITY, 0};
#pragma unroll 2
  for (int i = 0; i < gp_long_count(x); i++) gp_online_add(&o, gp_long_first(x, i, least));
  o = gp_online_join<T>(o);
  const A scale = 1 / o.sum, rest = a.log ? gp_log(o.sum) : 0;
  for (int i = 0; i < gp_long_count(x); i++) {
    gp_pack<T> group = gp_long_again(x, i, least);
#pragma unroll
    for (int k = 0; k < gp_pack<T>::count; k++) {
      const A below = gp_load(group.at[k]) - o.top;
      group.at[k] = gp_store<T>(a.log ? below - rest : gp_exp_of<T>(below) * scale);
    }
    gp_long_write(y, i, group);
  }
}

/* ---- gradients ----------------------------------------------------------------------------- */

/* Return the term that a row sums for dx: dy y, or dy for log_softmax. */
template <typename T>
static __device__ gp_compute<T> term(const soft<T> &a, gp_compute<T> dy, gp_compute<T> y) {
  return a.log ? dy : dy * y;
}

/* Return the gradient of one element; `total` is the sum of the row's terms. */
template <typename T>
static __device__ gp_compute<T> gradient(const soft<T> &a, gp_compute<T> dy, gp_compute<T> y,
                                         gp_compute<T> total) {
  return a.log ? dy - gp_exp_of<T>(y) * total : y * (dy - total);
}

template <typename T, int E>
static __global__ void GP_SHORT_BOUNDS(T, 2 * E) gradient_short(soft<T> a) {
  typedef gp_compute<T> A;
  const int64_t row = gp_short_row();
  if (row >= a.rows) return;
  const int n = (int)a.n;
  A y[E], dy[E], even = 0, odd = 0;
  gp_lanes_read<T>(dy, a.dy + row * n, n, a.paired);
  gp_lanes_read<T>(y, a.x + row * n, n, a.paired);
#pragma unroll
  for (int e = 0; e < E; e += 2) {
    even = gp_plus(even, term<T>(a, dy[e], y[e]));
    odd = gp_plus(odd, term<T>(a, dy[e + 1], y[e + 1]));
  }
  const A total = gp_lanes_sum(even, odd);
#pragma unroll
  for (int e = 0; e < E; e++) dy[e] = gradient<T>(a, dy[e], y[e], total);
  gp_lanes_write(a.to + row * n, dy, n, a.paired);
}

/* Both y and dy are read twice, so both are kept if shared memory holds them. */
template <typename T> static __global__ void gradient_long(soft<T> a, bool keep) {
  typedef gp_compute<T> A;
  GP_SHARED(gp_pack<T>, kept);
  const int64_t row = blockIdx.x;
  const gp_long_row<T> y = gp_long_row_of(a.x + row * a.n, a.n, keep ? kept : NULL);
  const gp_long_row<T> dy = gp_long_row_of(a.dy + row * a.n, a.n, gp_long_next(y));
  const gp_long_row<T> dx = gp_long_row_of<T>(a.to + row * a.n, a.n, NULL);
  A total = 0;
  for (int i = 0; i < gp_long_count(y); i++) {
    const gp_pack<T> ys = gp_long_first(y, i, T()), dys = gp_long_first(dy, i, T());
#pragma unroll
    for (int k = 0; k < gp_pack<T>::count; k++)
      total = gp_plus(total, term<T>(a, gp_load(dys.at[k]), gp_load(ys.at[k])));
  }
  total = gp_block_sum(total);
  for (int i = 0; i < gp_long_count(y); i++) {
    const gp_pack<T> ys = gp_long_again(y, i, T());
    gp_pack<T> dys = gp_long_again(dy, i, T());
#pragma unroll
    for (int k = 0; k < gp_pack<T>::count; k++)
      dys.at[k] = gp_store<T>(gradient<T>(a, gp_load(dys.at[k]), gp_load(ys.at[k]), total));
    gp_long_write(dx, i, dys);
  }
}

/* ---- launching ----------------------------------------------------------------------------- */

/* The backward ops have dy in front of y; that tells the directions apart. */
template <typename T> static soft<T> describe(const gp_gpu_call *call, bool log) {
  const gp_arg *in = call->op.in;
  const bool back = call->op.n_in == 2;
  soft<T> a = {};
  a.dy = back ? (const T *)in[0].data : NULL, a.x = (const T *)in[back].data;
  a.to = (T *)call->op.out[0].data;
  a.rows = gp_rows_of(in[0].meta), a.n = gp_width_of(in[0].meta);
  a.log = log;
  a.paired = gp_is_paired<T>(a.dy, a.n) && gp_is_paired<T>(a.x, a.n) && gp_is_paired<T>(a.to, a.n);
  return a;
}

template <typename T> static gp_status forward(gp_gpu *gpu, const soft<T> &a) {
  GP_LAUNCH_ROWS(gpu, a, softmax_short, softmax_long, 1);
}

template <typename T> static gp_status backward(gp_gpu *gpu, const soft<T> &a) {
  GP_LAUNCH_ROWS(gpu, a, gradient_short, gradient_long, 2);
}

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call, bool log) {
  if (call->op.n_in == 1)
    GP_BY_FLOAT(call->op.in[0].meta->dtype, return forward(gpu, describe<T>(call, log)))
  else
    GP_BY_FLOAT(call->op.in[0].meta->dtype, return backward(gpu, describe<T>(call, log)))
  return GP_OK;
}

static gp_status run_plain(gp_gpu *gpu, const gp_gpu_call *call) { return run(gpu, call, false); }
static gp_status run_log(gp_gpu *gpu, const gp_gpu_call *call) { return run(gpu, call, true); }

const gp_gpu_kernel gp_gpu_softmax = {run_plain, NULL};
const gp_gpu_kernel gp_gpu_softmax_dx = {run_plain, NULL};
const gp_gpu_kernel gp_gpu_log_softmax = {run_log, NULL};
const gp_gpu_kernel gp_gpu_log_softmax_dx = {run_log, NULL};
