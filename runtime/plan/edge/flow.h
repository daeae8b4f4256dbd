/* plan/edge/flow.h - a lowered schedule run without work: who can go on, in an order of devices
 * that the caller picks.
 *
 * A device runs its actions in order; one that reads a value waits until the action that makes it
 * has run.
 * Any order of devices gives a possible run; what is true in all of them is found by trying extreme
 * ones.
 */
#ifndef GP_PLAN_EDGE_FLOW_H
#define GP_PLAN_EDGE_FLOW_H

#include "plan/make.h"
#include "schedule/runner.h"

/* What an action does with a value: of an edge, in a micro-batch. */
typedef struct gp_flow_use {
  int32_t device, position; /* of the action, in its device's list */
  int32_t stage, edge, micro;
} gp_flow_use;

/* What the caller wants to hear of; any may be NULL. */
typedef struct gp_flow_watch {
  void *context;
  bool (*may_make)(void *context, const gp_flow_use *use); /* is there room for the value? */
  void (*makes)(void *context, const gp_flow_use *use);    /* for the first time */
  void (*uses)(void *context, const gp_flow_use *use);     /* makers too */
} gp_flow_watch;

typedef struct gp_flow {
  const gp_plan *plan;
  const gp_flow_watch *watch;
  gp_runner runner; /* over the lowered schedule */
  int32_t *made;    /* per edge and micro-batch: see gp_flow_maker; 0: not yet */
  int32_t *from;    /* per edge: the stage that makes it */
} gp_flow;

gp_status gp_flow_new(const gp_plan *plan, const gp_lowered *lowered, gp_flow *flow);
void gp_flow_free(gp_flow *flow); /* what it holds; not the struct */
/* Run from the begin, always the first device in the order that can; whether all actions ran.
 * order: per place, devices; NULL: ascending. */
bool gp_flow_run(gp_flow *flow, const gp_flow_watch *watch, const int32_t *order);

/* How many actions of a device have run. */
static inline int32_t gp_flow_ran(const gp_flow *flow, int32_t device) {
  return flow->runner.next[device] - flow->runner.first[device];
}
static inline size_t gp_flow_cell(const gp_flow *flow, int32_t edge, int32_t micro) {
  return (size_t)edge * (size_t)flow->plan->micro_count + (size_t)micro;
}
/* The edges that an action touches; none where it computes nothing. */
const gp_edge_list *gp_flow_touched(const gp_plan *plan, const gp_action *action);
/* Position of the action that made a value of this run, and its device; -1: it was not made. */
int32_t gp_flow_maker(const gp_flow *flow, int32_t edge, int32_t micro, int32_t *device);

#endif
