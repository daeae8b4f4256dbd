/* plan/records.h - what micro-batches leave for buffers, and who writes these.
 *
 * A buffer that forward writes goes from micro-batch to micro-batch. Where copies of a stage run
 * micro-batches at the same time, F leaves out what only leads to buffers (graph/late.h) and
 * records what that reads: the statistics of its micro-batch, in the case of a batch norm. When the
 * forward passes are over, each copy sends its records to the first one, which keeps the buffers
 * (RECORDS of edge/step_edges.h); there S runs what was left out, in the order of the micro-batches
 * of the whole mini-batch. So buffers get the bits of one copy that runs all of them. Before the
 * next pass the other copies are sent the buffers, as before every pass (BUFFERS).
 *
 * In a stream replicas update a stage together, so S of a mini-batch runs right before the
 * reduction of its gradients, for which all have come that far. Forward passes of later
 * mini-batches run before that, so there is room for the records of as many mini-batches as that
 * takes. The last S leaves the bits behind: no task of the stream reads a buffer that S writes, and
 * what passes of other kinds read they are sent when they begin. */
#ifndef GP_PLAN_RECORDS_H
#define GP_PLAN_RECORDS_H

#include "plan/plan.h"

/* Is there an S for the stage, which the plan holds? */
static inline bool gp_plan_is_late(const gp_plan *plan, int32_t stage) {
  for (int k = 0; k < 2; k++)
    if (plan->shapes[k].programs && plan->shapes[k].programs[stage].late) return true;
  return false;
}
/* Bytes that the micro-batches of one size record on a stage; both sizes use the same places. */
static inline size_t gp_plan_record_bytes(const gp_plan *plan, int32_t stage) {
  size_t most = 0;
  for (int k = 0; k < 2; k++) {
    const gp_stage_programs *programs = plan->shapes[k].programs;
    if (programs && programs[stage].record_bytes > most) most = programs[stage].record_bytes;
  }
  return most;
}
/* What a copy records of one mini-batch: it has a place for every micro-batch of its replica. */
static inline size_t gp_plan_records_bytes(const gp_plan *plan, int32_t stage) {
  return (size_t)plan->replica_micros * gp_plan_record_bytes(plan, stage);
}
/* Where the record of a micro-batch begins among those of its copy: mini-batches take turns. */
static inline size_t gp_plan_record_at(const gp_plan *plan, int32_t stage, int64_t micro) {
  const int64_t round = micro / plan->step_micros % plan->record_rounds[stage];
  const int64_t begin = gp_plan_replica_of(plan, micro) * plan->replica_micros;
  return (size_t)round * gp_plan_records_bytes(plan, stage) +
         (size_t)(micro % plan->step_micros - begin) * gp_plan_record_bytes(plan, stage);
}
/* Count, once there are tasks, the mini-batches whose records a copy of each stage has at once. */
void gp_plan_count_records(gp_plan *plan);

#endif
