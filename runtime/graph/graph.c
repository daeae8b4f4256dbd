/* graph/graph.c - growing and freeing a graph; everything else is built from these few appends.
 *
 * Nodes are appended in an order in which they can run, and none is ever removed: so an index names
 * a node for good, and a pass in either direction sees makers before readers, or after them.
 */
#include "graph/graph.h"

#include <string.h>

#include "base/memory.h"

/* Release parameters and constants, which are reference-counted, and free the graph's own
 * memory. */
void gp_graph_free(gp_graph *graph) {
  for (int32_t i = 0; i < graph->label_count; i++) gp_free(graph->labels[i]);
  for (int32_t i = 0; i < graph->param_count; i++) gp_param_free(graph->params[i]);
  for (int32_t i = 0; i < graph->constant_count; i++) gp_tensor_free(graph->constants[i]);
  gp_free(graph->labels);
  gp_free(graph->params);
  gp_free(graph->constants);
  gp_free(graph->values);
  gp_free(graph->nodes);
  gp_map_free(&graph->found);
  memset(graph, 0, sizeof *graph);
}

/* Append a value. Refs are indices, so they stay valid when the array moves. `meta` may point into
 * the array, so it is copied first. */
gp_status gp_graph_value(gp_graph *graph, gp_value_kind kind, const gp_meta *meta, int32_t index,
                         gp_ref *ref) {
  const gp_ref made = graph->value_count;
  const gp_value value = {
      .kind = kind, .meta = *meta, .base = made, .node = -1, .index = index, .layer = -1};
  GP_TRY(
      gp_grow_array((size_t)made, &graph->value_room, sizeof(gp_value), (void **)&graph->values));
  graph->values[made] = value;
  graph->value_count++;
  *ref = made;
  return GP_OK;
}

/* Consecutive ops of a module share one label. */
gp_status gp_graph_label(gp_graph *graph, const char *text, int32_t *label) {
  if (graph->label_count && !strcmp(graph->labels[graph->label_count - 1], text)) {
    *label = graph->label_count - 1;
    return GP_OK;
  }
  GP_TRY(gp_grow_array((size_t)graph->label_count, &graph->label_room, sizeof(char *),
                       (void **)&graph->labels));
  GP_TRY(gp_copy_string(text, &graph->labels[graph->label_count]));
  *label = graph->label_count++;
  return GP_OK;
}

gp_status gp_graph_param(gp_graph *graph, gp_param *param, int32_t *index) {
  *index = gp_graph_find(graph, GP_FOUND_PARAM, (uintptr_t)param, 0);
  if (*index >= 0) return GP_OK;
  GP_TRY(gp_grow_array((size_t)graph->param_count, &graph->param_room, sizeof(gp_param *),
                       (void **)&graph->params));
  GP_TRY(gp_graph_note(graph, GP_FOUND_PARAM, (uintptr_t)param, 0, graph->param_count));
  graph->params[graph->param_count] = gp_param_retain(param);
  *index = graph->param_count++;
  return GP_OK;
}

gp_status gp_graph_param_value(gp_graph *graph, int32_t index, gp_ref *ref) {
  *ref = gp_graph_find(graph, GP_FOUND_VALUE, (uint64_t)index, 0);
  if (*ref >= 0) return GP_OK;
  GP_TRY(gp_graph_value(graph, GP_VALUE_PARAM, gp_param_meta(graph->params[index]), index, ref));
  return gp_graph_note(graph, GP_FOUND_VALUE, (uint64_t)index, 0, *ref);
}

/* The graph owns the tensor from the first step that can fail: it frees its constants. */
gp_status gp_graph_constant(gp_graph *graph, gp_tensor *tensor, gp_ref *ref) {
  int32_t index = graph->constant_count;
  gp_status status = gp_grow_array((size_t)index, &graph->constant_room, sizeof(gp_tensor *),
                                   (void **)&graph->constants);
  if (status) return gp_tensor_free(tensor), status;
  graph->constants[graph->constant_count++] = tensor;
  return gp_graph_value(graph, GP_VALUE_CONST, gp_tensor_meta(tensor), index, ref);
}

/* An accumulator's value stands for memory that outlives every program. */
gp_status gp_graph_slot(gp_graph *graph, int32_t param, int32_t layer, gp_ref *slot) {
  *slot = gp_graph_find(graph, GP_FOUND_SLOT, (uint64_t)param, layer);
  if (*slot >= 0) return GP_OK;
  GP_TRY(gp_graph_value(graph, GP_VALUE_SLOT, gp_param_meta(graph->params[param]), param, slot));
  graph->values[*slot].layer = layer;
  return gp_graph_note(graph, GP_FOUND_SLOT, (uint64_t)param, layer, *slot);
}

/* ---- nodes --------------------------------------------------------------------------------- */

/* Append the outputs of a node that is about to be appended. */
static gp_status append_outputs(gp_graph *graph, const gp_sig *sig, const gp_node *node) {
  bool view = gp_op_get(node->op)->flags & GP_OP_VIEW;
  bool effect = gp_op_get(node->op)->flags & GP_OP_EFFECT;
  for (int k = 0; k < sig->n_out; k++) {
    gp_ref out;
    GP_TRY(gp_graph_value(graph, GP_VALUE_NODE, &sig->out[k], 0, &out));
    gp_value *value = &graph->values[out];
    value->node = graph->node_count;
    value->output = k;
    value->layer = node->layer;
    if (view || effect) value->base = gp_graph_base(graph, node->in[effect ? k : 0]);
  }
  return GP_OK;
}

