/* plan/ranges.c - which tasks belong to which mini-batch of a stream.
 *
 * A step of an asynchronous pipeline feeds one more mini-batch: every device goes on until it meets an F
 * of a micro-batch that was not fed yet. The first ranges fill the pipeline; from some mini-batch on all
 * are the same but for the numbers, and that range stands for all later ones. What follows in the plan's
 * lists (more repetitions, the drain) is not run: draining goes on with the same range and skips what
 * was never fed.
 */
#include "base/memory.h"
#include "plan/plan.h"

/* The first task of the device that belongs to mini-batch `step` or a later one. */
static int32_t begin_of(const gp_plan *plan, int32_t device, int32_t step) {
  int32_t t = plan->first[device], fed = step * plan->step_micros;
  if (step == 0) return t;
  for (; t < plan->first[device + 1]; t++) {
    const gp_task *task = &plan->tasks[t];
    if ((task->op == GP_ACT_F || task->op == GP_ACT_C) && task->micro >= fed) break;
  }
  return t;
}

/* Is the range of step + 1 that of step, with all numbers moved on by one mini-batch? */
static bool repeats(const gp_plan *plan, int32_t device, int32_t step) {
  int32_t a = begin_of(plan, device, step), b = begin_of(plan, device, step + 1);
  int32_t count = b - a, micros = plan->step_micros, versions = micros / plan->batch;
  if (begin_of(plan, device, step + 2) - b != count) return false;
  for (int32_t i = 0; i < count; i++) {
    const gp_task *x = &plan->tasks[a + i], *y = &plan->tasks[b + i];
    if (x->op != y->op || x->stage != y->stage || x->micro + micros != y->micro ||
        x->kept != y->kept || x->stash != y->stash || x->newest != y->newest ||
        (x->op != GP_ACT_C && x->version + versions != y->version))
      return false;
  }
  return true;
}

/* The first step from which on every device repeats itself; -1: none. */
static int32_t steady_step(const gp_plan *plan) {
  int32_t steps = plan->micro_count / plan->step_micros;
  for (int32_t step = 0; step + 2 < steps; step++) {
    bool all = true;
    for (int32_t d = 0; all && d < plan->device_count; d++) all = repeats(plan, d, step);
    if (all) return step;
  }
  return -1;
}

/* The last task of each micro-batch on each device: when it is over, its inputs are no longer read. */
static void mark_last(gp_plan *plan) {
  for (int32_t d = 0; d < plan->device_count; d++)
    for (int32_t t = plan->first[d]; t < plan->first[d + 1]; t++) {
      gp_task *task = &plan->tasks[t];
      task->last = true;
      for (int32_t u = t + 1; task->last && u < plan->first[d + 1]; u++)
        task->last = plan->tasks[u].micro != task->micro;
    }
}

gp_status gp_plan_add_ranges(gp_plan *plan) {
  int32_t steady = 0;
  if (plan->batch) {
    steady = steady_step(plan);
    mark_last(plan);
    if (steady < 0)
      return gp_fail(
          GP_ESCHEDULE,
          "schedule: it does not become periodic within %d micro-batches: an asynchronous "
          "schedule must repeat itself with every mini-batch",
          (int)plan->micro_count);
  }
  gp_ranges *r = &plan->ranges;
  r->count = steady + 1;
  GP_TRY(gp_alloc_array((size_t)plan->device_count * (size_t)(r->count + 1), sizeof(int32_t),
                        (void **)&r->begin));
  for (int32_t d = 0; d < plan->device_count; d++)
    for (int32_t j = 0; j <= r->count; j++)
      r->begin[d * (r->count + 1) + j] = plan->batch ? begin_of(plan, d, j) : plan->first[d + j];
  return GP_OK;
}
