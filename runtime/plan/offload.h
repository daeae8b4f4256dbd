/* plan/offload.h - what F saves of some layers lies in the host's memory until its backward pass is
 * near.
 *
 * Those values of a micro-batch of a stage go there and back together: when F has run, a copy to
 * the host begins, and the next task of the device runs beside it; an R does so with the backward
 * pass behind it. When both are over, the values have left the device. Before the task ahead of the
 * backward pass a copy back begins, into another place; the backward pass waits for it.
 *
 *   0F0     0F1           0F2  ...  0B3           0B0
 *   | copies 0F0's values |         | copies them back
 *   forward held                    fetch         backward
 *
 * All of it is data: a slot of kind AWAY lives from `forward` to `held`, one of kind FETCHED
 * from `fetch` to its last reader (memory/slots.c), and tasks list the moves. */
#ifndef GP_PLAN_OFFLOAD_H
#define GP_PLAN_OFFLOAD_H

#include "plan/plan.h"

/* One micro-batch of a stage that goes to the host. Tasks are numbers in the plan, ascending. */
struct gp_offload {
  int32_t forward, held, fetch, backward;
  size_t bytes[GP_PARTS];
  size_t host; /* offset in the device's area in the host's memory, part after part */
};

/* In the order in which a task does them: the first two before its program, the others behind. */
typedef enum gp_move_kind {
  GP_MOVE_FETCH,  /* begin a copy to the device */
  GP_MOVE_ARRIVE, /* wait for it */
  GP_MOVE_PUT,    /* begin a copy to the host */
  GP_MOVE_LEAVE,  /* wait for it: the place on the device is free */
  GP_MOVE_KINDS
} gp_move_kind;

struct gp_move {
  gp_move_kind kind;
  int32_t offload; /* among the plan's */
};

/* Find what goes to the host and when, and give it a place there. Micro-batches stay whose backward
 * pass follows too soon, and those of stages that keep everything (per stage; NULL: none).
 * Errors: GP_ENOMEM. */
gp_status gp_plan_add_offloads(gp_plan *plan, const bool *keeps);
void gp_plan_free_offloads(gp_plan *plan);

static inline size_t gp_offload_bytes(const gp_offload *o) { return gp_parts_sum(o->bytes); }
/* Where a part of what an offload moves lies in the device's work area, before and after. */
static inline size_t gp_offload_from(const gp_plan *plan, const gp_offload *o, int part) {
  return plan->tasks[o->forward].place[GP_BASE_AWAY - GP_BASE_SAVED + part];
}
static inline size_t gp_offload_to(const gp_plan *plan, const gp_offload *o, int part) {
  return plan->tasks[o->backward].place[GP_BASE_AWAY - GP_BASE_SAVED + part];
}
/* The task whose program makes the values. */
static inline const gp_task *gp_move_owner(const gp_plan *plan, const gp_move *move) {
  return &plan->tasks[plan->offloads[move->offload].forward];
}

#endif
