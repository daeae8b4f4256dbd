/* plan/gathers.h - what replicas gather from each other in the middle of their tasks: statistics of
 * a batch norm with sync_batch_norm, and the sums of its backward pass.
 *
 * A program of a stage has an instruction for each of them (replica_gather). There a device hands
 * its part to the same stage of every other replica, waits for theirs, and goes on with all of them
 * in the order of the replicas; ops behind it merge them (ops/replicas). So every replica goes on
 * with the same bits, and nothing of it runs again: what comes out is saved.
 *
 * A device waits there in the middle of a task. That cannot deadlock, because all replicas run the
 * same lists of actions, with programs that gather in the same order (gp_plan_check_gathers): take
 * one replica for all of them, and every wait is for something earlier in its own order.
 *
 * The workers themselves write and read the parts, in the host's memory: a device with memory of
 * its own copies its part there and waits for that copy, and copies what all have sent back.
 *
 * Parts travel over step edges (GP_STEP_GATHER of edge/step_edges.h), whose one slot is used once
 * for each micro-batch. A failure travels with them: a task that fails, or is skipped because of an
 * earlier failure, sends that failure in the place of its part, and the tasks that gather with it
 * stop. They are numbered one behind the other (lower.c), so they are all before a failure or all
 * behind it, and the failure that is reported is the same every time. */
#ifndef GP_PLAN_GATHERS_H
#define GP_PLAN_GATHERS_H

#include "plan/plan.h"

struct gp_plan_gather {
  int32_t stage;
  size_t bytes;  /* of one replica's part */
  size_t offset; /* of that in what a copy of the stage sends */
};

/* What a part comes with. */
typedef struct gp_gather_news {
  int64_t order;  /* of the task that has failed */
  int32_t status; /* GP_OK; else the part is missing because of that failure */
  int32_t rank;   /* that it comes from */
  char text[512]; /* as long as a run's */
} gp_gather_news;

/* Number the gathers of all programs, and list them. Errors: GP_EINVAL where programs for different
 * numbers of rows would gather other things. */
gp_status gp_plan_number_gathers(gp_plan *plan);
/* Check, once there are tasks, that all replicas run the same lists. Errors: GP_ESCHEDULE. */
gp_status gp_plan_check_gathers(const gp_plan *plan);

/* Bytes that are sent for one gather. */
static inline size_t gp_plan_gather_bytes(const gp_plan_gather *gather) {
  return gp_plan_padded(gp_plan_padded(gather->bytes) + sizeof(gp_gather_news));
}
/* The news behind a part. */
static inline gp_gather_news *gp_plan_gather_news(const gp_plan_gather *gather, char *part) {
  return (gp_gather_news *)(void *)(part + gp_plan_padded(gather->bytes));
}
/* Bytes that a copy of a stage sends for all of its gathers. */
static inline size_t gp_plan_gathered_bytes(const gp_plan *plan, int32_t stage) {
  size_t bytes = 0;
  for (int32_t j = 0; j < plan->gather_count; j++)
    if (plan->gathers[j].stage == stage) bytes += gp_plan_gather_bytes(&plan->gathers[j]);
  return bytes;
}
/* A gather makes the parts of all replicas one behind the other, the numbers of their rows, and
 * whether this replica is the first. Bytes before the rows, before the last word, and in all. */
static inline size_t gp_plan_gather_rows(const gp_plan *plan, const gp_plan_gather *gather) {
  return gp_plan_padded((size_t)plan->replicas * gather->bytes);
}
static inline size_t gp_plan_gather_first(const gp_plan *plan, const gp_plan_gather *gather) {
  return gp_plan_gather_rows(plan, gather) +
         gp_plan_padded((size_t)plan->replicas * sizeof(double));
}
static inline size_t gp_plan_gather_result(const gp_plan *plan, const gp_plan_gather *gather) {
  return gp_plan_gather_first(plan, gather) + GP_PLAN_ALIGNMENT;
}
/* Parts lie in memory that the workers write and read: the block of a device that works in the
 * host's memory, the exchange of any other one. Devices of the maker's rank read them in place. */
static inline bool gp_plan_parts_in_place(const gp_plan *plan, int32_t maker, int32_t reader) {
  return plan->devices[maker].spec.rank == plan->devices[reader].spec.rank;
}
/* The copy of a stage that another replica has for one of this replica's. */
static inline int32_t gp_plan_copy_in(const gp_plan *plan, int32_t copy, int32_t replica) {
  const int32_t twins = gp_plan_twins(plan);
  return replica * twins + copy % twins;
}
/* The micro-batch of another replica that has the same number there. */
static inline int32_t gp_plan_micro_in(const gp_plan *plan, int32_t micro, int32_t replica) {
  const int32_t first = micro - micro % plan->step_micros; /* of its mini-batch */
  return first + replica * plan->replica_micros + micro % plan->replica_micros;
}

#endif
