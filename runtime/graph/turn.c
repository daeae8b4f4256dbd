/* graph/turn.c - weights of convolutions in the order that a GPU's library reads, made once per
 * change of the weight instead of for each use.
 *
 * The library reads O x KH x KW x I (device/cuda/convolution.h): a channels-last copy of the weight
 * O x I x KH x KW. It depends on parameters only, so the cut makes it once before the first
 * micro-batch (graph/stages.c), and the plan counts its memory. Forward and backward nodes of a
 * layer share it. Our own kernels read either order, and elements are only moved: no bit
 * changes. */
#include "graph/turn.h"

#include "base/memory.h"
#include "base/tensor.h"
#include "graph/rebuild.h"

static bool is_convolution(gp_op op) { return op == GP_OP_conv2d || op == GP_OP_conv_transpose2d; }

/* Is the value a parameter or its cast to a half, and no buffer? */
static bool is_weight(const gp_graph *graph, gp_ref ref) {
  const gp_value *value = &graph->values[ref];
  if (value->kind == GP_VALUE_NODE && value->node >= 0 && graph->nodes[value->node].master)
    value = &graph->values[graph->nodes[value->node].in[0]];
  return value->kind == GP_VALUE_PARAM && !gp_param_is_buffer(graph->params[value->index]);
}

/* Would the library's order differ? Not for a kernel of one tap or one channel a group. */
static bool wants_turn(const gp_graph *graph, const gp_node *node) {
  if (!is_convolution(node->op) || !is_weight(graph, node->in[1])) return false;
  const gp_meta *meta = &graph->values[node->in[1]].meta;
  return meta->dtype != GP_F64 && gp_meta_numel(meta) > 0 && gp_meta_is_contiguous(meta) &&
         !gp_meta_is_channels_last(meta);
}

/* Append the copy in the layer of its first reader. */
static gp_status make(gp_rebuild *list, const gp_node *reader, gp_ref weight, gp_ref *copy) {
  static const gp_attrs none, there = {.permute = {{4, {0, 2, 3, 1}}}},
                              back = {.permute = {{4, {0, 3, 1, 2}}}};
  static const struct {
    gp_op op;
    const gp_attrs *attrs;
  } steps[] = {{GP_OP_permute, &there}, {GP_OP_copy, &none}, {GP_OP_permute, &back}};
  *copy = weight;
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
    gp_node node = gp_node_beside(reader, steps[i].op);
    node.attr = *steps[i].attrs;
    node.phase = GP_FORWARD;
    node.in[node.n_in++] = *copy;
    GP_TRY(gp_rebuild_append_new(list, &node));
    *copy = node.out;
  }
  return GP_OK;
}

static gp_status find_or_make(gp_rebuild *list, const gp_node *reader, gp_ref *copy) {
  const gp_ref weight = reader->in[1];
  *copy = gp_graph_find(list->graph, GP_FOUND_TURN, (uint64_t)weight, reader->layer);
  if (*copy != GP_NONE) return GP_OK;
  GP_TRY(make(list, reader, weight, copy));
  return gp_graph_note(list->graph, GP_FOUND_TURN, (uint64_t)weight, reader->layer, *copy);
}

/* wants: per node; values name the makers of the new list as it grows. */
static gp_status turn(gp_rebuild *list, bool *wants) {
  bool any = false;
  for (int32_t n = 0; n < list->graph->node_count; n++)
    any |= wants[n] = wants_turn(list->graph, &list->graph->nodes[n]);
  if (!any) return GP_OK;
  for (int32_t n = 0; n < list->graph->node_count; n++) {
    gp_node node = list->graph->nodes[n];
    if (wants[n]) GP_TRY(find_or_make(list, &node, &node.in[1]));
    GP_TRY(gp_rebuild_append(list, &node));
  }
  gp_rebuild_install(list);
  return GP_OK;
}

gp_status gp_graph_turn(gp_graph *graph) {
  gp_rebuild list = {.graph = graph};
  bool *wants;
  GP_TRY(gp_alloc_array((size_t)graph->node_count + 1, sizeof *wants, (void **)&wants));
  gp_status status = turn(&list, wants);
  gp_free(wants);
  gp_free(list.nodes);
  return status;
}
