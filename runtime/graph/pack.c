/* graph/pack.c - weights in the order that their products want, made once per change of the weight
 * instead of once per product.
 *
 * Every forward `linear` whose weight is a parameter gets it packed instead, every `linear_dx` in
 * bf16, of a large weight (ops/dense/large.h) and, on Intel, where its rows lie too evenly for a
 * cache (ops/dense/packed.h), and every
 * convolution, forward or not: an opaque value that pack_linear or pack_conv2d makes. It depends on
 * parameters only, so the cut makes it once before the first micro-batch (graph/stages.c); its
 * memory is shared by all plans of a pipeline. The gradient still names the parameter itself, and
 * so does what packs a weight that is read as bf16: nothing else needs the cast then.
 */
#include "base/memory.h"
#include "base/tensor.h"
#include "device/cpu/processor.h"
#include "graph/graph.h"
#include "ops/dense/large.h"
#include "ops/dense/packed.h"

/* Is it a linear, or one fused with what follows it (graph/fuse.c)? */
static bool is_linear(gp_op op) {
  return op == GP_OP_linear || op == GP_OP_linear_gelu || op == GP_OP_linear_add;
}

static bool is_linear_dx(gp_op op) { return op == GP_OP_linear_dx || op == GP_OP_linear_gelu_dx; }

static bool is_convolution(gp_op op) { return op == GP_OP_conv2d || op == GP_OP_conv_transpose2d; }

/* Does the op already read a packed weight? Its attribute then holds the weight's form. */
static bool is_packed(const gp_node *node) {
  if (node->op == GP_OP_conv2d) return node->attr.conv2d.packed.rank > 0;
  if (node->op == GP_OP_conv_transpose2d) return node->attr.conv_transpose2d.packed.rank > 0;
  return node->attr.linear.packed != 0;
}

static void set_packed(gp_node *node, const gp_shape *weight) {
  if (node->op == GP_OP_conv2d)
    node->attr.conv2d.packed = *weight;
  else if (node->op == GP_OP_conv_transpose2d)
    node->attr.conv_transpose2d.packed = *weight;
  else
    node->attr.linear.packed = weight->dim[is_linear_dx(node->op) ? 1 : 0];
}

uint64_t gp_graph_pack_key(gp_ref weight, gp_op op, const gp_attrs *attrs) {
  bool transposed =
      op == GP_OP_pack_conv2d ? attrs->pack_conv2d.transposed : attrs->pack_linear.transposed;
  return (uint64_t)weight << 1 | transposed;
}

/* The parameter that a node reads as its weight, directly or cast to bf16; or GP_NONE. */
static gp_ref weight_of(const gp_graph *graph, const gp_node *node) {
  gp_ref ref = node->in[1];
  const gp_value *value = &graph->values[ref];
  if (value->kind == GP_VALUE_NODE && value->meta.dtype == GP_BF16 && value->node >= 0 &&
      graph->nodes[value->node].master)
    ref = graph->nodes[value->node].in[0];
  return graph->values[ref].kind == GP_VALUE_PARAM ? ref : GP_NONE;
}

static bool reads_bf16(const gp_graph *graph, const gp_node *node) {
  return graph->values[node->in[0]].meta.dtype == GP_BF16;
}

/* Find the packed weight, or make it: nodes of one layer share it. */
static gp_status find_or_make(gp_graph *graph, const gp_node *reader, gp_ref *copy) {
  gp_builder at = {.graph = graph, .layer = reader->layer, .label = reader->label};
  gp_op op = is_convolution(reader->op) ? GP_OP_pack_conv2d : GP_OP_pack_linear;
  gp_attrs attrs = {0};
  gp_ref weight = weight_of(graph, reader);
  if (reader->op == GP_OP_conv_transpose2d) attrs.pack_conv2d.transposed = true;
  if (op == GP_OP_pack_linear) attrs.pack_linear.transposed = is_linear_dx(reader->op);
  if (op == GP_OP_pack_linear) attrs.pack_linear.half = reads_bf16(graph, reader);
  uint64_t key = gp_graph_pack_key(weight, op, &attrs);
  *copy = gp_graph_find(graph, GP_FOUND_PACK, key, reader->layer);
  if (*copy != GP_NONE) return GP_OK;
  GP_TRY(gp_build(&at, op, &attrs, &weight, 1, copy));
  return gp_graph_note(graph, GP_FOUND_PACK, key, reader->layer, *copy);
}

/* Products in panels want the weight so for dx, too. Others want a copy on Intel's processors if
 * its rows lie too evenly: what that costs elsewhere was not measured, and a copy is memory. f16
 * has no products of its own. */
static bool wants_copy_for_dx(const gp_graph *graph, const gp_node *node) {
  const gp_meta *dy = &graph->values[node->in[0]].meta, *w = &graph->values[node->in[1]].meta;
  if (dy->dtype == GP_BF16 || dy->dtype == GP_F16 || w->shape.rank != 2)
    return dy->dtype == GP_BF16;
  const int64_t n = w->shape.dim[0], k = w->shape.dim[1];
  const bool crowded = gp_packed_stride(k) > k && gp_processor_is_intel();
  return gp_large_is(dy->dtype, n, k) || crowded;
}

static bool wants_copy(const gp_graph *graph, const gp_node *node) {
  const bool half = is_linear(node->op) || is_linear_dx(node->op) ? reads_bf16(graph, node) : false;
  bool linear = (is_linear(node->op) && node->phase == GP_FORWARD) ||
                (is_linear_dx(node->op) && wants_copy_for_dx(graph, node));
  if (!(linear || is_convolution(node->op)) || is_packed(node)) return false;
  const gp_ref weight = weight_of(graph, node);
  if (weight == GP_NONE || (weight != node->in[1] && !half)) return false;
  const gp_value *value = &graph->values[weight];
  return gp_meta_numel(&value->meta) > 0 && gp_meta_is_contiguous(&value->meta) &&
         !gp_param_is_buffer(graph->params[value->index]);
}

/* Move the nodes from `first` on to the front: they depend on parameters only, so every node still
 * comes after what it reads. */
static gp_status move_to_front(gp_graph *graph, int32_t first) {
  int32_t moved = graph->node_count - first;
  size_t room = (size_t)graph->node_room;
  gp_node *nodes;
  GP_TRY(gp_alloc_array(room, sizeof *nodes, (void **)&nodes));
  for (int32_t n = 0; n < graph->node_count; n++)
    nodes[n < first ? n + moved : n - first] = graph->nodes[n];
  for (gp_ref r = 0; r < graph->value_count; r++) {
    int32_t *node = &graph->values[r].node;
    if (*node >= 0) *node = *node < first ? *node + moved : *node - first;
  }
  gp_free(graph->nodes);
  graph->nodes = nodes;
  return GP_OK;
}

gp_status gp_graph_pack(gp_graph *graph) {
  int32_t count = graph->node_count;
  for (int32_t n = 0; n < count; n++) {
    if (!wants_copy(graph, &graph->nodes[n])) continue;
    gp_node reader = graph->nodes[n]; /* copies: the lists may move */
    const gp_shape weight = graph->values[weight_of(graph, &reader)].meta.shape;
    gp_ref copy;
    GP_TRY(find_or_make(graph, &reader, &copy));
    graph->nodes[n].in[1] = copy;
    set_packed(&graph->nodes[n], &weight);
  }
  return graph->node_count > count ? move_to_front(graph, count) : GP_OK;
}
