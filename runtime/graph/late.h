/* graph/late.h - parts what only leads to buffers from the rest of a forward pass. */
#ifndef GP_GRAPH_LATE_H
#define GP_GRAPH_LATE_H

#include "graph/graph.h"

typedef struct gp_late_spec {
  const gp_ref *exports; /* values that leave the graph */
  int export_count;
  bool runs;       /* late nodes run; otherwise they are marked, and nothing is recorded */
  bool updates;    /* parameters may have been updated by then, so they are recorded, too */
  const char *why; /* for the error: why F cannot write buffers */
} gp_late_spec;

/* Does forward write a buffer? */
bool gp_graph_writes_buffers(const gp_graph *graph);

/* Mark the late nodes and move them behind all others; let them read copies of what the others
 * make (gp_node.records). Call it last, right before the cut. Errors: GP_EINVAL where another node
 * or an export depends on a buffer that forward writes. */
gp_status gp_graph_part_late(gp_graph *graph, const gp_late_spec *spec);

#endif
