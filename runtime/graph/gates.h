/* graph/gates.h - norms of channels with the ReLU and the sum behind them as one op (gates.c). */
#ifndef GP_GRAPH_GATES_H
#define GP_GRAPH_GATES_H

#include "graph/graph.h"

typedef struct gp_gates_spec {
  const int32_t *stage_of; /* per layer: neighbours of one stage are fused */
  bool halves;             /* those of bf16 and f16, too; on GPUs alone that changes no bit */
} gp_gates_spec;

/* Fuse such neighbours, in both directions. Call it after arranging; refs of values that leave the
 * graph stay valid. No bit changes. */
gp_status gp_graph_gate(gp_graph *graph, const gp_gates_spec *spec);

#endif
