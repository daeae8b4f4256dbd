/* device/cuda/cudnn/convolution/graph.h - the graphs of a convolution, for those that run and those
 * that test them. */
#ifndef GP_DEVICE_CUDA_CUDNN_CONVOLUTION_GRAPH_H
#define GP_DEVICE_CUDA_CUDNN_CONVOLUTION_GRAPH_H

#include "device/cuda/convolution.h"
#include "device/cuda/cudnn/plan.h"

/* Ids of the values in memory. */
typedef enum gp_cudnn_convolution_id {
  GP_CUDNN_IMAGE = 1,
  GP_CUDNN_MAP,
  GP_CUDNN_WEIGHT /* O x KH x KW x I / groups */
} gp_cudnn_convolution_id;

/* Why cuDNN cannot take it, as far as can be said without asking; NULL: it might. Addresses may be
 * NULL. */
const char *gp_cudnn_convolution_refusal(const gp_convolution *c);
/* Add its operation. Where there is a bias, it adds to what lies where the result goes. Addresses
 * are not looked at. */
void gp_cudnn_convolution_describe(gp_cudnn_graph *graph, const gp_convolution *c);
/* Which engines may compute it: their workspace, and how exact they are. tf32: of f32 alone. */
gp_cudnn_limits gp_cudnn_convolution_limits(const gp_convolution *c, bool tf32);

#endif
