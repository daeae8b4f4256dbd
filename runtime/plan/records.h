/* plan/records.h - what micro-batches leave for buffers, and who writes these.
 *
 * A buffer that forward writes goes from micro-batch to micro-batch. Where copies of a stage run
 * micro-batches at the same time, F leaves out what only leads to buffers (graph/late.h) and
 * records what that reads: the statistics of its micro-batch, in the case of a batch norm. When the
 * forward passes are over, each copy sends its records to the first one, which keeps the buffers
 * (RECORDS of edge/step_edges.h); there S runs what was left out, in the order of the micro-batches
 * of the whole mini-batch. So buffers get the bits of one copy that runs all of them. Before the
 * next pass the other copies are sent the buffers, as before every pass (BUFFERS). */
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
/* Where the record of a micro-batch begins among those of its copy, which has a place for every
 * micro-batch of its replica. */
static inline size_t gp_plan_record_at(const gp_plan *plan, int32_t stage, int32_t micro) {
  const int32_t begin = gp_plan_replica_of(plan, micro) * plan->replica_micros;
  return (size_t)(micro - begin) * gp_plan_record_bytes(plan, stage);
}
static inline size_t gp_plan_records_bytes(const gp_plan *plan, int32_t stage) {
  return (size_t)plan->replica_micros * gp_plan_record_bytes(plan, stage);
}

#endif
