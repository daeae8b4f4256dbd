/* engine/run/edge.h - what a task does for its edges before and after its work: who waits for
 * whom. */
#ifndef GP_ENGINE_EDGE_H
#define GP_ENGINE_EDGE_H

#include "engine/run/run.h"

/* Wait for what the task reads and for the slots that it writes; ready: false where the run was
 * given up. */
gp_status gp_edges_await(gp_worker *worker, const gp_task *task, int64_t micro, bool *ready);
/* Tell the readers what the task made, and the makers what it has used for the last time. A task
 * that failed tells too, or others would wait for ever; they skip their work. */
gp_status gp_edges_publish(gp_worker *worker, const gp_task *task, int64_t micro);
/* Move on what waits in the links of the worker's device; returns the most that one of them has
 * left. */
gp_link_left gp_edges_poll(gp_worker *worker);
/* The run is over for this device: wait until its links have sent what they have; after a failure,
 * until what they began is over. */
gp_status gp_edges_finish(gp_worker *worker);

#endif
