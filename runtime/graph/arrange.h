/* graph/arrange.h - the orders of a graph's values: what choosing them (arrange.c) and rewriting
 * the graph (rewrite.c) share. */
#ifndef GP_GRAPH_ARRANGE_H
#define GP_GRAPH_ARRANGE_H

#include "graph/order.h"

typedef struct gp_arranger {
  gp_graph *graph;
  const gp_arrange_spec *spec;
  gp_ref count;           /* number of values at the beginning */
  gp_ref *root;           /* per value: what it is a permuted view of; itself otherwise */
  gp_order *turn;         /* per value: its dimension d is dimension turn->at[d] of its root */
  int32_t *first, *nodes; /* readers of root v: nodes[first[v]] .. nodes[first[v + 1] - 1] */
  bool *free;             /* per value: it may lie in any order */
  bool *chosen;           /* per value: order[] is the order that it shall have */
  gp_order *order;        /* per value: chosen, or tried */
} gp_arranger;

static inline const gp_value *gp_arranged(const gp_arranger *a, gp_ref ref) {
  return &a->graph->values[ref];
}
/* Does the node treat its operands' elements one by one, in whatever order? */
static inline bool gp_arranger_maps(const gp_node *node) {
  return gp_op_get(node->op)->flags & GP_OP_ANY_ORDER && node->n_out == 1;
}
/* Does the operand have the result's shape, so that no dimension is repeated? */
static inline bool gp_arranger_is_whole(const gp_arranger *a, const gp_node *node, int i) {
  return gp_shape_equal(&gp_arranged(a, node->in[i])->meta.shape,
                        &gp_arranged(a, node->out)->meta.shape);
}
/* Can readers of this copy read its input instead, if both lie in one order? */
bool gp_arranger_elides(const gp_arranger *a, const gp_node *node);

/* Rebuild the list of nodes, with every value in its chosen order (rewrite.c). */
gp_status gp_arranger_rewrite(gp_arranger *a);

#endif
