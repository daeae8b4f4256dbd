/* graph/losses.h - a cross-entropy and the gradient of its logits become one op (losses.c). */
#ifndef GP_GRAPH_LOSSES_H
#define GP_GRAPH_LOSSES_H

#include "graph/graph.h"

/* Let forward passes make the gradient of logits where it is known then. No bit changes. Call it
 * before the cut and before rows are padded. */
gp_status gp_graph_join_losses(gp_graph *graph);

#endif
