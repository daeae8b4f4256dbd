/* plan/edge/transfers.h - what GPUs of two ranks send each other by their library (NCCL), in which
 * order, and the proof that no order can make them wait for each other for ever.
 *
 * NCCL matches the k-th value that one side sends with the k-th that the other receives, and a
 * send blocks its queue until its receive is posted. There is a queue for each directed pair of
 * devices at each end (device/link/ranks/queue/wire.h): values are sent as the maker's tasks have
 * made them, and the reader posts each receive when it hears of the send. The lists say so, and the
 * proof runs them: every task with what it waits for, slots that come back included, and every
 * queue with one transfer at a time. What does not run to its end is a cycle, which is named.
 * Cost: n log n in the values that cross, and linear in the tasks. */
#ifndef GP_PLAN_TRANSFERS_H
#define GP_PLAN_TRANSFERS_H

#include "plan/edge/step_edges.h"

/* A value that crosses, once for each device that reads it. */
typedef struct gp_transfer {
  int32_t from, to; /* devices */
  int32_t made;     /* the task that publishes it, among the plan's */
  int32_t use;      /* and which of its uses does */
  int32_t turn;     /* of that use: early ones, which are negative, come first */
  int32_t read;     /* the first task that waits for it */
  int32_t received; /* which of its pair's transfers the reader receives in this one's place */
  int32_t behind;   /* the reader's task behind which it posts what it receives; -1: at once */
} gp_transfer;

typedef struct gp_transfers {
  const gp_plan *plan; /* borrowed */
  gp_transfer *list;   /* pair after pair, each in the order of its sends */
  int32_t count;
  int32_t *first; /* per pair, and the total */
  int32_t pair_count;
  int32_t *device; /* per task of the plan */
  int32_t *maker;  /* per value (gp_transfers_cell): the task that publishes it + 1 */
} gp_transfers;

/* List the transfers of a plan that holds all devices. Errors: GP_ENOMEM. */
gp_status gp_transfers_new(const gp_plan *plan, gp_transfers *transfers);
void gp_transfers_free(gp_transfers *transfers); /* what it holds; not the struct */

/* The transfer that brings the value of an edge, for which a task waits, to its device, or -1. */
int32_t gp_transfers_find(const gp_transfers *transfers, const gp_task *task, int32_t edge,
                          int32_t device);
/* Values of a step edge: one, or where it turns one for each mini-batch and what is there before;
 * there are no more mini-batches than micro-batches. */
static inline size_t gp_transfers_turns(const gp_plan *plan) {
  return gp_plan_shares_updates(plan) ? (size_t)plan->micro_count + 1 : 1;
}
/* Count the values of all edges. */
static inline size_t gp_transfers_cells(const gp_plan *plan) {
  return (size_t)plan->edge_count * (size_t)plan->micro_count +
         (size_t)plan->step_edge_count * gp_transfers_turns(plan);
}
/* Where the value of an edge stands in `maker`: that of a micro-batch, or of a turn. */
static inline size_t gp_transfers_cell(const gp_plan *plan, int32_t edge, int64_t column) {
  const size_t values = (size_t)plan->edge_count * (size_t)plan->micro_count;
  if (edge < plan->edge_count) return (size_t)edge * (size_t)plan->micro_count + (size_t)column;
  return values + (size_t)(edge - plan->edge_count) * gp_transfers_turns(plan) + (size_t)column;
}
/* The column of what a task publishes, waits for or releases. */
static inline int64_t gp_transfers_column(const gp_plan *plan, const gp_task *task, int32_t edge) {
  const gp_step_edge *once = gp_plan_step_edge(plan, edge);
  if (!once) return task->micro;
  return gp_step_turns(plan, once) ? gp_step_turn(plan, once, task, task->micro) : 0;
}
static inline size_t gp_transfers_cell_of(const gp_plan *plan, const gp_task *task, int32_t edge) {
  return gp_transfers_cell(plan, edge, gp_transfers_column(plan, task, edge));
}

/* Check that both sides of each pair have the same order, and that everything comes to its end.
 * Errors: GP_ESCHEDULE with the ranks and tasks. */
gp_status gp_transfers_prove(const gp_transfers *transfers);
/* Both for a plan, if it holds all devices. */
gp_status gp_plan_prove_transfers(const gp_plan *plan);

#endif
