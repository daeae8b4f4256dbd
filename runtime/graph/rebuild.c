/* graph/rebuild.c - see rebuild.h. */
#include "graph/rebuild.h"

#include "base/memory.h"

gp_status gp_rebuild_append(gp_rebuild *list, const gp_node *node) {
  GP_TRY(
      gp_grow_array((size_t)list->count, &list->room, sizeof *list->nodes, (void **)&list->nodes));
  for (int k = 0; k < node->n_out; k++) list->graph->values[node->out + k].node = list->count;
  list->nodes[list->count++] = *node;
  return GP_OK;
}

gp_status gp_rebuild_append_new(gp_rebuild *list, gp_node *node) {
  const bool view = gp_op_get(node->op)->flags & GP_OP_VIEW;
  gp_graph *graph = list->graph;
  gp_sig sig = {.attr = &node->attr, .n_in = node->n_in};
  for (int i = 0; i < node->n_in; i++) sig.in[i] = &graph->values[node->in[i]].meta;
  GP_TRY(gp_op_infer(node->op, &sig));
  node->n_out = sig.n_out;
  node->out = graph->value_count;
  for (int k = 0; k < sig.n_out; k++) {
    gp_ref ref;
    GP_TRY(gp_graph_value(graph, GP_VALUE_NODE, &sig.out[k], 0, &ref));
    gp_value *value = &graph->values[ref];
    value->output = k;
    value->layer = node->layer;
    if (view) value->base = gp_graph_base(graph, node->in[0]);
  }
  return gp_rebuild_append(list, node);
}

void gp_rebuild_install(gp_rebuild *list) {
  gp_free(list->graph->nodes);
  list->graph->nodes = list->nodes;
  list->graph->node_count = list->count;
  list->graph->node_room = list->room;
  list->nodes = NULL;
}
