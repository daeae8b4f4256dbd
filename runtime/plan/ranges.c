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
  int32_t *late;            /* per device that only updates: by so many ranges; else -1 */
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
  const int32_t late = b->late[device];
  at[0] = t;
  for (; t < end; t++) {
    const gp_task *task = &plan->tasks[t];
    const bool takes = task->op == GP_ACT_F || task->op == GP_ACT_C;
    if (late < 0 ? !takes : !gp_act_ends(task->op)) continue;
    const int32_t own = task->micro / plan->step_micros + (late < 0 ? 0 : late);
    for (; step <= own && step <= b->steps; step++) at[step] = t;
  }
  for (; step <= b->steps; step++) at[step] = end;
}

/* The same among the lowered actions. Updates, and what belongs to them, have the number of an
 * update. */
static void find_action_begins(const gp_plan *plan, int32_t device, begins *b) {
  int32_t *at = &b->actions[begins_at(b, device)], step = 1;
  int32_t i = b->lowered->first[device], end = b->lowered->first[device + 1];
  const int32_t late = b->late[device];
  at[0] = i;
  for (; i < end; i++) {
    const gp_action *action = &b->lowered->actions[i];
    const bool ends = gp_act_ends((gp_act)action->op);
    if (late < 0 ? action->op != GP_ACT_F : !ends) continue;
    const int32_t own = late < 0 ? action->micro / plan->step_micros : action->micro + late;
    for (; step <= own && step <= b->steps; step++) at[step] = i;
  }
  for (; step <= b->steps; step++) at[step] = end;
}

/* ---- replicas -------------------------------------------------------------------------------- */

/* The range in which a device makes its first update of a stage, by its forward passes. */
static int32_t first_update(const gp_plan *plan, const begins *b, int32_t device, int32_t stage) {
  int32_t range = 0;
  for (int32_t i = b->lowered->first[device]; i < b->lowered->first[device + 1]; i++) {
    const gp_action *action = &b->lowered->actions[i];
    if (action->op == GP_ACT_F) range = action->micro / plan->step_micros;
    if (action->op == GP_ACT_U && action->stage == stage) return range;
  }
  return range;
}

/* Replicas wait for each other at an update, and a script is told of the losses of all of them: so
 * all make it in the same range. Those without micro-batches only update. */
static gp_status find_late(const gp_plan *plan, begins *b) {
  for (int32_t d = 0; d < plan->device_count; d++) b->late[d] = -1;
  for (int32_t h = 0; h < plan->stage_count * plan->copy_count; h++) {
    const int32_t stage = h / plan->copy_count, device = plan->placement[h];
    const int32_t first = plan->placement[gp_plan_holder(plan, stage, 0)];
    const int32_t range = first_update(plan, b, first, stage);
    if (!plan->active[h])
      b->late[device] = range;
    else if (first_update(plan, b, device, stage) != range)
      return gp_fail(GP_ESCHEDULE,
                     "schedule: stage %d has its first update on device %d before micro-batches of "
                     "another mini-batch than on device %d, expected replicas that go in step",
                     (int)stage, (int)device, (int)first);
  }
  return GP_OK;
}

/* ---- when it repeats itself ------------------------------------------------------------------ */

