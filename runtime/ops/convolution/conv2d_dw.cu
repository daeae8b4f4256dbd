/* ops/convolution/conv2d_dw.cu - see conv2d_dw.c: the gradient of a convolution's weight on a GPU.
 *
 * cuDNN computes it, or the kernel here: a warp makes an element, each lane sums every 32nd
 * position, then a tree adds the lanes. The order is the same for every grid. */
#include "device/cuda/kernel/lanes.cuh"
#include "ops/convolution/library/library.cuh"

enum { ELEMENTS = 8 }; /* of a block, a warp each */

template <typename T> struct weights {
  gp_conv c;
  const T *dy, *x;
  gp_sink dw;
};

/* An element of dw, O x I / groups x KH x KW: it says which elements of dy and of x are read. */
struct tap {
  int64_t o, i, h, w;
};

template <typename T>
static __device__ gp_compute<T> sum_lane(const weights<T> &f, const tap &k, int lane) {
  const gp_conv &c = f.c;
  const int64_t count = c.rows * c.h.map * c.w.map;
  gp_compute<T> sum = 0;
  for (int64_t p = lane; p < count; p += GP_WARP) {
    const int64_t line = p / c.w.map, row = line / c.h.map;
    const int64_t y = gp_conv_seen(c.h, line % c.h.map, k.h),
                  x = gp_conv_seen(c.w, p % c.w.map, k.w);
    if (y < 0 || x < 0) continue;
    sum += gp_load(f.dy[p * c.map_c + k.o]) *
           gp_load(f.x[((row * c.h.image + y) * c.w.image + x) * c.image_c + k.i]);
  }
  return sum;
}

template <typename T> static __global__ void conv2d_dw_kernel(weights<T> f, int64_t n) {
  const int lane = threadIdx.x;
  const gp_conv &c = f.c;
  const int64_t channels = c.image_c / c.groups, outputs = c.map_c / c.groups;
  for (int64_t at = (int64_t)blockIdx.x * ELEMENTS + threadIdx.y; at < n;
       at += (int64_t)gridDim.x * ELEMENTS) {
    tap k;
    k.w = at % c.w.kernel, k.h = at / c.w.kernel % c.h.kernel;
    const int64_t line = at / (c.w.kernel * c.h.kernel);
    k.o = line / channels, k.i = k.o / outputs * channels + line % channels;
    gp_compute<T> sum = sum_lane(f, k, lane);
    for (int step = GP_WARP / 2; step > 0; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
    if (lane == 0) gp_sink_put<gp_compute<T>>(f.dw, at, sum);
  }
}

template <typename T> static gp_status launch(gp_gpu *gpu, const gp_call *call) {
  const int64_t n = gp_numel_of(call->out[0].meta);
  const weights<T> f = {gp_conv_dw(call), (const T *)call->in[0].data, (const T *)call->in[1].data,
                        gp_sink_of(call, 0)};
  if (n == 0) return GP_OK;
  return GP_LAUNCH(gpu, conv2d_dw_kernel<T>, gp_blocks(n, ELEMENTS), dim3(GP_WARP, ELEMENTS), 0, f,
                   n);
}

static gp_convolution describe(const gp_call *call) {
  const gp_conv_values values = {&call->in[1], &call->in[0], &call->out[0], NULL};
  return gp_convolution_of(GP_CONVOLUTION_WEIGHT, gp_conv_dw(call), values, call);
}

GP_CONVOLUTION_KERNEL(conv2d_dw, describe)
