/* ops/replicas/replica_gather.cu - see replica_gather.c: in a pipeline the engine gathers. */
#include "device/cuda/kernel/meta.cuh"

enum { THREADS = 128 };

template <typename T>
static __global__ void gather_kernel(const T *x, const T *y, int64_t split, int64_t n, T *all) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i < n) all[i] = i < split ? x[i] : y[i - split];
}

template <typename T> static __global__ void note_kernel(T *rows, int64_t *first, double count) {
  *rows = gp_store<T>((gp_compute<T>)count);
  *first = 1;
}

template <typename T> static gp_status launch(gp_gpu *gpu, const gp_call *call) {
  const int64_t split = gp_numel_of(call->in[0].meta);
  const int64_t n = split + (call->n_in > 1 ? gp_numel_of(call->in[1].meta) : 0);
  const T *x = (const T *)call->in[0].data;
  const T *y = call->n_in > 1 ? (const T *)call->in[1].data : nullptr;
  const dim3 grid((unsigned)(n > 0 ? (n + THREADS - 1) / THREADS : 1));
  const gp_status status =
      GP_LAUNCH(gpu, gather_kernel<T>, grid, THREADS, 0, x, y, split, n, (T *)call->out[0].data);
  if (status) return status;
  return GP_LAUNCH(gpu, note_kernel<T>, dim3(1), 1, 0, (T *)call->out[1].data,
                   (int64_t *)call->out[2].data, (double)call->attr->replica_gather.rows);
}

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  if (call->op.attr->replica_gather.replicas != 1)
    return gp_gpu_fail(GP_EUNSUPPORTED,
                       "replica_gather: %lld replicas, expected 1 outside of a pipeline",
                       (long long)call->op.attr->replica_gather.replicas);
  GP_BY_FLOAT(call->op.in[0].meta->dtype, return launch<T>(gpu, &call->op));
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_replica_gather = {run, NULL};
