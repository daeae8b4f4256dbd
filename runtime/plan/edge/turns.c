/* plan/edge/turns.c - the edges of both sizes of micro-batches, and which micro-batch takes which
 * turn of an edge.
 *
 * Slots are taken in turn. A replica has slots of its own for every edge, and its turns count only
 * the micro-batches that it runs and that use the edge.
 */
#include "plan/plan.h"

/* Does the edge belong to the smaller micro-batches alone? Their own edges, if they have any, come
 * behind those of the larger ones. */
static bool is_own_edge(const gp_plan *plan, int32_t edge) {
  return plan->shapes[1].own_edges && edge >= plan->shapes[1].first_edge;
}

/* Edges are numbered through both sizes of micro-batches. */
const gp_edge *gp_plan_edge(const gp_plan *plan, int32_t edge) {
  const gp_shape_plan *shape = &plan->shapes[is_own_edge(plan, edge)];
  return &shape->stages->edges[edge - shape->first_edge];
}

/* Count the micro-batches of a mini-batch that use an edge; *first: the first of them. */
static int32_t users_of(const gp_plan *plan, int32_t edge, int32_t *first) {
  bool own = is_own_edge(plan, edge);
  *first = own ? plan->shapes[0].micros : 0;
  if (!plan->shapes[1].own_edges) return plan->step_micros;
  return plan->shapes[own].micros;
}

/* The same of those that a replica runs. */
static int32_t own_users(const gp_plan *plan, int32_t edge, int32_t replica, int32_t *first) {
  const int32_t begin = replica * plan->replica_micros;
  const int32_t end = begin + gp_plan_micros_of(plan, replica);
  const int32_t users = users_of(plan, edge, first), behind = *first + users;
  if (*first < begin) *first = begin;
  const int32_t last = end < behind ? end : behind;
  return last > *first ? last - *first : 0;
}

/* Turns of an edge are counted over the micro-batches of a replica that use it. */
int64_t gp_plan_own_turn(const gp_plan *plan, int32_t edge, int64_t micro) {
  int32_t first, users = own_users(plan, edge, gp_plan_replica_of(plan, micro), &first);
  return micro / plan->step_micros * users + micro % plan->step_micros - first;
}

int64_t gp_plan_micro_at(const gp_plan *plan, int32_t edge, int32_t replica, int64_t turn) {
  int32_t first, users = own_users(plan, edge, replica, &first);
  return users ? turn / users * plan->step_micros + turn % users + first : plan->micro_count;
}
