/* plan/ranges.c - which tasks belong to which mini-batch of a stream.
 *
 * A step of an asynchronous pipeline takes one more mini-batch: every device goes on until it meets
 * an F of a micro-batch that was not given yet. The first ranges fill the pipeline; from some
 * mini-batch on all are the same but for the numbers, and that range stands for all later ones.
 * What follows in the plan's lists (more repetitions, the drain) is not run: draining goes on with
 * the same range and skips what was never given.
 *
 * Where a rank plans its own devices alone, the lowered actions of all devices tell what all ranks
 * have to agree on: from which mini-batch on the stream repeats itself, and when losses are known.
 */
#include "base/memory.h"
#include "plan/make.h"

/* Where mini-batches begin on each device, found in one pass over its list: the first task, or
 * lowered action, that belongs to mini-batch `step` or a later one; behind the last mini-batch, the
 * end of the list. */
typedef struct begins {
  int32_t *tasks, *actions; /* [device][steps + 1] */
  int32_t steps;
  const gp_lowered *lowered; /* borrowed */
} begins;

static size_t begins_at(const begins *b, int32_t device) {
  return (size_t)device * (size_t)(b->steps + 1);
}

/* Find where each mini-batch begins on a device. A later mini-batch may be met first: the missing
 * ones before it begin there too. */
static void find_begins(const gp_plan *plan, int32_t device, begins *b) {
  int32_t *at = &b->tasks[begins_at(b, device)], step = 1;
  int32_t t = plan->first[device], end = plan->first[device + 1];
  at[0] = t;
  for (; t < end; t++) {
    const gp_task *task = &plan->tasks[t];
    if (task->op != GP_ACT_F && task->op != GP_ACT_C) continue;
    for (int32_t own = task->micro / plan->step_micros; step <= own; step++) at[step] = t;
  }
  for (; step <= b->steps; step++) at[step] = end;
}

/* The same among the lowered actions. */
static void find_action_begins(const gp_plan *plan, int32_t device, begins *b) {
  int32_t *at = &b->actions[begins_at(b, device)], step = 1;
  int32_t i = b->lowered->first[device], end = b->lowered->first[device + 1];
  at[0] = i;
  for (; i < end; i++) {
    const gp_action *action = &b->lowered->actions[i];
    if (action->op != GP_ACT_F) continue;
    for (int32_t own = action->micro / plan->step_micros; step <= own; step++) at[step] = i;
  }
  for (; step <= b->steps; step++) at[step] = end;
}

/* Are the actions of step + 1 those of step, with all numbers moved on by one mini-batch? */
static bool actions_repeat(const gp_plan *plan, const begins *b, int32_t device, int32_t step) {
  const int32_t *begin = &b->actions[begins_at(b, device)], count = begin[step + 1] - begin[step];
  const int32_t micros = plan->step_micros, versions = micros / plan->batch;
  const gp_action *x = &b->lowered->actions[begin[step]],
                  *y = &b->lowered->actions[begin[step + 1]];
  if (begin[step + 2] - begin[step + 1] != count) return false;
  for (int32_t i = 0; i < count; i++, x++, y++)
    if (x->op != y->op || x->stage != y->stage ||
        x->micro + (x->op == GP_ACT_U ? versions : micros) != y->micro ||
        (x->version >= 0 && x->version + versions != y->version))
      return false;
  return true;
}

/* Is the range of step + 1 that of step, with all numbers moved on by one mini-batch? */
static bool repeats(const gp_plan *plan, const int32_t *begin, int32_t step) {
  int32_t a = begin[step], b = begin[step + 1], count = b - a;
  int32_t micros = plan->step_micros, versions = micros / plan->batch;
  if (begin[step + 2] - b != count) return false;
  for (int32_t i = 0; i < count; i++) {
    const gp_task *x = &plan->tasks[a + i], *y = &plan->tasks[b + i];
    if (x->op != y->op || x->stage != y->stage || x->micro + micros != y->micro ||
        x->kept != y->kept || x->stash != y->stash || x->newest != y->newest ||
        (x->op != GP_ACT_C && x->version + versions != y->version))
      return false;
  }
  return true;
}

/* Find the first step from which on every device repeats itself; -1: none. */
static int32_t steady_step(const gp_plan *plan, const begins *b) {
  for (int32_t step = 0; step + 2 < b->steps; step++) {
    bool all = true;
    for (int32_t d = 0; all && d < plan->device_count; d++)
      all = actions_repeat(plan, b, d, step) && repeats(plan, &b->tasks[begins_at(b, d)], step);
    if (all) return step;
  }
  return -1;
}

