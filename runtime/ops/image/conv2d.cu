/* ops/image/conv2d.cu - see conv2d.c: y = x * w + b on a GPU, element by element. */
#include "ops/image/conv.cuh"

template <typename T> struct forward {
  gp_conv c;
  const T *x, *w, *bias;
  T *y;
};

/* One element: taps outermost, then the channels of its group. */
template <typename T>
static __device__ gp_compute<T> weigh(const forward<T> &f, const gp_pixel &p) {
  const gp_conv &c = f.c;
  const int64_t channels = c.image_c / c.groups, taps = c.h.kernel * c.w.kernel;
  const int64_t group = p.c / (c.map_c / c.groups);
  const T *w = f.w + p.c * channels * taps;
  gp_compute<T> sum = f.bias ? gp_load(f.bias[p.c]) : (gp_compute<T>)0;
  for (int64_t t = 0; t < taps; t++) {
    const int64_t y = gp_conv_seen(c.h, p.y, t / c.w.kernel);
    const int64_t x = gp_conv_seen(c.w, p.x, t % c.w.kernel);
    if (y < 0 || x < 0) continue;
    const T *from = f.x + ((p.row * c.h.image + y) * c.w.image + x) * c.image_c + group * channels;
    for (int64_t i = 0; i < channels; i++) sum += gp_load(from[i]) * gp_load(w[i * taps + t]);
  }
  return sum;
}

template <typename T> static __global__ void conv2d_kernel(forward<T> f, int64_t n) {
  gp_kernel_begin();
  const int64_t step = (int64_t)gridDim.x * GP_CONV_THREADS;
  for (int64_t at = (int64_t)blockIdx.x * GP_CONV_THREADS + threadIdx.x; at < n; at += step)
    f.y[at] = gp_store<T>(weigh(f, gp_pixel_at(at, f.c.h.map, f.c.w.map, f.c.map_c)));
}

template <typename T> static gp_status launch(gp_gpu *gpu, const gp_call *call) {
  const int64_t n = gp_numel_of(call->out[0].meta);
  const forward<T> f = {
      gp_conv_forward(call), (const T *)call->in[0].data, (const T *)call->in[1].data,
      call->n_in == 3 ? (const T *)call->in[2].data : NULL, (T *)call->out[0].data};
  if (n == 0) return GP_OK;
  return GP_LAUNCH(gpu, conv2d_kernel<T>, gp_blocks(n, GP_CONV_THREADS), GP_CONV_THREADS, 0, f, n);
}

/* Plans of GPUs pack no weights. */
static gp_status run(gp_gpu *gpu, const gp_gpu_call *call) {
  GP_BY_FLOAT(call->op.out[0].meta->dtype, return launch<T>(gpu, &call->op));
  return GP_OK;
}

const gp_gpu_kernel gp_gpu_conv2d = {run, NULL};