/* Only operands that a value was packed for may read it: to any other op it is just bytes. */
static gp_status check_opaque(const gp_graph *graph, const gp_node *node) {
  for (int i = 0; i < node->n_in; i++) {
    int32_t maker = graph->values[node->in[i]].node;
    if (maker < 0 || !gp_op_packs(graph->nodes[maker].op) || gp_op_takes_packed(node->op, i))
      continue;
    return gp_fail(GP_EINVAL, "%s: input %d is packed by %s, expected a plain value",
                   gp_op_name(node->op), i + 1, gp_op_name(graph->nodes[maker].op));
  }
  return GP_OK;
}

/* Append a node whose inputs have the layout its op asks for. */
static gp_status append_node(gp_builder *b, gp_node *node) {
  gp_graph *graph = b->graph;
  gp_sig sig = {.attr = &node->attr, .n_in = node->n_in};
  GP_TRY(check_opaque(graph, node));
  for (int i = 0; i < node->n_in; i++) sig.in[i] = gp_build_meta(b, node->in[i]);
  GP_TRY(gp_op_infer(node->op, &sig));
  GP_TRY(gp_grow_array((size_t)graph->node_count, &graph->node_room, sizeof(gp_node),
                       (void **)&graph->nodes));
  node->n_out = sig.n_out;
  node->out = graph->value_count;
  GP_TRY(append_outputs(graph, &sig, node));
  graph->nodes[graph->node_count++] = *node;
  return GP_OK;
}

/* The result is valid until the next append. */
const gp_meta *gp_build_meta(const gp_builder *b, gp_ref ref) {
  return &gp_graph_at(b->graph, ref)->meta;
}

/* Make the copy that an op needs, in the op's layer. A channels-last copy is a row-major copy of
 * permuted dimensions, permuted back. */
static gp_status copy_for(gp_builder *b, gp_copy wish, gp_ref in, gp_ref *out) {
  static const gp_attrs none, there = {.permute = {{4, {0, 2, 3, 1}}}},
                              back = {.permute = {{4, {0, 3, 1, 2}}}};
  if (wish == GP_COPY_ROW_MAJOR) return gp_build(b, GP_OP_copy, &none, &in, 1, out);
  GP_TRY(gp_build(b, GP_OP_permute, &there, &in, 1, out));
  GP_TRY(gp_build(b, GP_OP_copy, &none, out, 1, out));
  return gp_build(b, GP_OP_permute, &back, out, 1, out);
}

/* Append a node. Strided inputs are copied here, once, so that kernels need not handle them. */
gp_status gp_build(gp_builder *b, gp_op op, const gp_attrs *attrs, const gp_ref *in, int n_in,
                   gp_ref *out) {
  gp_node node = {.op = op,
                  .attr = *attrs,
                  .n_in = n_in,
                  .layer = b->layer,
                  .label = b->label,
                  .phase = b->phase};
  if (n_in > GP_MAX_INPUTS)
    return gp_fail(GP_EINVAL, "%s: %d inputs, expected at most %d", gp_op_name(op), n_in,
                   GP_MAX_INPUTS);
  for (int i = 0; i < n_in; i++) {
    node.in[i] = in[i];
    gp_copy wish = gp_op_needs_copy(op, attrs, i, gp_build_meta(b, in[i]));
    if (wish) GP_TRY(copy_for(b, wish, in[i], &node.in[i]));
  }
  GP_TRY(append_node(b, &node));
  *out = node.out;
  return GP_OK;
}

/* A scalar for a gradient rule; 0-d tensors broadcast everywhere. */
gp_status gp_build_constant(gp_builder *b, gp_dtype dtype, double value, gp_ref *out) {
  gp_tensor *tensor;
  GP_TRY(gp_tensor_new(dtype, &(gp_shape){0}, &tensor));
  gp_tensor_set_double(tensor, 0, value);
  return gp_graph_constant(b->graph, tensor, out);
}

/* ---- reachability -------------------------------------------------------------------------- */

/* One pass from the last node suffices: every node comes after what it reads. */
gp_status gp_graph_reach(const gp_graph *graph, const gp_ref *roots, int32_t count, bool *keep) {
  bool *wanted; /* per value: a kept node reads it */
  GP_TRY(gp_alloc_array((size_t)graph->value_count + 1, sizeof *wanted, (void **)&wanted));
  for (int32_t i = 0; i < count; i++) wanted[roots[i]] = true;
  for (int32_t n = graph->node_count - 1; n >= 0; n--) {
    const gp_node *node = &graph->nodes[n];
    for (int k = 0; k < node->n_out; k++) keep[n] |= wanted[node->out + k];
    for (int i = 0; keep[n] && i < node->n_in; i++) wanted[node->in[i]] = true;
  }
  gp_free(wanted);
  return GP_OK;
}
