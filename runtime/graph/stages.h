/* graph/stages.h - a graph cut into stages: six node lists each, and the values that cross. */
#ifndef GP_GRAPH_STAGES_H
#define GP_GRAPH_STAGES_H

#include "graph/graph.h"

/* Node indices in execution order. */
typedef struct gp_node_list {
  int32_t *nodes;
  int32_t count;
} gp_node_list;

typedef struct gp_stage_nodes {
  gp_node_list prepare;   /* P: forward nodes that depend on parameters only: once per run */
  gp_node_list forward;   /* F */
  gp_node_list late;      /* S: what only leads to buffers, where it is parted from F (late.h) */
  gp_node_list recompute; /* R: values of F that I or W read and that were not kept */
  gp_node_list input;     /* I: ancestors of gradients that leave the stage */
  gp_node_list weight;    /* W: the rest of the backward pass */
} gp_stage_nodes;

/* A value that stage `from` makes and others read. Always a base value: its views go with it. */
typedef struct gp_edge {
  gp_ref value;
  int32_t from;
  gp_phase phase;
  int32_t *to; /* reading stages, ascending */
  int32_t to_count;
} gp_edge;

typedef struct gp_stages {
  int32_t count;
  gp_stage_nodes *stages;
  gp_edge *edges;
  int32_t edge_count;
  int32_t *edge_of; /* per value: index of its edge, or -1 */
  int32_t *space;   /* per value: the stage that makes its base; -1: input, parameter or constant */
} gp_stages;

/* Cut the graph: layer l belongs to stage stage_of[l]. exports: values that must exist after F, in
 * addition to what the backward pass needs (loss sum, outputs). Nodes that nothing needs are
 * dropped. */
typedef struct gp_cut_spec {
  const gp_graph *graph;
  const int32_t *stage_of;
  int32_t stage_count;
  const gp_ref *exports;
  int32_t export_count;
  bool drops_late; /* late nodes do not run */
} gp_cut_spec;
gp_status gp_stages_build(const gp_cut_spec *spec, gp_stages **stages);
void gp_stages_free(gp_stages *stages);

#endif
