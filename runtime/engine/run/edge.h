/* engine/run/edge.h - the edges of a plan while it runs: where a task's values lie, and who waits
 * for whom.
 *
 *   links.c   the links of a plan's edges, made when it is bound
 *   edge.c    what a task does for its edges before and after its work
 */
#ifndef GP_ENGINE_EDGE_H
#define GP_ENGINE_EDGE_H

#include "device/link/link.h"
#include "engine/bind/binding.h"
#include "engine/pipeline.h"

/* links.c */
gp_status gp_links_new(gp_binding *binding);
void gp_links_free(gp_binding *binding);
/* Before a run: nothing is published or released. */
void gp_links_begin(const gp_binding *binding);
/* The link by which a device reads, or by which it made, an edge's values of a copy; NULL: it has
 * no part. */
gp_link *gp_links_find(const gp_binding *binding, int32_t edge, int32_t copy, int32_t device);
/* Which slot a micro-batch takes on an edge, and how often it was used before. */
gp_link_turn gp_links_turn(const gp_plan *plan, int32_t edge, int64_t micro);

/* edge.c */
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
