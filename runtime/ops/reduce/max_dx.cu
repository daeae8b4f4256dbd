/* ops/reduce/max_dx.cu - see max_dx.c: dy at the positions of the largest elements, 0 elsewhere.
 *
 * Every element of the result is written once; zero bits are 0 in every float type, so the kernel
 * knows nothing but sizes. */
#include "ops/axis.h"
#include "device/cuda/kernel/meta.cuh"

enum { THREADS = 256 };

template <typename T> struct spread {
  const T *dy;
  const int64_t *positions;
  T *dx;
  gp_axis axis;
};

/* Element (outer, i, j) of the result reads the position of (outer, j). Divisions are of 32 bits if
 * that is enough. */
template <typename T> static __global__ void spread_kernel(spread<T> s, int64_t n) {
  const int64_t size = s.axis.size, inner = s.axis.inner;
  const bool small = n >> 32 == 0;
  for (int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x; at < n;
       at += (int64_t)gridDim.x * THREADS) {
    const int64_t line = small ? (uint32_t)at / (uint32_t)inner : at / inner; /* outer, i */
    const int64_t outer = small ? (uint32_t)line / (uint32_t)size : line / size;
    const int64_t from = outer * inner + (at - line * inner), i = line - outer * size;
    s.dx[at] = s.positions[from] == i + 1 ? s.dy[from] : (T)0;
  }
}

template <typename T> static gp_status launch(gp_gpu *gpu, const gp_call *call) {
  const int64_t n = gp_numel_of(call->out[0].meta);
  const spread<T> s = {(const T *)call->in[0].data, (const int64_t *)call->in[1].data,
                       (T *)call->out[0].data,
                       gp_axis_of(&call->out[0].meta->shape, call->attr->max_dx.dim)};
  if (n == 0) return GP_OK;
  return GP_LAUNCH(gpu, spread_kernel<T>, gp_blocks(n, THREADS), THREADS, 0, s, n);
}

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  switch (gp_item_of(call->op.out[0].meta->dtype)) {
  case 2: return launch<uint16_t>(gpu, &call->op);
  case 4: return launch<uint32_t>(gpu, &call->op);
  default: return launch<uint64_t>(gpu, &call->op);
  }
}

const gp_gpu_kernel gp_gpu_max_dx = {run, NULL};
