/* plan/remat/cut.h - a minimum cut between two ends of a directed graph.
 *
 * Source: Dinitz 1970 (levels by breadth-first search, then blocking flows). */
#ifndef GP_PLAN_REMAT_CUT_H
#define GP_PLAN_REMAT_CUT_H

#include "base/status.h"

enum { GP_CUT_SOURCE, GP_CUT_SINK, GP_CUT_VERTICES }; /* the first two vertices */
#define GP_CUT_UNBOUNDED (INT64_MAX / 4)

typedef struct gp_cut_arc {
  int32_t from, to;
  int64_t capacity;
} gp_cut_arc;

/* Find the minimum cut that lies nearest to the sink. behind[v] is set for the vertices on the
 * sink's side. Capacities are not negative; a path of unbounded arcs from source to sink is the
 * caller's mistake. Cost: O(V^2 E) at worst, near linear where paths are short. */
gp_status gp_cut_find(const gp_cut_arc *arcs, int32_t arc_count, int32_t vertex_count,
                      bool *behind);

#endif
