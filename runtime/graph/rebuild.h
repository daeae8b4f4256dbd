/* graph/rebuild.h - a new list of nodes for a graph, for passes that put new nodes between the old
 * ones. */
#ifndef GP_GRAPH_REBUILD_H
#define GP_GRAPH_REBUILD_H

#include "graph/graph.h"

typedef struct gp_rebuild {
  gp_graph *graph;
  gp_node *nodes; /* the new list */
  int32_t count;
  size_t room;
} gp_rebuild;

/* Append a node whose outputs there are already, and which gets a number of the new list. */
gp_status gp_rebuild_append(gp_rebuild *list, const gp_node *node);
/* Append a node that makes new values; node->out receives the first of them. */
gp_status gp_rebuild_append_new(gp_rebuild *list, gp_node *node);
/* Replace the graph's list. */
void gp_rebuild_install(gp_rebuild *list);

/* A node with no operands yet, in the place of `near`. */
static inline gp_node gp_node_beside(const gp_node *near, gp_op op) {
  return (gp_node){.op = op, .layer = near->layer, .label = near->label, .phase = near->phase};
}

#endif
