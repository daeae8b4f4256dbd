/* device/cuda/cudnn/graph.c - see graph.h: descriptors, attribute by attribute.
 *
 * After a graph has refused a call, later calls on it do nothing: so descriptions need no checks in
 * between, and the reported reason is that of the first mistake.
 *
 * Source: the order of calls follows NVIDIA's documentation of the backend API, "cudnnBackend". */
#include "device/cuda/cudnn/graph.h"

/* ---- descriptors --------------------------------------------------------------------------- */

/* Every descriptor belongs to its graph from the start, so that none leaks after a refusal. */
gp_cudnn_node gp_cudnn_make(gp_cudnn_graph *g, cudnnBackendDescriptorType_t type) {
  gp_cudnn_node node = NULL;
  if (g->status != CUDNN_STATUS_SUCCESS) return NULL;
  g->status = g->n_nodes < GP_CUDNN_NODES ? g->library->cudnnBackendCreateDescriptor(type, &node)
                                          : CUDNN_STATUS_ALLOC_FAILED;
  if (g->status != CUDNN_STATUS_SUCCESS) return NULL;
  g->node[g->n_nodes++] = node;
  return node;
}

void gp_cudnn_set(gp_cudnn_graph *g, gp_cudnn_node node, cudnnBackendAttributeName_t name,
                  cudnnBackendAttributeType_t type, const void *value) {
  if (g->status == CUDNN_STATUS_SUCCESS)
    g->status = g->library->cudnnBackendSetAttribute(node, name, type, 1, value);
}

void gp_cudnn_set_ints(gp_cudnn_graph *g, gp_cudnn_node node, cudnnBackendAttributeName_t name,
                       int count, const int64_t *values) {
  if (g->status == CUDNN_STATUS_SUCCESS)
    g->status = g->library->cudnnBackendSetAttribute(node, name, CUDNN_TYPE_INT64, count, values);
}

void gp_cudnn_set_node(gp_cudnn_graph *g, gp_cudnn_node node, cudnnBackendAttributeName_t name,
                       gp_cudnn_node value) {
  if (value) gp_cudnn_set(g, node, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, &value);
}

void gp_cudnn_finish(gp_cudnn_graph *g, gp_cudnn_node node) {
  if (g->status == CUDNN_STATUS_SUCCESS) g->status = g->library->cudnnBackendFinalize(node);
}

/* Finish an operation and append it. Graphs accept any order; this is one in which they can run. */
void gp_cudnn_finish_op(gp_cudnn_graph *g, gp_cudnn_node node) {
  gp_cudnn_finish(g, node);
  if (g->status == CUDNN_STATUS_SUCCESS && g->n_ops == GP_CUDNN_OPS)
    g->status = CUDNN_STATUS_ALLOC_FAILED;
  if (g->status == CUDNN_STATUS_SUCCESS) g->op[g->n_ops++] = node;
}

/* Release in reverse order: a descriptor goes before those that it was made of. */
void gp_cudnn_release(gp_cudnn_graph *g, int mark) {
  while (g->n_nodes > mark) g->library->cudnnBackendDestroyDescriptor(g->node[--g->n_nodes]);
}

/* ---- values -------------------------------------------------------------------------------- */

