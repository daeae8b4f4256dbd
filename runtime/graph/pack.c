/* graph/pack.c - weights in the order that their products want, once per change of them instead of
 * per product.
 *
 * Every forward `linear` whose weight is a parameter gets it packed instead, and so does every
 * convolution, forward or not: an opaque value that pack_linear or pack_conv2d makes. It depends on
 * parameters only, so the cut makes it once before the first micro-batch (graph/stages.c); its
 * memory is shared by all plans of a pipeline. The gradient still names the parameter itself.
 */
#include "base/memory.h"
#include "base/tensor.h"
#include "graph/graph.h"

/* linear, or it and what follows it: graph/fuse.c. */
static bool is_linear(gp_op op) {
  return op == GP_OP_linear || op == GP_OP_linear_gelu || op == GP_OP_linear_add;
}

static bool is_convolution(gp_op op) { return op == GP_OP_conv2d || op == GP_OP_conv_transpose2d; }

/* The attribute that says what the weight was, of an op that takes packed ones. */
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
    node->attr.linear.packed = weight->dim[0];
}

uint64_t gp_graph_pack_key(gp_ref weight, gp_op op, const gp_attrs *attrs) {
  bool transposed = op == GP_OP_pack_conv2d && attrs->pack_conv2d.transposed;
  return (uint64_t)weight << 1 | transposed;
}

/* The packed weight that an earlier node of the same layer reads too is made once. */
static gp_status find_or_make(gp_graph *graph, const gp_node *reader, gp_ref *copy) {
  gp_builder at = {.graph = graph, .layer = reader->layer, .label = reader->label};
  gp_op op = is_convolution(reader->op) ? GP_OP_pack_conv2d : GP_OP_pack_linear;
  gp_attrs attrs = {0};
  if (reader->op == GP_OP_conv_transpose2d) attrs.pack_conv2d.transposed = true;
  uint64_t key = gp_graph_pack_key(reader->in[1], op, &attrs);
  *copy = gp_graph_find(graph, GP_FOUND_PACK, key, reader->layer);
  if (*copy != GP_NONE) return GP_OK;
  GP_TRY(gp_build(&at, op, &attrs, &reader->in[1], 1, copy));
  return gp_graph_note(graph, GP_FOUND_PACK, key, reader->layer, *copy);
}

static bool wants_copy(const gp_graph *graph, const gp_node *node) {
  bool linear = is_linear(node->op) && node->phase == GP_FORWARD;
  if (!(linear || is_convolution(node->op)) || is_packed(node)) return false;
  const gp_value *weight = &graph->values[node->in[1]];
  return weight->kind == GP_VALUE_PARAM && gp_meta_numel(&weight->meta) > 0 &&
         gp_meta_is_contiguous(&weight->meta) && !gp_param_is_buffer(graph->params[weight->index]);
}

/* Move the nodes from `first` on to the front: they depend on parameters only, and every node
 * stands after what it reads. */
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
    const gp_shape weight = graph->values[reader.in[1]].meta.shape;
    gp_ref copy;
    GP_TRY(find_or_make(graph, &reader, &copy));
    graph->nodes[n].in[1] = copy;
    set_packed(&graph->nodes[n], &weight);
  }
  return graph->node_count > count ? move_to_front(graph, count) : GP_OK;
}
