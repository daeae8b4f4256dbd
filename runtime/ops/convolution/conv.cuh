/* ops/convolution/conv.cuh - direct convolutions on a GPU: a thread makes an element, adding its
 * terms in one order.
 *
 * They use no product of matrices and no library, and run where nothing faster does. */
#ifndef GP_OPS_CONVOLUTION_CONV_CUH
#define GP_OPS_CONVOLUTION_CONV_CUH

#include "ops/convolution/conv.h"
#include "ops/image/pixels.cuh"

/* Return the position of the map that meets `at` of an image at tap k, or -1. */
static __device__ inline int64_t gp_conv_met(const gp_conv_axis &a, int64_t at, int64_t k) {
  const int64_t from = at + a.before - k * a.dilation;
  if (from < 0 || from % a.stride != 0 || from / a.stride >= a.map) return -1;
  return from / a.stride;
}

/* Return the position of the image that tap k of position m of the map meets, or -1. */
static __device__ inline int64_t gp_conv_seen(const gp_conv_axis &a, int64_t m, int64_t k) {
  const int64_t at = m * a.stride - a.before + k * a.dilation;
  return at >= 0 && at < a.image ? at : -1;
}

#endif
