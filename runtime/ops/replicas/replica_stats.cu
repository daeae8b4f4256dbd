/* ops/replicas/replica_stats.cu - see replica_stats.c. A thread takes a channel. */
#include "device/cuda/kernel/meta.cuh"
#include "ops/replicas/tree.h"

enum { THREADS = 128 };

struct part {
  double count, mean, spread;
};

static __device__ inline part merge(part a, part b) {
  const double count = a.count + b.count, d = b.mean - a.mean;
  const double share = count > 0 ? b.count / count : 0;
  return {count, a.mean + d * share, a.spread + b.spread + d * d * a.count * share};
}

template <typename T> struct stats_join {
  const T *all, *rows;
  T *mean, *variance, *unbiased;
  int64_t replicas, channels;
  double positions;
};

template <typename T> static __global__ void join_kernel(stats_join<T> a) {
  const int64_t c = a.channels, j = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  part held[GP_REPLICA_BLOCKS];
  int count = 0;
  if (j >= c) return;
  for (int64_t r = 0; r < a.replicas; r++) {
    const double n = (double)gp_load(a.rows[r]) * a.positions;
    const T *own = a.all + r * 2 * c + j;
    held[count++] = {n, (double)gp_load(own[0]), (double)gp_load(own[c]) * n};
    for (int k = gp_replica_merges(r, a.replicas, count); k > 0; k--, count--)
      held[count - 2] = merge(held[count - 2], held[count - 1]);
  }
  const double n = held[0].count;
  a.mean[j] = gp_store<T>((gp_compute<T>)held[0].mean);
  a.variance[j] = gp_store<T>((gp_compute<T>)(n > 0 ? held[0].spread / n : 0));
  a.unbiased[j] = gp_store<T>((gp_compute<T>)(held[0].spread / (n > 1 ? n - 1 : 1)));
}

template <typename T> static gp_status launch(gp_gpu *gpu, const gp_call *call) {
  const gp_shape *all = &call->in[0].meta->shape;
  const stats_join<T> a = {(const T *)call->in[0].data,
                           (const T *)call->in[1].data,
                           (T *)call->out[0].data,
                           (T *)call->out[1].data,
                           (T *)call->out[2].data,
                           all->dim[0],
                           all->dim[1] / 2,
                           (double)call->attr->replica_stats.positions};
  const dim3 grid((unsigned)(a.channels > 0 ? (a.channels + THREADS - 1) / THREADS : 1));
  return GP_LAUNCH(gpu, join_kernel<T>, grid, THREADS, 0, a);
}

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  GP_BY_FLOAT(call->op.in[0].meta->dtype, return launch<T>(gpu, &call->op));
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_replica_stats = {run, NULL};
