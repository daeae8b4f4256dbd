/* ops/replicas/replica_sums.cu - see replica_sums.c. A thread takes a column. */
#include "device/cuda/kernel/meta.cuh"
#include "ops/replicas/tree.h"

enum { THREADS = 128 };

template <typename T>
static __device__ inline double tree_sum(const T *at, int64_t stride, int64_t replicas) {
  double held[GP_REPLICA_BLOCKS];
  int count = 0;
  for (int64_t r = 0; r < replicas; r++) {
    held[count++] = (double)gp_load(at[r * stride]);
    for (int k = gp_replica_merges(r, replicas, count); k > 0; k--, count--)
      held[count - 2] += held[count - 1];
  }
  return held[0];
}

template <typename T> struct join {
  const T *all, *rows;
  T *sums;
  int64_t replicas, width;
  double own; /* rows of this replica */
};

template <typename T> static __global__ void join_kernel(join<T> a) {
  const int64_t j = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (j >= a.width) return;
  const double rows = tree_sum(a.rows, 1, a.replicas), share = rows > 0 ? a.own / rows : 0;
  a.sums[j] = gp_store<T>((gp_compute<T>)(tree_sum(a.all + j, a.width, a.replicas) * share));
}

template <typename T> static gp_status launch(gp_gpu *gpu, const gp_call *call) {
  const gp_shape *all = &call->in[0].meta->shape;
  const join<T> a = {(const T *)call->in[0].data,
                     (const T *)call->in[1].data,
                     (T *)call->out[0].data,
                     all->dim[0],
                     all->dim[1],
                     (double)call->attr->replica_sums.rows};
  const dim3 grid((unsigned)(a.width > 0 ? (a.width + THREADS - 1) / THREADS : 1));
  return GP_LAUNCH(gpu, join_kernel<T>, grid, THREADS, 0, a);
}

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  GP_BY_FLOAT(call->op.in[0].meta->dtype, return launch<T>(gpu, &call->op));
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_replica_sums = {run, NULL};
