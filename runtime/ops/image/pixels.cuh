/* ops/image/pixels.cuh - one kernel for all ops that make an image position by position; an op is
 * what it does for some neighbouring channels of one position.
 *
 *   template <typename T> struct doubled {
 *     const T *x;
 *     T *y;
 *     template <int COUNT> __device__ void make(const gp_pixel &p) const {
 *       gp_lane_pack<T, COUNT> v = gp_lane_load<COUNT>(x + p.at);
 *       for (int k = 0; k < COUNT; k++) v.at[k] = v.at[k] + v.at[k];
 *       gp_lane_store(y + p.at, v);
 *     }
 *   };
 *   return gp_each_pixel<T>(gpu, doubled<T>{x, y}, call->out[0].meta, gp_is_packed(x));
 *
 * Where all elements of a position can be moved by packs of 16 bytes, COUNT is a pack's number of
 * elements, else 1: what an op works out for a position is shared by its channels. Functors of all
 * files share one namespace, so their names must differ. */
#ifndef GP_OPS_IMAGE_PIXELS_CUH
#define GP_OPS_IMAGE_PIXELS_CUH

#include "device/cuda/kernel/meta.cuh"
#include "ops/elementwise/walk.cuh"
#include "ops/image/lines.h"

enum { GP_PIXEL_THREADS = 256 };

/* A position of N x H x W x C in memory, and the first of some channels there. */
struct gp_pixel {
  int64_t row, at; /* at: the element */
  gp_line y, x;
  int32_t c;
};

struct gp_pixels {
  gp_divisor height, width, packs; /* packs: of a position */
  uint32_t units;                  /* packs of this launch */
  int64_t first;                   /* row */
};

template <int COUNT>
static __device__ inline gp_pixel gp_pixel_at(uint32_t unit, const gp_pixels &of) {
  gp_pixel p;
  const uint32_t position = gp_divide(unit, of.packs), line = gp_divide(position, of.width);
  const uint32_t image = gp_divide(line, of.height);
  p.c = (int32_t)(unit - position * of.packs.by) * COUNT;
  p.x = (gp_line)(position - line * of.width.by);
  p.y = (gp_line)(line - image * of.height.by);
  p.row = of.first + image;
  const int64_t before = of.first * of.height.by * of.width.by * of.packs.by;
  p.at = (before + unit) * COUNT;
  return p;
}

template <int COUNT, typename F>
static __global__ void __launch_bounds__(GP_PIXEL_THREADS) gp_pixels_kernel(F f, gp_pixels of) {
  const uint32_t step = gridDim.x * GP_PIXEL_THREADS;
  for (uint32_t n = blockIdx.x * GP_PIXEL_THREADS + threadIdx.x; n < of.units; n += step)
    f.template make<COUNT>(gp_pixel_at<COUNT>(n, of));
}

/* ---- some elements at once ------------------------------------------------------------------- */

template <typename T, int COUNT>
struct alignas(COUNT * sizeof(T) < 16 ? COUNT * sizeof(T) : 16) gp_lane_pack {
  T at[COUNT];
};

template <int COUNT, typename T>
static __device__ inline gp_lane_pack<T, COUNT> gp_lane_load(const T *from) {
  return *reinterpret_cast<const gp_lane_pack<T, COUNT> *>(from);
}

template <int COUNT, typename T>
static __device__ inline void gp_lane_store(T *to, const gp_lane_pack<T, COUNT> &x) {
  *reinterpret_cast<gp_lane_pack<T, COUNT> *>(to) = x;
}

/* ---- launching ------------------------------------------------------------------------------- */

/* Launch as many whole images at a time as 31 bits count. */
template <int COUNT, typename F>
static gp_status gp_pixels_launch(gp_gpu *gpu, const F &f, const int64_t *dim) {
  const int64_t packs = dim[1] / COUNT, image = packs * dim[2] * dim[3];
  gp_pixels of = {gp_divisor_make((uint32_t)dim[2]), gp_divisor_make((uint32_t)dim[3]),
                  gp_divisor_make((uint32_t)packs), 0, 0};
  if (image > GP_WALK_MOST)
    return gp_gpu_fail(GP_EUNSUPPORTED, "an image of %lld elements, expected fewer than 2^31",
                       (long long)(image * COUNT));
  const int64_t most = GP_WALK_MOST / image;
  for (; of.first < dim[0]; of.first += most) {
    const int64_t rows = dim[0] - of.first < most ? dim[0] - of.first : most;
    of.units = (uint32_t)(rows * image);
    GP_GPU_TRY(GP_LAUNCH(gpu, (gp_pixels_kernel<COUNT, F>), gp_blocks(of.units, GP_PIXEL_THREADS),
                         GP_PIXEL_THREADS, 0, f, of));
  }
  return GP_OK;
}

/* Call f.make for each position of the result, [N, C, H, W] of T that lies channels-last; `packed`
 * if all addresses allow packs. f64 is rare: its elements are made one by one. */
template <typename T, typename F>
static gp_status gp_each_pixel(gp_gpu *gpu, const F &f, const gp_meta *made, bool packed) {
  const int64_t *dim = made->shape.dim;
  if (gp_numel_of(made) == 0) return GP_OK;
  if constexpr (sizeof(T) < sizeof(double))
    if (packed && dim[1] % gp_pack<T>::count == 0)
      return gp_pixels_launch<gp_pack<T>::count>(gpu, f, dim);
  return gp_pixels_launch<1>(gpu, f, dim);
}

/* Call f.make<1> for each element. */
template <typename F>
static gp_status gp_each_element(gp_gpu *gpu, const F &f, const gp_meta *made) {
  return gp_numel_of(made) == 0 ? GP_OK : gp_pixels_launch<1>(gpu, f, made->shape.dim);
}

/* Do positions along the axes of both images fit into a gp_line, and positions in one channel of
 * them into 31 bits? */
static inline gp_status gp_lines_check_sizes(const gp_shape *image, const gp_shape *result) {
  const gp_shape *both[] = {image, result};
  for (int i = 0; i < 2; i++) {
    const int64_t h = both[i]->dim[2], w = both[i]->dim[3];
    if (h >= GP_LINES_LARGEST || w >= GP_LINES_LARGEST || h * w > INT32_MAX)
      return gp_gpu_fail(
          GP_EUNSUPPORTED,
          "an image of %lldx%lld, expected fewer than 2^31 positions and 2^30 a side", (long long)h,
          (long long)w);
  }
  return GP_OK;
}

#endif
