/* plan/joins.h - what the micro-batches of one number make together in all replicas: the statistics
 * of a batch norm with sync_batch_norm, and the sums of its backward pass.
 *
 * A program of a stage has an instruction for each of them (replica_gather). There a device hands
 * its part to the same stage of every other replica, waits for theirs, and goes on with all of them
 * in the order of the replicas; ops behind it merge them (ops/replicas). So every replica goes on
 * with the same bits, and nothing of it runs again: what comes out is saved.
 *
 * A device waits there in the middle of a task. That cannot deadlock, because all replicas run the
 * same lists of actions, with programs that join in the same order (gp_plan_check_joins): take one
 * replica for all of them, and every wait is for something earlier in its own order.
 *
 * Parts travel over step edges (GP_STEP_JOIN of edge/step_edges.h), whose one slot is used once for
 * each micro-batch. A failure travels with them: a task that fails, or is skipped because of an
 * earlier failure, sends that failure in the place of its part, and the tasks that it meets stop.
 * Tasks that meet are numbered one behind the other (lower.c), so they are all before a failure or
 * all behind it, and the failure that is reported is the same every time.
 */
#ifndef GP_PLAN_JOINS_H
#define GP_PLAN_JOINS_H

#include "plan/plan.h"

struct gp_plan_join {
  int32_t stage;
  size_t bytes;  /* of one replica's part */
  size_t offset; /* of that in what a copy of the stage sends */
};

/* What a part comes with. */
typedef struct gp_join_news {
  int64_t order;  /* of the task that has failed */
  int32_t status; /* GP_OK; else the part is missing because of that failure */
  int32_t rank;   /* that it comes from */
  char text[512]; /* as long as a run's */
} gp_join_news;

/* Number the joins of all programs, and list them. Errors: GP_EINVAL where programs for different
 * numbers of rows would not meet. */
gp_status gp_plan_number_joins(gp_plan *plan);
/* Check, once there are tasks, that all replicas run the same lists. Errors: GP_ESCHEDULE. */
gp_status gp_plan_check_joins(const gp_plan *plan);

/* Bytes that are sent for one join. */
static inline size_t gp_plan_join_bytes(const gp_plan_join *join) {
  return gp_plan_padded(gp_plan_padded(join->bytes) + sizeof(gp_join_news));
}
/* The news behind a part. */
static inline gp_join_news *gp_plan_join_news(const gp_plan_join *join, char *part) {
  return (gp_join_news *)(void *)(part + gp_plan_padded(join->bytes));
}
/* Bytes that a copy of a stage sends for all of its joins. */
static inline size_t gp_plan_joined_bytes(const gp_plan *plan, int32_t stage) {
  size_t bytes = 0;
  for (int32_t j = 0; j < plan->join_count; j++)
    if (plan->joins[j].stage == stage) bytes += gp_plan_join_bytes(&plan->joins[j]);
  return bytes;
}
/* The copy of a stage that another replica has for one of this replica's. */
static inline int32_t gp_plan_copy_in(const gp_plan *plan, int32_t copy, int32_t replica) {
  const int32_t twins = gp_plan_twins(plan);
  return replica * twins + copy % twins;
}
/* The micro-batch of another replica that has the same number there. */
static inline int32_t gp_plan_micro_in(const gp_plan *plan, int32_t micro, int32_t replica) {
  return replica * plan->replica_micros + micro % plan->replica_micros;
}

#endif
