/* device/cuda/cudnn/convolution/graph.c - each pass of a convolution as a cuDNN graph with one
 * operation.
 *
 * All values are channels-last, also the weight: tensor-core engines accept nothing else. The graph
 * does not name groups: the library derives them from the channels of image and weight.
 *
 * Source: NVIDIA's documentation of the backend API, "CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR". */
#include "device/cuda/cudnn/convolution/graph.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- what fits ----------------------------------------------------------------------------- */

/* The padding at the end of an axis that gives its map size: the same as at the beginning if that
 * fits, else the least. -1 if the image goes on for more than a stride after the last window. */
static int64_t behind(const gp_convolution_axis *a) {
  const int64_t least =
      (a->map - 1) * a->stride + (a->kernel - 1) * a->dilation + 1 - a->image - a->before;
  if (a->before >= least && a->before < least + a->stride) return a->before;
  if (least >= 0) return least;
  return least + a->stride > 0 ? 0 : -1;
}

static bool is_empty(const gp_convolution *c) {
  return c->rows < 1 || c->groups < 1 || c->image_c < 1 || c->map_c < 1 || c->h.image < 1 ||
         c->h.map < 1 || c->w.image < 1 || c->w.map < 1 || c->h.kernel < 1 || c->w.kernel < 1;
}

static bool is_aligned(const gp_convolution *c) {
  const void *data[] = {c->image, c->map, c->weight, c->bias};
  for (int i = 0; i < 4; i++)
    if ((uintptr_t)data[i] % 16 != 0) return false;
  return true;
}

/* Lets users compare our own kernels with the library, on inputs that both can compute. */
static bool asks_for_own(void) {
  const char *asked = getenv("GPIPE_CONVOLUTION");
  return asked && strcmp(asked, "own") == 0;
}

const char *gp_cudnn_convolution_refusal(const gp_convolution *c) {
  if (asks_for_own()) return "GPIPE_CONVOLUTION=own";
  if (c->dtype != GP_F32 && c->dtype != GP_BF16 && c->dtype != GP_F16)
    return "we ask cuDNN for f32, bf16 and f16";
  if (is_empty(c)) return "there is nothing to compute";
  if (behind(&c->h) < 0 || behind(&c->w) < 0)
    return "a part of the image behind the last window is longer than a stride";
  return is_aligned(c) ? NULL : "cuDNN takes values that are 16 bytes aligned";
}

/* ---- engines ------------------------------------------------------------------------------- */

enum { WORKSPACE = 256 /* MiB, the most for one convolution */ };

/* Exclude engines that lose more than a rounding of each operand: sums in halves, transforms, and
 * tensor cores for f32. */
gp_cudnn_limits gp_cudnn_convolution_limits(const gp_convolution *c, bool tf32) {
  gp_cudnn_limits limits = {.workspace = (size_t)WORKSPACE << 20,
                            .notes = 1u << CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION |
                                     1u << CUDNN_NUMERICAL_NOTE_FFT |
                                     1u << CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6 |
                                     1u << CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13};
  if (c->dtype == GP_F32 && !tf32)
    limits.notes |=
        1u << CUDNN_NUMERICAL_NOTE_TENSOR_CORE | 1u << CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
  return limits;
}

/* ---- values -------------------------------------------------------------------------------- */

typedef gp_cudnn_node node;

static cudnnDataType_t type_of(gp_dtype dtype) {
  if (dtype == GP_F32) return CUDNN_DATA_FLOAT;
  return dtype == GP_F16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16;
}

/* A tensor [n, c, h, w] that is stored as n x h x w x c. */
static gp_cudnn_tensor channels_last(int64_t id, gp_dtype dtype, int64_t n, int64_t c, int64_t h,
                                     int64_t w) {
  return (gp_cudnn_tensor){.type = type_of(dtype),
                           .rank = 4,
                           .dim = {n, c, h, w},
                           .stride = {h * w * c, 1, w * c, c},
                           .id = id,
                           .alignment = 16,
                           .storage = GP_CUDNN_STORED};
}

static gp_cudnn_tensor image_of(const gp_convolution *c) {
  return channels_last(GP_CUDNN_IMAGE, c->dtype, c->rows, c->image_c, c->h.image, c->w.image);
}

static gp_cudnn_tensor map_of(const gp_convolution *c) {
  return channels_last(GP_CUDNN_MAP, c->dtype, c->rows, c->map_c, c->h.map, c->w.map);
}

/* Gradients of weights use this type as well. Engines that leave their sums in f32 exist only for
 * graphs of two operations, and say nothing about the order of their sums. */
static gp_cudnn_tensor weight_of(const gp_convolution *c) {
  return channels_last(GP_CUDNN_WEIGHT, c->dtype, c->map_c, c->image_c / c->groups, c->h.kernel,
                       c->w.kernel);
}

/* ---- operations ---------------------------------------------------------------------------- */

/* The bias is already in the result, and the convolution adds to it: engines accept that for every
 * shape, and round the sum once. */
void gp_cudnn_convolution_describe(gp_cudnn_graph *graph, const gp_convolution *c) {
  static const gp_cudnn_convolving passes[] = {[GP_CONVOLUTION_MAP] = GP_CUDNN_CONVOLVE,
                                               [GP_CONVOLUTION_IMAGE] = GP_CUDNN_CONVOLVE_DX,
                                               [GP_CONVOLUTION_WEIGHT] = GP_CUDNN_CONVOLVE_DW};
  const gp_cudnn_tensor image = image_of(c), map = map_of(c), weight = weight_of(c);
  const gp_cudnn_convolve op = {
      .adds = c->biased,
      .pass = passes[c->pass],
      .x = gp_cudnn_add_tensor(graph, &image),
      .w = gp_cudnn_add_tensor(graph, &weight),
      .y = gp_cudnn_add_tensor(graph, &map),
      .stride = {c->h.stride, c->w.stride},
      .dilation = {c->h.dilation, c->w.dilation},
      .before = {c->h.before, c->w.before},
      .behind = {behind(&c->h), behind(&c->w)},
  };
  gp_cudnn_add_convolve(graph, &op);
}
