/* plan/opens.c - which tasks are the first to add to the gradients of their stage in a mini-batch.
 *
 * Such a task writes instead of adding, so that the gradients need not be filled with zeros before.
 * Devices run W in ascending order of micro-batches and update a stage after all of its W, so it is
 * the first task that adds after each update. Each device that holds a copy of a stage has a first
 * task of its own.
 */
#include "base/memory.h"
#include "plan/make.h"

static bool adds(const gp_task *task) {
  return (task->op == GP_ACT_B || task->op == GP_ACT_W) && task->program &&
         task->program->opened_count > 0;
}

/* Mark the tasks of a device. opens[holder]: the next task that adds is the first. */
static void mark(gp_plan *plan, int32_t device, bool *opens) {
  for (int32_t t = plan->first[device]; t < plan->first[device + 1]; t++) {
    gp_task *task = &plan->tasks[t];
    int32_t holder = gp_plan_holder(plan, task->stage, task->copy);
    if (task->op == GP_ACT_U) opens[holder] = true;
    if (!adds(task) || !opens[holder]) continue;
    task->opens = plan->opened[holder] = true;
    opens[holder] = false;
  }
}

gp_status gp_plan_add_opening(gp_plan *plan) {
  size_t holders = (size_t)plan->stage_count * (size_t)plan->copy_count;
  bool *opens;
  GP_TRY(gp_alloc_array(holders, sizeof *opens, (void **)&opens));
  for (size_t h = 0; h < holders; h++) opens[h] = true;
  for (int32_t d = 0; d < plan->device_count; d++) mark(plan, d, opens);
  gp_free(opens);
  return GP_OK;
}
