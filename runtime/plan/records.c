/* plan/records.c - see records.h. */
#include "plan/records.h"

/* Count the mini-batches that a copy of a stage has begun, and not yet updated the stage with, at
 * the worst moment in the list of its device. */
static int32_t rounds_of(const gp_plan *plan, int32_t stage, int32_t copy) {
  const int32_t device = plan->placement[gp_plan_holder(plan, stage, copy)];
  int32_t begun = 0, updated = 0, most = 1;
  for (int32_t t = plan->first[device]; t < plan->first[device + 1]; t++) {
    const gp_task *task = &plan->tasks[t];
    if (task->stage != stage) continue;
    if (task->op == GP_ACT_U) updated++;
    if (task->op == GP_ACT_F && task->micro / plan->step_micros >= begun)
      begun = task->micro / plan->step_micros + 1;
    if (begun - updated > most) most = begun - updated;
  }
  return most;
}

void gp_plan_count_records(gp_plan *plan) {
  for (int32_t s = 0; s < plan->stage_count; s++) {
    plan->record_rounds[s] = 1;
    for (int32_t copy = 0; gp_plan_shares_updates(plan) && copy < plan->copy_count; copy++) {
      const int32_t rounds = rounds_of(plan, s, copy);
      if (rounds > plan->record_rounds[s]) plan->record_rounds[s] = rounds;
    }
  }
}
