/* ops/channels/merge_stats.cu - see merge_stats.c: statistics of a mini-batch on a GPU.
 *
 * The kernel reads from the step block which micro-batch is the first: a captured
 * step is replayed. */
#include "device/cuda/kernel/meta.cuh"

enum { THREADS = 128 };

template <typename T> struct merge {
  const T *was, *mean, *variance, *base_mean, *base_variance;
  T *to;
  int64_t *first;
  int64_t channels;
  double own; /* positions of this micro-batch */
};

template <typename T> static __global__ void merge_kernel(merge<T> a, const gp_step_block *step) {
  const int64_t c = a.channels, j = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  const bool first = step->first_row == 0;
  if (j == 0) *a.first = first;
  if (j >= c) return;
  const double before = first ? 0 : (double)gp_load(a.was[j]), all = before + a.own;
  const double start = first ? 0 : (double)gp_load(a.was[c + j]);
  const double spread = first ? 0 : (double)gp_load(a.was[2 * c + j]);
  const double d = (double)gp_load(a.mean[j]) - start, share = all > 0 ? a.own / all : 0;
  const double made[3] = {all, start + d * share,
                          spread + (double)gp_load(a.variance[j]) * a.own + d * d * before * share};
  for (int k = 0; k < 3; k++) a.to[k * c + j] = gp_store<T>((gp_compute<T>)made[k]);
  a.to[3 * c + j] = first ? a.base_mean[j] : a.was[3 * c + j];
  a.to[4 * c + j] = first ? a.base_variance[j] : a.was[4 * c + j];
}

template <typename T> static gp_status launch(gp_gpu *gpu, const gp_call *call) {
  const gp_arg *in = call->in;
  const int64_t channels = in[0].meta->shape.dim[1];
  const merge<T> a = {(const T *)in[0].data,
                      (const T *)in[1].data,
                      (const T *)in[2].data,
                      (const T *)in[3].data,
                      (const T *)in[4].data,
                      (T *)call->out[0].data,
                      (int64_t *)call->out[1].data,
                      channels,
                      (double)call->attr->merge_stats.rows};
  const dim3 grid((unsigned)(channels > 0 ? (channels + THREADS - 1) / THREADS : 1));
  return GP_LAUNCH(gpu, merge_kernel<T>, grid, THREADS, 0, a, call->step);
}

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  GP_BY_FLOAT(call->op.in[0].meta->dtype, return launch<T>(gpu, &call->op));
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_merge_stats = {run, NULL};
