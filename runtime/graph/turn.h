/* graph/turn.h - weights of convolutions in the order that a GPU's library reads (turn.c). */
#ifndef GP_GRAPH_TURN_H
#define GP_GRAPH_TURN_H

#include "graph/graph.h"

/* Let convolutions read such copies of their weights. Call it before the cut, for GPUs alone. No
 * bit changes. */
gp_status gp_graph_turn(gp_graph *graph);

#endif