/* ---- what the ranges tell -------------------------------------------------------------------- */

/* Count the ranges from the one that takes a mini-batch in to the one that ends it: its inputs are
 * read until then. */
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

/* Per micro-batch of a stream. back: the action of the first device with which it is back at the
 * first stage. passes: forward passes of the last stage until this micro-batch and all before it
 * have run there. */
typedef struct milestones {
  int32_t *back, *passes;
} milestones;

static void find_milestones(const gp_plan *plan, const gp_lowered *lowered, milestones *m) {
  int32_t device = plan->placement[0], last = plan->stage_count - 1, passes = 0;
  for (int32_t i = 0; i < plan->micro_count; i++) m->back[i] = INT32_MAX;
  for (int32_t i = lowered->first[device + 1]; i-- > lowered->first[device];) {
    const gp_action *action = &lowered->actions[i];
    if (action->stage == 0 && (action->op == GP_ACT_B || action->op == GP_ACT_I))
      m->back[action->micro] = i;
  }
  device = plan->placement[gp_plan_holder(plan, last, 0)];
  for (int32_t i = lowered->first[device]; i < lowered->first[device + 1]; i++) {
    const gp_action *action = &lowered->actions[i];
    if (action->stage == last && action->op == GP_ACT_F) m->passes[action->micro] = ++passes;
  }
  for (int32_t i = 1; i < plan->micro_count; i++)
    if (m->passes[i] < m->passes[i - 1]) m->passes[i] = m->passes[i - 1];
}

/* Find which losses are known after each range. They are told when their mini-batch is back at the
 * first stage: a rule that does not depend on the speed of the devices. In a synchronous schedule,
 * without a barrier too, a step waits for its own loss. */
static gp_status find_known(gp_plan *plan, const begins *b) {
  gp_ranges *r = &plan->ranges;
  int32_t micro = 0, group = plan->batch ? plan->batch : plan->step_micros;
  const int32_t *begin = plan->batch ? &b->actions[begins_at(b, plan->placement[0])] : NULL;
  size_t micros = (size_t)plan->micro_count;
  milestones m;
  GP_TRY(gp_alloc_array(2 * micros, sizeof(int32_t), (void **)&m.back));
  m.passes = m.back + micros;
  find_milestones(plan, b->lowered, &m);
  for (int32_t j = 0; j < r->count; j++) {
    while (micro < plan->micro_count && (!plan->batch || m.back[micro] < begin[j + 1])) micro++;
    r->known[j] = micro / group;
    r->passed[j] = r->known[j] ? m.passes[r->known[j] * group - 1] : 0;
  }
  gp_free(m.back);
  return GP_OK;
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

/* Fill in the ranges; a synchronous schedule is one. */
static gp_status fill(gp_plan *plan, const begins *b) {
  gp_ranges *r = &plan->ranges;
  for (int32_t d = 0; d < plan->device_count; d++)
    for (int32_t j = 0; j <= r->count; j++)
      r->begin[d * (r->count + 1) + j] =
          plan->batch ? b->tasks[begins_at(b, d) + (size_t)j] : plan->first[d + j];
  for (int32_t d = 0; d < plan->device_count; d++) r->lag[d] = lag_of(plan, d);
  return find_known(plan, b);
}

static gp_status add(gp_plan *plan, begins *b) {
  int32_t steady = 0;
  if (plan->batch) {
    size_t devices = (size_t)plan->device_count, columns = (size_t)b->steps + 1;
    GP_TRY(gp_alloc_array(2 * devices * columns, sizeof(int32_t), (void **)&b->tasks));
    b->actions = b->tasks + devices * columns;
    for (int32_t d = 0; d < plan->device_count; d++) find_begins(plan, d, b);
    for (int32_t d = 0; d < plan->device_count; d++) find_action_begins(plan, d, b);
    steady = steady_step(plan, b);
  }
  if (steady < 0)
    return gp_fail(GP_ESCHEDULE,
                   "schedule: it does not become periodic within %d micro-batches: an asynchronous "
                   "schedule must repeat itself with every mini-batch",
                   (int)plan->micro_count);
  GP_TRY(make_room(plan, steady + 1));
  return fill(plan, b);
}

/* Cost: linear in the tasks and in devices times mini-batches. */
gp_status gp_plan_add_ranges(gp_plan *plan, const gp_lowered *lowered) {
  begins b = {.steps = plan->micro_count / plan->step_micros, .lowered = lowered};
  gp_status status = add(plan, &b);
  gp_free(b.tasks);
  return status;
}
