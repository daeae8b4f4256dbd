/* engine/update/sums.h - sums of gradients: over micro-batches, over the copies of a stage, over
 * the layers that use one parameter.
 *
 * Sums over micro-batches follow a fixed tree of their numbers (plan/sums.h): a task adds the
 * partial sums that its micro-batch completes, and the owner of a parameter goes on in the same
 * tree with the sums of the copies. */
#ifndef GP_ENGINE_SUMS_H
#define GP_ENGINE_SUMS_H

#include "engine/state/pipeline.h"

/* Where a partial sum of a task's stage lies: the gradients, and the accumulators beside them. 0:
 * the gradients of its copy themselves. */
typedef struct gp_partial {
  char *grads, *extras;
} gp_partial;
gp_partial gp_partial_of(const gp_binding *binding, const gp_task *task, int32_t partial);

/* Add up the gradients, and extra accumulators, that a copy of a stage owns, over all copies. */
gp_status gp_sum_copies(const gp_worker *worker, const gp_plan *plan, int32_t stage, int32_t copy);
/* Add the extra accumulators of those parameters that the copy owns and several layers use, in
 * layer order. */
gp_status gp_sum_tied(const gp_worker *worker, const gp_plan *plan, int32_t stage, int32_t copy);
/* Add to the gradients that a copy owns what lies at an address like that of its whole area. */
gp_status gp_sum_owned(const gp_worker *worker, int32_t stage, int32_t copy, const char *from);
/* Add the partial sums that the task's micro-batch completes, each to the one before it; but for
 * the buckets that were published already. */
gp_status gp_sum_partials(const gp_worker *worker, const gp_plan *plan, const gp_task *task);
/* The same for a bucket, before it is published while the task's program runs. */
gp_status gp_sum_bucket(const gp_worker *worker, const gp_task *task, const gp_step_edge *bucket);

#endif
