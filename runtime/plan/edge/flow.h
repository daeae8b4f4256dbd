/* plan/edge/flow.h - a lowered schedule run without work: which device can go on, in an order of
 * devices that the caller picks.
 *
 * An action that reads a value waits until the action that makes it has run. Any order of devices
 * gives a possible run, and what holds in all of them is found by trying extreme ones.
 */
#ifndef GP_PLAN_EDGE_FLOW_H
#define GP_PLAN_EDGE_FLOW_H

#include "plan/edge/accesses.h"
#include "schedule/runner.h"

/* An action that touches the value of an edge in a micro-batch. */
typedef struct gp_flow_use {
  int32_t device, position; /* of the action, in its device's list */
  int32_t stage, edge, micro;
} gp_flow_use;

/* What a run asks and tells its caller; any may be NULL. */
typedef struct gp_flow_watch {
  void *context;
  bool (*may_make)(void *context, const gp_flow_use *use); /* is there room for the value? */
  void (*makes)(void *context, const gp_flow_use *use); /* the value is made, for the first time */
  void (*uses)(void *context, const gp_flow_use *use);  /* it is read or made */
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
/* Run from the begin; each turn is that of the first device in the order that can go on. Returns
 * whether all actions ran. order: per place, devices; NULL: ascending. */
bool gp_flow_run(gp_flow *flow, const gp_flow_watch *watch, const int32_t *order);

/* How many actions of a device have run. */
static inline int32_t gp_flow_ran(const gp_flow *flow, int32_t device) {
  return flow->runner.at[device].next - flow->runner.first[device];
}
static inline size_t gp_flow_cell(const gp_flow *flow, int32_t edge, int32_t micro) {
  return (size_t)edge * (size_t)flow->plan->micro_count + (size_t)micro;
}
/* Position of the action that made a value in the last run, and its device; -1: it was not made. */
int32_t gp_flow_maker(const gp_flow *flow, int32_t edge, int32_t micro, int32_t *device);

/* Find how many slots every edge gets where nothing runs backward (forward.c): the smallest number,
 * from a few on, with which everything runs to its end although makers wait for free slots. */
gp_status gp_flow_forward_slots(gp_flow *flow, int32_t *slots);

#endif
