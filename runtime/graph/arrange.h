/* graph/arrange.h - choosing the orders in which the values of a graph lie: what choosing
 * (arrange.c) and rewriting (rewrite.c) share. */
#ifndef GP_GRAPH_ARRANGE_H
#define GP_GRAPH_ARRANGE_H

#include "graph/order.h"

typedef struct gp_arranger {
  gp_graph *graph;
  const gp_arrange_spec *spec;
  gp_ref count;           /* of values when it began */
  gp_ref *root;           /* per value: what it is a permuted view of; itself otherwise */
  gp_order *turn;         /* per value: its dimension d is dimension turn->at[d] of its root */
  int32_t *first, *nodes; /* readers of root v: nodes[first[v]] .. nodes[first[v + 1] - 1] */
  bool *free;             /* per value: it may lie in any order */
  bool *chosen;           /* per value: order[] says how it is to lie */
  gp_order *order;        /* per value: chosen, or tried */
} gp_arranger;

static inline const gp_value *gp_arranged(const gp_arranger *a, gp_ref ref) {
  return &a->graph->values[ref];
}
/* Does the node treat the elements of its operands one by one, wherever they lie? */
static inline bool gp_arranger_maps(const gp_node *node) {
  return gp_op_get(node->op)->flags & GP_OP_ANY_ORDER && node->n_out == 1;
}
/* An operand that is not repeated along a dimension. */
static inline bool gp_arranger_is_whole(const gp_arranger *a, const gp_node *node, int i) {
  return gp_shape_equal(&gp_arranged(a, node->in[i])->meta.shape,
                        &gp_arranged(a, node->out)->meta.shape);
}
/* Is the node a copy whose readers may read its input, where both lie in one order? */
bool gp_arranger_elides(const gp_arranger *a, const gp_node *node);

/* Make the list of nodes anew, with every value in its chosen order (rewrite.c). */
gp_status gp_arranger_rewrite(gp_arranger *a);

#endif
