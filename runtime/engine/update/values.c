/* engine/update/values.c - see values.h. */
#include "engine/update/values.h"

#include "engine/bind/step_links.h"

gp_status gp_values_take(const gp_worker *worker, const gp_task *task) {
  const gp_binding *b = worker->pipeline->run.binding;
  const gp_plan *plan = b->plan;
  char *own = b->values[gp_plan_holder(plan, task->stage, task->copy)];
  for (int32_t e = 0; e < plan->step_edge_count; e++) {
    const gp_step_edge *edge = &plan->step_edges[e];
    if (edge->value != GP_STEP_VALUES || edge->stage != task->stage || edge->copy == task->copy)
      continue;
    const char *from = gp_step_edge_address(b, e, worker->device);
    /* outside of streams, those of other memories come in where they belong */
    if (from != own + edge->offset)
      GP_TRY(gp_lane_copy(&worker->lane, own + edge->offset, from, edge->bytes));
  }
  return GP_OK;
}
