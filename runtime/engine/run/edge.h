/* engine/run/edge.h - what a task does for its edges before and after its work: who waits for
 * whom. */
#ifndef GP_ENGINE_EDGE_H
#define GP_ENGINE_EDGE_H

#include "engine/run/run.h"

typedef enum gp_edges_state {
  GP_EDGES_WERE_READY,
  GP_EDGES_AWAITED,
  GP_EDGES_GIVEN_UP
} gp_edges_state;

/* Wait for what the task reads and for the slots that it writes, unless the run is given up. */
gp_status gp_edges_await(gp_worker *worker, const gp_task_run *r, gp_edges_state *state);
/* Wait for the slots of other devices that the task writes, before its turn: gp_edges_await then
 * finds them free. */
gp_status gp_edges_acquire(gp_worker *worker, const gp_task_run *r, gp_edges_state *state);
/* Tell the readers what the task made, and the makers what it has used for the last time. A task
 * that failed tells too, or others would wait for ever; they skip their work. */
gp_status gp_edges_publish(gp_worker *worker, const gp_task_run *r);
/* Move on what waits in the links of the worker's device; returns the most that one of them has
 * left. */
gp_link_left gp_edges_poll(gp_worker *worker);
/* The run is over for this device: wait until its links have sent what they have; after a failure,
 * until what they began is over. */
gp_status gp_edges_finish(gp_worker *worker);

#endif