gp_cudnn_node gp_cudnn_add_tensor(gp_cudnn_graph *g, const gp_cudnn_tensor *t) {
  const bool is_virtual = t->storage == GP_CUDNN_VIRTUAL, by_value = t->storage == GP_CUDNN_SCALAR;
  /* virtual tensors need ids too: take them far beyond those that graphs use */
  const int64_t id = t->id ? t->id : 1000 + g->n_nodes;
  const int64_t usual = t->type == CUDNN_DATA_FLOAT ? 4 : 16;
  const int64_t alignment = t->alignment ? t->alignment : usual;
  gp_cudnn_node node = gp_cudnn_make(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  gp_cudnn_set(g, node, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, &t->type);
  gp_cudnn_set_ints(g, node, CUDNN_ATTR_TENSOR_DIMENSIONS, t->rank, t->dim);
  gp_cudnn_set_ints(g, node, CUDNN_ATTR_TENSOR_STRIDES, t->rank, t->stride);
  gp_cudnn_set_ints(g, node, CUDNN_ATTR_TENSOR_UNIQUE_ID, 1, &id);
  gp_cudnn_set_ints(g, node, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 1, &alignment);
  gp_cudnn_set(g, node, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, &is_virtual);
  gp_cudnn_set(g, node, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, &by_value);
  gp_cudnn_finish(g, node);
  return node;
}

/* ---- operations ---------------------------------------------------------------------------- */

static const cudnnDataType_t computed_in = CUDNN_DATA_FLOAT;

/* Describe what an operation does; the operation itself names its values. */
static gp_cudnn_node make_mode(gp_cudnn_graph *g, const gp_cudnn_pointwise *op) {
  gp_cudnn_node mode = gp_cudnn_make(g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  gp_cudnn_set(g, mode, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, &op->mode);
  gp_cudnn_set(g, mode, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, &computed_in);
  if (op->mode == CUDNN_POINTWISE_GEN_INDEX)
    gp_cudnn_set_ints(g, mode, CUDNN_ATTR_POINTWISE_AXIS, 1, &op->axis);
  gp_cudnn_finish(g, mode);
  return mode;
}

void gp_cudnn_add_pointwise(gp_cudnn_graph *g, const gp_cudnn_pointwise *op) {
  gp_cudnn_node mode = make_mode(g, op);
  gp_cudnn_node node = gp_cudnn_make(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  gp_cudnn_set_node(g, node, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, mode);
  gp_cudnn_set_node(g, node, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, op->x);
  gp_cudnn_set_node(g, node, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, op->b);
  gp_cudnn_set_node(g, node, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, op->t);
  gp_cudnn_set_node(g, node, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, op->y);
  gp_cudnn_finish_op(g, node);
}

void gp_cudnn_add_matmul(gp_cudnn_graph *g, gp_cudnn_node a, gp_cudnn_node b, gp_cudnn_node c) {
  gp_cudnn_node mode = gp_cudnn_make(g, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  gp_cudnn_set(g, mode, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, &computed_in);
  gp_cudnn_finish(g, mode);
  gp_cudnn_node node = gp_cudnn_make(g, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  gp_cudnn_set_node(g, node, CUDNN_ATTR_OPERATION_MATMUL_DESC, mode);
  gp_cudnn_set_node(g, node, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
  gp_cudnn_set_node(g, node, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
  gp_cudnn_set_node(g, node, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
  gp_cudnn_finish_op(g, node);
}

void gp_cudnn_add_reduction(gp_cudnn_graph *g, cudnnReduceTensorOp_t op, gp_cudnn_node x,
                            gp_cudnn_node y) {
  gp_cudnn_node mode = gp_cudnn_make(g, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  gp_cudnn_set(g, mode, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, &op);
  gp_cudnn_set(g, mode, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, &computed_in);
  gp_cudnn_finish(g, mode);
  gp_cudnn_node node = gp_cudnn_make(g, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  gp_cudnn_set_node(g, node, CUDNN_ATTR_OPERATION_REDUCTION_DESC, mode);
  gp_cudnn_set_node(g, node, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
  gp_cudnn_set_node(g, node, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
  gp_cudnn_finish_op(g, node);
}

void gp_cudnn_add_reshape(gp_cudnn_graph *g, gp_cudnn_node x, gp_cudnn_node y) {
  gp_cudnn_node node = gp_cudnn_make(g, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  gp_cudnn_set_node(g, node, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
  gp_cudnn_set_node(g, node, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
  gp_cudnn_finish_op(g, node);
}

/* ---- convolutions -------------------------------------------------------------------------- */

static gp_cudnn_node make_windows(gp_cudnn_graph *g, const gp_cudnn_convolve *op) {
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  const int64_t dimensions = 2;
  gp_cudnn_node node = gp_cudnn_make(g, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  gp_cudnn_set_ints(g, node, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 1, &dimensions);
  gp_cudnn_set(g, node, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, &computed_in);
  gp_cudnn_set(g, node, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, &mode);
  gp_cudnn_set_ints(g, node, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 2, op->stride);
  gp_cudnn_set_ints(g, node, CUDNN_ATTR_CONVOLUTION_DILATIONS, 2, op->dilation);
  gp_cudnn_set_ints(g, node, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, 2, op->before);
  gp_cudnn_set_ints(g, node, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, 2, op->behind);
  gp_cudnn_finish(g, node);
  return node;
}

/* The attributes of each pass, which mean the same but have different names. */
typedef struct names {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t x, w, y, windows, alpha, beta;
} names;

#define NAMES(operation, pass, X, W, Y)                                                            \
  {                                                                                                \
    CUDNN_BACKEND_OPERATION_CONVOLUTION_##operation##_DESCRIPTOR,                                  \
        CUDNN_ATTR_OPERATION_CONVOLUTION_##pass##_##X,                                             \
        CUDNN_ATTR_OPERATION_CONVOLUTION_##pass##_##W,                                             \
        CUDNN_ATTR_OPERATION_CONVOLUTION_##pass##_##Y,                                             \
        CUDNN_ATTR_OPERATION_CONVOLUTION_##pass##_CONV_DESC,                                       \
        CUDNN_ATTR_OPERATION_CONVOLUTION_##pass##_ALPHA,                                           \
        CUDNN_ATTR_OPERATION_CONVOLUTION_##pass##_BETA                                             \
  }

static const names passes[] = {
    [GP_CUDNN_CONVOLVE] = NAMES(FORWARD, FORWARD, X, W, Y),
    [GP_CUDNN_CONVOLVE_DX] = NAMES(BACKWARD_DATA, BWD_DATA, DX, W, DY),
    [GP_CUDNN_CONVOLVE_DW] = NAMES(BACKWARD_FILTER, BWD_FILTER, X, DW, DY),
};
#undef NAMES

void gp_cudnn_add_convolve(gp_cudnn_graph *g, const gp_cudnn_convolve *op) {
  const names *of = &passes[op->pass];
  const float one = 1, kept = op->adds ? 1 : 0;
  gp_cudnn_node windows = make_windows(g, op);
  gp_cudnn_node node = gp_cudnn_make(g, of->type);
  gp_cudnn_set_node(g, node, of->windows, windows);
  gp_cudnn_set_node(g, node, of->x, op->x);
  gp_cudnn_set_node(g, node, of->w, op->w);
  gp_cudnn_set_node(g, node, of->y, op->y);
  gp_cudnn_set(g, node, of->alpha, CUDNN_TYPE_FLOAT, &one);
  gp_cudnn_set(g, node, of->beta, CUDNN_TYPE_FLOAT, &kept);
  gp_cudnn_finish_op(g, node);
}
