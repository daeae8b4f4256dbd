/* ops/image/pixels.cuh - one kernel for all ops that make an image element by element; an op is
 * what it does for one element.
 *
 *   template <typename T> struct doubled {
 *     const T *x;
 *     T *y;
 *     __device__ void operator()(int64_t at, const gp_pixel &) const { y[at] = x[at] + x[at]; }
 *   };
 *   return gp_each_pixel(gpu, doubled<T>{x, y}, call->out[0].meta);
 *
 * Functors of all files share one namespace, so their names must differ. */
#ifndef GP_OPS_IMAGE_PIXELS_CUH
#define GP_OPS_IMAGE_PIXELS_CUH

#include "device/cuda/kernel/meta.cuh"

enum { GP_PIXEL_THREADS = 256 };

/* The coordinates of an element of N x H x W x C in memory. */
struct gp_pixel {
  int64_t row, y, x, c;
};

struct gp_pixels {
  int64_t height, width, channels;
};

static __device__ inline gp_pixel gp_pixel_at(int64_t index, const gp_pixels &of) {
  gp_pixel p;
  p.c = index % of.channels, index /= of.channels;
  p.x = index % of.width, index /= of.width;
  p.y = index % of.height, p.row = index / of.height;
  return p;
}

template <typename F> static __global__ void gp_pixels_kernel(F f, gp_pixels of, int64_t n) {
  const int64_t step = (int64_t)gridDim.x * GP_PIXEL_THREADS;
  for (int64_t at = (int64_t)blockIdx.x * GP_PIXEL_THREADS + threadIdx.x; at < n; at += step)
    f(at, gp_pixel_at(at, of));
}

/* Call f(at, pixel) for each element of the result, [N, C, H, W] that lies channels-last. */
template <typename F> static gp_status gp_each_pixel(gp_gpu *gpu, const F &f, const gp_meta *made) {
  const int64_t n = gp_numel_of(made), *dim = made->shape.dim;
  const gp_pixels of = {dim[2], dim[3], dim[1]};
  if (n == 0) return GP_OK;
  return GP_LAUNCH(gpu, gp_pixels_kernel<F>, gp_blocks(n, GP_PIXEL_THREADS), GP_PIXEL_THREADS, 0, f,
                   of, n);
}

#endif
