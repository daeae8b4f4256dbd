/* graph/pad.h - scores of a vocabulary in rows that tensor cores take (pad.c). */
#ifndef GP_GRAPH_PAD_H
#define GP_GRAPH_PAD_H

#include "graph/graph.h"

typedef struct gp_pad_spec {
  const int32_t *stage_of; /* per layer, and of the loss, whose layer comes last */
  int32_t layer_count;
} gp_pad_spec;

/* Pad the rows of such values. Call it before the cut, for GPUs alone. */
gp_status gp_graph_pad(gp_graph *graph, const gp_pad_spec *spec);

#endif
