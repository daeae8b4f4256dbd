/* plan/edge/accesses.h - what the actions of a stage do with values of edges, as accesses. */
#ifndef GP_PLAN_EDGE_ACCESSES_H
#define GP_PLAN_EDGE_ACCESSES_H

#include "plan/make.h"
#include "schedule/access/access.h"

/* The edges that an action touches; none if it computes nothing. */
static inline const gp_edge_list *gp_edge_touched(const gp_plan *plan, const gp_action *action) {
  static const gp_edge_list none;
  if (action->op > GP_ACT_R) return &none;
  /* Both sizes of micro-batches touch the same edges, unless the model branches on the number of
   * rows. */
  int shape = plan->shapes[1].micros ? gp_plan_shape_of(plan, action->micro) : 0;
  return gp_shape_touched(&plan->shapes[shape], action->stage, (gp_act)action->op);
}

/* Edges as one stage on one device has them. A value of an edge is alive there from the action that
 * makes or first reads it to the stage's last action that touches it. */
typedef struct gp_edge_lives {
  gp_access_list list;    /* buffers[b].edge: the edge; an instance for each micro-batch */
  gp_lifetimes lifetimes; /* times are positions in the list of actions */
} gp_edge_lives;

/* Find the lives of what a stage touches in a list of actions of its device, which may hold other
 * stages' actions too. marks[edge_count]: zeros, and zeros again after success. */
gp_status gp_edge_lives_find(const gp_plan *plan, int32_t stage, const gp_action *actions,
                             int32_t count, int32_t *marks, gp_edge_lives *lives);
void gp_edge_lives_free(gp_edge_lives *lives); /* what it holds; not the struct */

#endif
