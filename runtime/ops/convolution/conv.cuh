/* ops/convolution/conv.cuh - convolutions on a GPU, direct: a thread makes an element, and meets
 * what it is made of in one order.
 *
 * No product of matrices and no library: what runs where nothing faster does. */
#ifndef GP_OPS_CONVOLUTION_CONV_CUH
#define GP_OPS_CONVOLUTION_CONV_CUH

#include "ops/convolution/conv.h"
#include "ops/image/pixels.cuh"

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
