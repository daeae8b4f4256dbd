/* graph/pack.c - weights in the order that their products want, once per change of them instead of
 * per product.
 *
 * Every forward `linear` whose weight is a parameter gets it packed instead: an opaque value that
 * pack_linear makes. It depends on parameters only, so the cut makes it once before the first
 * micro-batch (graph/stages.c); its memory is shared by all plans of a pipeline. The gradient still
 * names the parameter itself.
 */
#include "base/memory.h"
#include "base/tensor.h"
#include "graph/graph.h"

/* The copy that an earlier linear of the same layer made; GP_NONE if there is none. */
static gp_ref find_copy(const gp_graph *graph, gp_ref weight, int32_t layer) {
  return gp_graph_find(graph, GP_FOUND_PACK, (uint64_t)weight, layer);
}

static gp_status make_copy(gp_graph *graph, const gp_node *linear, gp_ref *copy) {
  gp_builder at = {.graph = graph, .layer = linear->layer, .label = linear->label};
  GP_TRY(gp_build(&at, GP_OP_pack_linear, &(gp_attrs){0}, &linear->in[1], 1, copy));
  return gp_graph_note(graph, GP_FOUND_PACK, (uint64_t)linear->in[1], linear->layer, *copy);
}

/* linear, or it and what follows it: graph/fuse.c. */
static bool is_linear(gp_op op) {
  return op == GP_OP_linear || op == GP_OP_linear_gelu || op == GP_OP_linear_add;
}

static bool wants_copy(const gp_graph *graph, const gp_node *node) {
  if (!is_linear(node->op) || node->phase != GP_FORWARD || node->attr.linear.packed) return false;
  const gp_value *weight = &graph->values[node->in[1]];
  return weight->kind == GP_VALUE_PARAM && gp_meta_numel(&weight->meta) > 0 &&
         !gp_param_is_buffer(graph->params[weight->index]);
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
    gp_node linear = graph->nodes[n]; /* a copy: the list may move */
    const int64_t outputs = graph->values[linear.in[1]].meta.shape.dim[0];
    gp_ref copy = find_copy(graph, linear.in[1], linear.layer);
    if (copy == GP_NONE) GP_TRY(make_copy(graph, &linear, &copy));
    graph->nodes[n].in[1] = copy;
    graph->nodes[n].attr.linear.packed = outputs;
  }
  return graph->node_count > count ? move_to_front(graph, count) : GP_OK;
}
