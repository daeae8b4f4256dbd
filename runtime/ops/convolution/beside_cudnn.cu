/* ops/convolution/beside_cudnn.cu - what cuDNN's convolutions leave to us, see
 * device/cuda/convolution.h. */
#include "device/cuda/convolution.h"
#include "ops/image/pixels.cuh"

enum { THREADS = 256 };

/* The elements of a weight: O x `read` x `taps` in the op, O x taps x read in cuDNN's graph. */
struct turned_weight {
  int64_t outputs, read, taps;
  int64_t count() const { return outputs * read * taps; }
};

static turned_weight turned_of(const gp_convolution *c) {
  return {c->map_c, c->image_c / c->groups, c->h.kernel * c->w.kernel};
}

/* ---- weights ------------------------------------------------------------------------------- */

/* Elements are only moved, so their size is all that counts. */
template <typename T>
static __global__ void convolution_turn(const T *w, T *to, turned_weight o, int64_t n) {
  const int64_t step = (int64_t)gridDim.x * THREADS;
  for (int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x; at < n; at += step) {
    const int64_t i = at % o.read, line = at / o.read;
    to[at] = w[(line / o.taps * o.read + i) * o.taps + line % o.taps];
  }
}

gp_status gp_convolution_turn(gp_gpu *gpu, const gp_convolution *c, void *to) {
  const turned_weight o = turned_of(c);
  const unsigned blocks = gp_blocks(o.count(), THREADS);
  if (gp_item_of(c->dtype) == 4)
    return GP_LAUNCH(gpu, convolution_turn<uint32_t>, blocks, THREADS, 0,
                     (const uint32_t *)c->weight, (uint32_t *)to, o, o.count());
  return GP_LAUNCH(gpu, convolution_turn<uint16_t>, blocks, THREADS, 0, (const uint16_t *)c->weight,
                   (uint16_t *)to, o, o.count());
}

template <typename T>
static __global__ void convolution_turn_back(const T *from, gp_sink to, turned_weight o,
                                             int64_t n) {
  const int64_t step = (int64_t)gridDim.x * THREADS;
  for (int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x; at < n; at += step) {
    const int64_t line = at / o.taps, t = at % o.taps;
    gp_sink_put<float>(to, at,
                       gp_load(from[(line / o.read * o.taps + t) * o.read + line % o.read]));
  }
}

template <typename T>
static gp_status turn_back(gp_gpu *gpu, const gp_convolution *c, const void *from) {
  const turned_weight o = turned_of(c);
  const gp_sink to = {c->weight, c->weight_dtype, c->accumulate};
  return GP_LAUNCH(gpu, convolution_turn_back<T>, gp_blocks(o.count(), THREADS), THREADS, 0,
                   (const T *)from, to, o, o.count());
}

gp_status gp_convolution_turn_back(gp_gpu *gpu, const gp_convolution *c, const void *from) {
  if (c->dtype == GP_F32) return turn_back<float>(gpu, c, from);
  return c->dtype == GP_F16 ? turn_back<gp_f16>(gpu, c, from) : turn_back<gp_bf16>(gpu, c, from);
}

/* ---- bias ---------------------------------------------------------------------------------- */

template <typename T>
static __global__ void convolution_write_bias(T *to, const T *bias, int64_t channels, int64_t n) {
  const int64_t step = (int64_t)gridDim.x * THREADS;
  for (int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x; at < n; at += step)
    to[at] = bias[at % channels];
}

template <typename T> static gp_status write_bias(gp_gpu *gpu, const gp_convolution *c) {
  const bool map = c->pass == GP_CONVOLUTION_MAP;
  const int64_t channels = map ? c->map_c : c->image_c;
  const int64_t lines = map ? c->h.map * c->w.map : c->h.image * c->w.image;
  const int64_t n = c->rows * lines * channels;
  return GP_LAUNCH(gpu, convolution_write_bias<T>, gp_blocks(n, THREADS), THREADS, 0,
                   (T *)(map ? c->map : c->image), (const T *)c->bias, channels, n);
}

/* Elements are only moved, so their size is all that counts. */
gp_status gp_convolution_write_bias(gp_gpu *gpu, const gp_convolution *c) {
  return gp_item_of(c->dtype) == 4 ? write_bias<uint32_t>(gpu, c) : write_bias<uint16_t>(gpu, c);
}
