/* device/cuda/cudnn/graph.h - build a graph of cuDNN operations, and a plan that runs it.
 *
 * A graph is described from its inputs to its outputs by calls that return no status: the graph
 * keeps the first refusal, which is reported when the plan is built. */
#ifndef GP_DEVICE_CUDA_CUDNN_GRAPH_H
#define GP_DEVICE_CUDA_CUDNN_GRAPH_H

#include "device/cuda/cudnn/library.h"
#include "device/cuda/gpu.h"

typedef cudnnBackendDescriptor_t gp_cudnn_node;

enum { GP_CUDNN_RANK = 5, GP_CUDNN_NODES = 256, GP_CUDNN_OPS = 48 };

typedef struct gp_cudnn_graph {
  const gp_cudnn_library *library;
  cudnnStatus_t status; /* of the first call that was refused, else success */
  int n_nodes, n_ops;
  gp_cudnn_node node[GP_CUDNN_NODES]; /* all descriptors, in the order in which they were made */
  gp_cudnn_node op[GP_CUDNN_OPS];     /* borrowed from node */
} gp_cudnn_graph;

/* ---- descriptors, which make up graphs, operations and plans --------------------------------- */

gp_cudnn_node gp_cudnn_make(gp_cudnn_graph *graph, cudnnBackendDescriptorType_t type);
/* Set an attribute: to one value, to one or several whole numbers, or to another descriptor if that
 * is not NULL. */
void gp_cudnn_set(gp_cudnn_graph *graph, gp_cudnn_node node, cudnnBackendAttributeName_t name,
                  cudnnBackendAttributeType_t type, const void *value);
void gp_cudnn_set_ints(gp_cudnn_graph *graph, gp_cudnn_node node, cudnnBackendAttributeName_t name,
                       int count, const int64_t *values);
void gp_cudnn_set_node(gp_cudnn_graph *graph, gp_cudnn_node node, cudnnBackendAttributeName_t name,
                       gp_cudnn_node value);
void gp_cudnn_finish(gp_cudnn_graph *graph, gp_cudnn_node node);
void gp_cudnn_finish_op(gp_cudnn_graph *graph, gp_cudnn_node node); /* and append it */
/* Destroy the descriptors that were made after the first `mark` ones. */
void gp_cudnn_release(gp_cudnn_graph *graph, int mark);

/* ---- values -------------------------------------------------------------------------------- */

typedef enum gp_cudnn_storage {
  GP_CUDNN_STORED,  /* in memory, under an id */
  GP_CUDNN_VIRTUAL, /* between operations */
  GP_CUDNN_SCALAR   /* a number on the host, under an id */
} gp_cudnn_storage;

typedef struct gp_cudnn_tensor {
  cudnnDataType_t type;
  int rank;
  int64_t dim[GP_CUDNN_RANK], stride[GP_CUDNN_RANK]; /* elements */
  int64_t id;                                        /* unique in a graph; 0 for virtual ones */
  int64_t alignment;                                 /* bytes; 0: 16, 4 for f32 */
  gp_cudnn_storage storage;
} gp_cudnn_tensor;

gp_cudnn_node gp_cudnn_add_tensor(gp_cudnn_graph *graph, const gp_cudnn_tensor *tensor);

/* ---- operations, computed in f32 ----------------------------------------------------------- */

/* y = x mode b; NULL for operands that the mode does not take. axis: for GEN_INDEX only. */
typedef struct gp_cudnn_pointwise {
  cudnnPointwiseMode_t mode;
  gp_cudnn_node x, b, t, y; /* t: the condition of BINARY_SELECT */
  int64_t axis;
} gp_cudnn_pointwise;

void gp_cudnn_add_pointwise(gp_cudnn_graph *graph, const gp_cudnn_pointwise *op);
void gp_cudnn_add_matmul(gp_cudnn_graph *graph, gp_cudnn_node a, gp_cudnn_node b, gp_cudnn_node c);
/* Reduce over the dimensions in which y has size 1. */
void gp_cudnn_add_reduction(gp_cudnn_graph *graph, cudnnReduceTensorOp_t op, gp_cudnn_node x,
                            gp_cudnn_node y);
/* Reinterpret the same elements with other dimensions and strides. */
void gp_cudnn_add_reshape(gp_cudnn_graph *graph, gp_cudnn_node x, gp_cudnn_node y);

/* y = x * w in two dimensions, or a gradient: of x from y and w, or of w from x and y. */
typedef enum gp_cudnn_convolving {
  GP_CUDNN_CONVOLVE,
  GP_CUDNN_CONVOLVE_DX,
  GP_CUDNN_CONVOLVE_DW
} gp_cudnn_convolving;

typedef struct gp_cudnn_convolve {
  gp_cudnn_convolving pass;
  gp_cudnn_node x, w, y;                                /* or their gradients */
  int64_t stride[2], dilation[2], before[2], behind[2]; /* for the height and the width */
  bool adds;                                            /* adds to the values at the result's
                                                         * address */
} gp_cudnn_convolve;

void gp_cudnn_add_convolve(gp_cudnn_graph *graph, const gp_cudnn_convolve *op);

#endif
