/* graph/cost.c - what a traced forward pass costs: the sum over its ops, from shapes alone. */
#include "graph/graph.h"

gp_cost gp_node_cost(const gp_graph *graph, const gp_node *node) {
  const gp_op_def *def = gp_op_get(node->op);
  if (!def->cost) return (gp_cost){0, 0}; /* views cost nothing */
  gp_sig sig = {.attr = &node->attr, .n_in = node->n_in, .n_out = node->n_out};
  for (int i = 0; i < node->n_in; i++) sig.in[i] = &gp_graph_at(graph, node->in[i])->meta;
  for (int k = 0; k < node->n_out; k++) sig.out[k] = gp_graph_at(graph, node->out + k)->meta;
  return def->cost(&sig);
}

void gp_trace_cost(const gp_trace *trace, double *flop, double *bytes) {
  *flop = *bytes = 0;
  for (int32_t i = 0; i < trace->graph.node_count; i++) {
    gp_cost cost = gp_node_cost(&trace->graph, &trace->graph.nodes[i]);
    *flop += cost.flop;
    *bytes += cost.bytes;
  }
}
