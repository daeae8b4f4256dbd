/* plan/edge/uses.c - which edges a task touches: who acquires a slot, who waits, and whose use is
 * the last. */
#include "base/memory.h"
#include "plan/edge/flow.h"

/* Room for all uses at once: a task's lie side by side. Counted first, because tasks point into the
 * array and it may not move. */
static gp_status make_uses(gp_plan *plan) {
  size_t count = 0;
  int32_t tasks = plan->first[plan->device_count];
  for (int32_t t = 0; t < tasks; t++) {
    const gp_task *task = &plan->tasks[t];
    gp_action action = {.op = (uint8_t)task->op, .stage = task->stage, .micro = task->micro};
    count += (size_t)gp_flow_touched(plan, &action)->count;
  }
  GP_TRY(gp_alloc_array(count + 1, sizeof(gp_edge_use), (void **)&plan->uses));
  gp_edge_use *use = plan->uses;
  for (int32_t t = 0; t < tasks; t++) {
    gp_task *task = &plan->tasks[t];
    gp_action action = {.op = (uint8_t)task->op, .stage = task->stage, .micro = task->micro};
    const gp_edge_list *touched = gp_flow_touched(plan, &action);
    task->uses = use;
    task->use_count = touched->count;
    for (int32_t i = 0; i < touched->count; i++) *use++ = (gp_edge_use){.edge = touched->edges[i]};
  }
  return GP_OK;
}

/* First use by a stage: the maker acquires and publishes, readers wait. Last use: release. A
 * micro-batch runs on one device of the stage. seen: per edge and micro-batch, the last round of
 * marking that saw it. */
static void mark_uses(gp_plan *plan, int32_t holder, int32_t *seen) {
  int32_t stage = holder / plan->copy_count, device = plan->placement[holder];
  int32_t begin = plan->first[device], end = plan->first[device + 1];
  for (int pass = 0; pass < 2; pass++) {
    for (int32_t k = 0; k < end - begin; k++) {
      gp_task *task = &plan->tasks[pass ? end - 1 - k : begin + k];
      for (int32_t u = 0; task->stage == stage && u < task->use_count; u++) {
        gp_edge_use *use = &task->uses[u];
        size_t cell = (size_t)use->edge * (size_t)plan->micro_count + (size_t)task->micro;
        bool made_here = gp_plan_edge(plan, use->edge)->from == stage;
        if (seen[cell] == 2 * holder + pass + 1) continue;
        seen[cell] = 2 * holder + pass + 1;
        if (pass)
          use->release = true;
        else
          use->wait = !made_here, use->acquire = use->publish = made_here;
      }
    }
  }
}

gp_status gp_plan_add_uses(gp_plan *plan) {
  int32_t *seen;
  size_t cells;
  GP_TRY(make_uses(plan));
  GP_TRY(gp_size_mul((size_t)plan->edge_count, (size_t)plan->micro_count, &cells));
  GP_TRY(gp_alloc_array(cells + 1, sizeof *seen, (void **)&seen));
  for (int32_t h = 0; h < plan->stage_count * plan->copy_count; h++)
    if (gp_plan_has(plan, plan->placement[h])) mark_uses(plan, h, seen);
  gp_free(seen);
  return GP_OK;
}
