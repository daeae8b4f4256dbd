/* device/cuda/cudnn/convolution/graph.h - the graphs of a convolution, for the code that runs them
 * and the code that tests them. */
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

/* Say why cuDNN cannot compute this convolution, as far as that is known without asking it; NULL:
 * it might. Addresses may be NULL. */
const char *gp_cudnn_convolution_refusal(const gp_convolution *c);
/* Add the convolution to the graph. With a bias, it adds to the values at its result's address.
 * Other addresses are ignored. */
void gp_cudnn_convolution_describe(gp_cudnn_graph *graph, const gp_convolution *c);
/* Limit the engines: how much workspace they may use, and how exact they must be. tf32 counts for
 * f32 only. */
gp_cudnn_limits gp_cudnn_convolution_limits(const gp_convolution *c, bool tf32);

#endif
