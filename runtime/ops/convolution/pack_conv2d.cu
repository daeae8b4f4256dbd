/* ops/convolution/pack_conv2d.cu - O x I x KH x KW -> [KH KW, I, O], or [KH KW, O, I] if
 * transposed.
 *
 * No plan of a GPU packs weights, but the op must mean the same there. It only moves elements. */
#include "device/cuda/kernel/meta.cuh"

enum { THREADS = 256 };

/* The taps and channels of the weight: those of the middle dim of the result, and of its last
 * one. */
struct order {
  int64_t taps, middle, last, middle_step, last_step;
};

template <typename T> static __global__ void pack_kernel(const T *w, T *to, order o, int64_t n) {
  const int64_t step = (int64_t)gridDim.x * THREADS;
  for (int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x; at < n; at += step) {
    const int64_t line = at / o.last;
    to[at] = w[line / o.middle + line % o.middle * o.middle_step + at % o.last * o.last_step];
  }
}

template <typename T> static gp_status launch(gp_gpu *gpu, const gp_call *call) {
  const gp_shape *w = &call->in[0].meta->shape;
  const int64_t taps = w->dim[2] * w->dim[3], n = gp_numel_of(call->in[0].meta);
  const order forward = {taps, w->dim[1], w->dim[0], taps, w->dim[1] * taps};
  const order back = {taps, w->dim[0], w->dim[1], w->dim[1] * taps, taps};
  if (n == 0) return GP_OK;
  return GP_LAUNCH(gpu, pack_kernel<T>, gp_blocks(n, THREADS), THREADS, 0,
                   (const T *)call->in[0].data, (T *)call->out[0].data,
                   call->attr->pack_conv2d.transposed ? back : forward, n);
}

static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  switch (gp_item_of(call->op.in[0].meta->dtype)) {
  case 2: return launch<uint16_t>(gpu, &call->op);
  case 4: return launch<uint32_t>(gpu, &call->op);
  default: return launch<uint64_t>(gpu, &call->op);
  }
}

const gp_gpu_kernel gp_gpu_pack_conv2d = {run, NULL};
