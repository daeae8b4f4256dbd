/* ops/image/conv.cuh - convolutions on a GPU, direct: a thread makes an element, and meets what it
 * is made of in one order.
 *
 * No product of matrices and no library: what runs where nothing faster does. */
#ifndef GP_OPS_IMAGE_CONV_CUH
#define GP_OPS_IMAGE_CONV_CUH

#include "device/cuda/kernel/meta.cuh"
#include "ops/image/conv.h"

enum { GP_CONV_THREADS = 256 };

/* Where an element of N x H x W x C in memory belongs. */
struct gp_pixel {
  int64_t row, y, x, c;
};

static __device__ inline gp_pixel gp_pixel_at(int64_t index, int64_t height, int64_t width,
                                              int64_t channels) {
  gp_pixel p;
  p.c = index % channels, index /= channels;
  p.x = index % width, index /= width;
  p.y = index % height, p.row = index / height;
  return p;
}

/* Which position of the map meets `at` of an image at tap k; -1: none. */
static __device__ inline int64_t gp_conv_met(const gp_conv_axis &a, int64_t at, int64_t k) {
  const int64_t from = at + a.before - k * a.dilation;
  if (from < 0 || from % a.stride != 0 || from / a.stride >= a.map) return -1;
  return from / a.stride;
}

/* The position of the image that tap k of position m of the map meets; -1: none. */
static __device__ inline int64_t gp_conv_seen(const gp_conv_axis &a, int64_t m, int64_t k) {
  const int64_t at = m * a.stride - a.before + k * a.dilation;
  return at >= 0 && at < a.image ? at : -1;
}

#endif