/* Are the actions of step + 1 those of step, with all numbers moved on by one mini-batch? */
static bool actions_repeat(const gp_plan *plan, const begins *b, int32_t device, int32_t step) {
  const int32_t *begin = &b->actions[begins_at(b, device)], count = begin[step + 1] - begin[step];
  const int32_t micros = plan->step_micros, versions = micros / plan->batch;
  const gp_action *x = &b->lowered->actions[begin[step]],
                  *y = &b->lowered->actions[begin[step + 1]];
  if (begin[step + 2] - begin[step + 1] != count) return false;
  for (int32_t i = 0; i < count; i++, x++, y++)
    if (x->op != y->op || x->stage != y->stage ||
        x->micro + (gp_act_ends((gp_act)x->op) ? versions : micros) != y->micro ||
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

/* Per micro-batch of a stream. back: the action of a first device with which it is back at the
 * first stage. passes: forward passes of its replica's last stage until this micro-batch and all
 * before it have run there. */
typedef struct milestones {
  int32_t *back, *passes;
} milestones;

static void find_back(const gp_lowered *lowered, int32_t device, milestones *m) {
  for (int32_t i = lowered->first[device + 1]; i-- > lowered->first[device];) {
    const gp_action *action = &lowered->actions[i];
    if (action->stage == 0 && (action->op == GP_ACT_B || action->op == GP_ACT_I))
      m->back[action->micro] = i;
  }
}

static void find_passes(const gp_plan *plan, const gp_lowered *lowered, int32_t replica,
                        milestones *m) {
  const int32_t last = plan->stage_count - 1, twins = gp_plan_twins(plan);
  const int32_t device = plan->placement[gp_plan_holder(plan, last, replica * twins)];
  int32_t passes = 0, before = 0;
  for (int32_t i = lowered->first[device]; i < lowered->first[device + 1]; i++) {
    const gp_action *action = &lowered->actions[i];
    if (action->stage == last && action->op == GP_ACT_F) m->passes[action->micro] = ++passes;
  }
  for (int32_t i = 0; i < plan->micro_count; i++) {
    if (gp_plan_replica_of(plan, i) != replica) continue;
    if (m->passes[i] < before) m->passes[i] = before;
    before = m->passes[i];
  }
}

static void find_milestones(const gp_plan *plan, const gp_lowered *lowered, milestones *m) {
  const int32_t twins = gp_plan_twins(plan);
  for (int32_t i = 0; i < plan->micro_count; i++) m->back[i] = INT32_MAX;
  for (int32_t r = 0; r < plan->replicas; r++) {
    find_back(lowered, plan->placement[r * twins], m);
    find_passes(plan, lowered, r, m);
  }
}

/* Is a micro-batch back at the first stage when the first device of its replica has run a range? In
 * a synchronous schedule all of them are. */
static bool is_back(const gp_plan *plan, const begins *b, const milestones *m, int32_t micro,
                    int32_t range) {
  const int32_t copy = gp_plan_replica_of(plan, micro) * gp_plan_twins(plan);
  if (!plan->batch) return true;
  return m->back[micro] < b->actions[begins_at(b, plan->placement[copy]) + (size_t)range + 1];
}

/* Find which losses are known after each range. They are told when their mini-batch is back at the
 * first stage of every replica: a rule that does not depend on the speed of the devices. In a
 * synchronous schedule, without a barrier too, a step waits for its own loss. */
static gp_status find_known(gp_plan *plan, const begins *b) {
  gp_ranges *r = &plan->ranges;
  int32_t micro = 0, group = plan->batch ? plan->batch : plan->step_micros;
  size_t micros = (size_t)plan->micro_count;
  milestones m;
  GP_TRY(gp_alloc_array(2 * micros, sizeof(int32_t), (void **)&m.back));
  m.passes = m.back + micros;
  find_milestones(plan, b->lowered, &m);
  for (int32_t j = 0; j < r->count; j++) {
    while (micro < plan->micro_count && is_back(plan, b, &m, micro, j)) micro++;
    r->known[j] = micro / group;
    for (int32_t i = 0; i < r->known[j] * group; i++)
      r->passed[j * plan->replicas + gp_plan_replica_of(plan, i)] = m.passes[i];
  }
  gp_free(m.back);
  return GP_OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static gp_status make_room(gp_plan *plan, int32_t count) {
  gp_ranges *r = &plan->ranges;
  size_t devices = (size_t)plan->device_count, ranges = (size_t)count,
         passed = ranges * (size_t)plan->replicas;
  r->count = count;
  GP_TRY(gp_alloc_array(devices * (ranges + 2) + ranges + passed, sizeof(int32_t),
                        (void **)&r->begin));
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
    GP_TRY(gp_alloc_array(2 * devices * columns + devices, sizeof(int32_t), (void **)&b->tasks));
    b->actions = b->tasks + devices * columns;
    b->late = b->actions + devices * columns;
    GP_TRY(find_late(plan, b));
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
