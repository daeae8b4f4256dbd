/* plan/ranges.c - which tasks belong to which mini-batch of a stream.
 *
 * A step of an asynchronous pipeline takes one more mini-batch: every device goes on until it meets
 * an F of a micro-batch that was not given yet. The first ranges fill the pipeline; from some
 * mini-batch on all are the same but for the numbers, and that range stands for all later ones.
 * What follows in the plan's lists (more repetitions, the drain) is not run: draining goes on with
 * the same range and skips what was never given.
 */
#include "base/memory.h"
#include "plan/plan.h"

/* The first task of the device that belongs to mini-batch `step` or a later one. */
static int32_t begin_of(const gp_plan *plan, int32_t device, int32_t step) {
  int32_t t = plan->first[device], given = step * plan->step_micros;
  if (step == 0) return t;
  for (; t < plan->first[device + 1]; t++) {
    const gp_task *task = &plan->tasks[t];
    if ((task->op == GP_ACT_F || task->op == GP_ACT_C) && task->micro >= given) break;
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

/* ---- what the ranges tell -------------------------------------------------------------------- */

/* Ranges between taking a mini-batch in and being through with it: its inputs are read until
 * then. */
static int32_t lag_of(const gp_plan *plan, int32_t device) {
  const gp_ranges *r = &plan->ranges;
  const int32_t *begin = &r->begin[device * (r->count + 1)];
  int32_t lag = 0;
  for (int32_t j = 0; j < r->count; j++)
    for (int32_t t = begin[j]; t < begin[j + 1]; t++) {
      int32_t here = j - plan->tasks[t].micro / plan->step_micros;
      if (here > lag) lag = here;
    }
  return lag;
}

/* Did the micro-batch come back to the first stage by the end of this range? */
static bool is_back(const gp_plan *plan, int32_t micro, int32_t range) {
  int32_t device = plan->placement[0];
  int32_t end = plan->ranges.begin[device * (plan->ranges.count + 1) + range + 1];
  for (int32_t t = plan->first[device]; t < end; t++) {
    const gp_task *task = &plan->tasks[t];
    if (task->stage == 0 && task->micro == micro && (task->op == GP_ACT_B || task->op == GP_ACT_I))
      return true;
  }
  return false;
}

/* Forward passes of the last stage, in its device's order, up to the last of the first `micros`. */
static int32_t passes_until(const gp_plan *plan, int32_t micros) {
  int32_t stage = plan->stage_count - 1, device = plan->placement[gp_plan_holder(plan, stage, 0)];
  int32_t passes = 0, needed = 0;
  for (int32_t t = plan->first[device]; t < plan->first[device + 1]; t++) {
    const gp_task *task = &plan->tasks[t];
    if (task->stage != stage || task->op != GP_ACT_F) continue;
    passes++;
    if (task->micro < micros) needed = passes;
  }
  return needed;
}

/* Losses are told when their mini-batch is back at the first stage: a rule that does not depend on
 * the speed of the devices. Without a barrier step waits for the loss of its own. */
static void find_known(gp_plan *plan) {
  gp_ranges *r = &plan->ranges;
  int32_t micro = 0, group = plan->batch ? plan->batch : plan->step_micros;
  for (int32_t j = 0; j < r->count; j++) {
    while (micro < plan->micro_count && (!plan->batch || is_back(plan, micro, j))) micro++;
    r->known[j] = micro / group;
    r->passed[j] = passes_until(plan, r->known[j] * group);
  }
}

/* ---- all of it ------------------------------------------------------------------------------- */

static gp_status make_room(gp_plan *plan, int32_t count) {
  gp_ranges *r = &plan->ranges;
  size_t devices = (size_t)plan->device_count, ranges = (size_t)count;
  r->count = count;
  GP_TRY(gp_alloc_array(devices * (ranges + 2) + 2 * ranges, sizeof(int32_t), (void **)&r->begin));
  r->lag = r->begin + devices * (ranges + 1);
  r->known = r->lag + devices;
  r->passed = r->known + ranges;
  return GP_OK;
}

gp_status gp_plan_add_ranges(gp_plan *plan) {
  int32_t steady = plan->batch ? steady_step(plan) : 0;
  if (steady < 0)
    return gp_fail(GP_ESCHEDULE,
                   "schedule: it does not become periodic within %d micro-batches: an asynchronous "
                   "schedule must repeat itself with every mini-batch",
                   (int)plan->micro_count);
  GP_TRY(make_room(plan, steady + 1));
  gp_ranges *r = &plan->ranges;
  for (int32_t d = 0; d < plan->device_count; d++)
    for (int32_t j = 0; j <= r->count; j++)
      r->begin[d * (r->count + 1) + j] = plan->batch ? begin_of(plan, d, j) : plan->first[d + j];
  for (int32_t d = 0; d < plan->device_count; d++) r->lag[d] = lag_of(plan, d);
  find_known(plan);
  return GP_OK;
}
