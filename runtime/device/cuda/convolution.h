/* device/cuda/convolution.h - one pass of a convolution: described for graphs of cuDNN
 * (cudnn/convolution), and for our kernels around them (ops/convolution/beside_cudnn.cu).
 *
 * Images and maps are N x H x W x C in memory, weights O x I / groups x KH x KW, or turned. At tap
 * k of the kernel, position m of the map uses position m * stride - before + k * dilation of the
 * image. */
#ifndef GP_DEVICE_CUDA_CONVOLUTION_H
#define GP_DEVICE_CUDA_CONVOLUTION_H

#include "device/cuda/gpu.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gp_convolution_pass {
  GP_CONVOLUTION_MAP,   /* map = image * weight + bias */
  GP_CONVOLUTION_IMAGE, /* image = map * weight transposed + bias: also the gradient of the image */
  GP_CONVOLUTION_WEIGHT /* weight = its gradient, from the image and the map's gradient */
} gp_convolution_pass;

typedef struct gp_convolution_axis {
  int64_t image, map, kernel; /* sizes */
  int64_t stride, before, dilation;
} gp_convolution_axis;

typedef struct gp_convolution {
  gp_convolution_pass pass;
  gp_dtype dtype;         /* of image and map, and of the weight if it is read */
  bool biased;            /* never for GP_CONVOLUTION_WEIGHT */
  int64_t rows, groups;   /* N */
  int64_t image_c, map_c; /* channels of all groups */
  gp_convolution_axis h, w;
  void *image, *map, *weight; /* NULL in prepare */
  const void *bias;           /* one value for each channel of the result */
  gp_dtype weight_dtype;      /* type of the weight if it is the result */
  bool accumulate;            /* add to the weight instead of writing it */
  bool turned;                /* the weight that is read lies O x KH x KW x I / groups */
  void *scratch;              /* device memory */
} gp_convolution;

/* ---- what graphs of cuDNN leave to us (ops/convolution/beside_cudnn.cu) ------------- */

/* Write the weight as O x KH x KW x I / groups. */
gp_status gp_convolution_turn(gp_gpu *gpu, const gp_convolution *c, void *to);
/* Read a weight gradient in that order from `from`, of c->dtype, and write or add it to the
 * weight. */
gp_status gp_convolution_turn_back(gp_gpu *gpu, const gp_convolution *c, const void *from);
/* Write the bias to the result's address. */
gp_status gp_convolution_write_bias(gp_gpu *gpu, const gp_convolution *c);

#ifdef __cplusplus
}
#endif

#endif
