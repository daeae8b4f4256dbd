/* engine/run/edge.h - what a task does for its edges before and after its work: it waits for inputs
 * and slots, and publishes and releases. */
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
/* Wait before the task's turn for the slots that it writes and other devices read, so that
 * gp_edges_await finds them free. */
gp_status gp_edges_acquire(gp_worker *worker, const gp_task_run *r, gp_edges_state *state);
/* Tell the readers what the task made, and the makers what it has used for the last time. A task
 * that failed or was skipped does the same, or others would wait for ever; they skip their work. */
gp_status gp_edges_publish(gp_worker *worker, const gp_task_run *r);
/* The task's next early use, if so many instructions of its program are enough for it; and publish
 * it. */
const gp_edge_use *gp_edges_early(const gp_worker *worker, const gp_task *task, int32_t done);
gp_status gp_edges_publish_early(gp_worker *worker, const gp_task_run *r, const gp_edge_use *use);
/* One use, apart from those of the task: wait until it is ready or the run is given up; publish;
 * release. */
gp_status gp_edge_await(gp_worker *worker, const gp_edge_use *use, const gp_bound_use *bound,
                        bool *ready);
gp_status gp_edge_publish(const gp_worker *worker, const gp_bound_use *bound, gp_link_turn turn);
gp_status gp_edge_release(const gp_worker *worker, const gp_bound_use *bound, gp_link_turn turn);
/* Poll the links of the worker's device, which moves on what waits in them; returns the most that
 * one of them still waits for. */
gp_link_left gp_edges_poll(gp_worker *worker);
/* The same while the worker waits (gp_worker.idle). */
int64_t gp_edges_idle(gp_worker *worker);
/* Wait until the device's queue has copied what it sends to other ranks. */
gp_status gp_edges_flush(gp_worker *worker);
/* End the run for this device: wait until its links have sent everything; after a failure, until
 * what they began is over. */
gp_status gp_edges_finish(gp_worker *worker);

#endif
