/* plan/sums.c - see sums.h. */
#include "plan/sums.h"

#include "base/memory.h"

/* ---- who adds what --------------------------------------------------------------------------- */

/* The micro-batches of a mini-batch that a copy of a stage runs: in a stream the same ones of
 * each. */
typedef struct walk {
  int32_t begin, count; /* neighbouring ones */
  int32_t seen;         /* those of them that the tasks of the mini-batch so far have added */
  bool idle;            /* none of its parameters gets a gradient: there is nothing to add */
} walk;

static bool makes_gradients(const gp_plan *plan, int32_t stage) {
  return gp_plan_partial_bytes(plan, stage) > 0;
}

static walk *walk_of(const gp_plan *plan, walk *walks, const gp_task *task) {
  return &walks[gp_plan_holder(plan, task->stage, task->copy)];
}

/* Could the task add to gradients, as far as its action and the stage's parameters say? */
static bool may_add(const gp_plan *plan, const gp_task *task) {
  return (task->op == GP_ACT_B || task->op == GP_ACT_W) && makes_gradients(plan, task->stage);
}

/* W has nothing to run where the loss depends on no parameter of the stage. */
static void find_idle(const gp_plan *plan, walk *walks) {
  for (int32_t t = 0; t < plan->first[plan->device_count]; t++) {
    const gp_task *task = &plan->tasks[t];
    if (may_add(plan, task) && !task->program) walk_of(plan, walks, task)->idle = true;
  }
}

/* Returns where the task adds; NULL: it does not. */
static walk *adds_to(const gp_plan *plan, walk *walks, const gp_task *task) {
  walk *own = may_add(plan, task) ? walk_of(plan, walks, task) : NULL;
  return own && !own->idle ? own : NULL;
}

/* Count the micro-batches of each holder; W runs ascending, also in the later mini-batches of a
 * stream. */
static gp_status find_walks(const gp_plan *plan, walk *walks) {
  for (int32_t t = 0; t < plan->first[plan->device_count]; t++) {
    const gp_task *task = &plan->tasks[t];
    walk *own = adds_to(plan, walks, task);
    if (!own || (plan->batch && task->micro >= plan->batch)) continue;
    if (!own->count) own->begin = task->micro;
    if (task->micro != own->begin + own->count)
      return gp_fail(GP_ESCHEDULE,
                     "sum_group: a device adds micro-batch %d of stage %d after %d, expected "
                     "neighbouring ones on each device",
                     (int)task->micro, (int)task->stage, (int)(own->begin + own->count - 1));
    own->count++;
  }
  return GP_OK;
}

/* The place of a copy among those that have micro-batches; *count: how many these are. */
static int32_t place_of(const gp_plan *plan, int32_t holder, int32_t *count) {
  const int32_t copy = holder % plan->copy_count, first = holder - copy;
  int32_t place = 0;
  *count = 0;
  for (int32_t other = 0; other < plan->copy_count; other++) {
    if (other < copy) place += plan->active[first + other];
    *count += plan->active[first + other];
  }
  return place;
}

/* Are these so many leaves of the tree that a block of them is whole? */
static bool is_block(const gp_plan *plan, int32_t micros) {
  const int32_t leaves = micros / plan->sum_group;
  return micros > 0 && micros % plan->sum_group == 0 && !(leaves & (leaves - 1));
}

/* Each copy must have a block of the tree to itself. */
static gp_status check_walk(const gp_plan *plan, int32_t holder, const walk *w) {
  int32_t copies, place = place_of(plan, holder, &copies);
  const int32_t block = place ? w->begin / place : w->count;
  if (!w->count || copies == 1) return GP_OK;
  if (w->begin == place * block && w->count <= block && is_block(plan, block)) return GP_OK;
  return gp_fail(
      GP_ESCHEDULE,
      "sum_group: a copy of stage %d runs micro-batches %d to %d of %d, expected for each copy as "
      "many neighbouring ones: %d (sum_group) times a power of two (a mini-batch with fewer rows "
      "has fewer micro-batches: drop_last leaves such a one at the end of an epoch out)",
      (int)(holder / plan->copy_count), (int)w->begin, (int)(w->begin + w->count - 1),
      (int)plan->step_micros, (int)plan->sum_group);
}

/* ---- the binary counter ---------------------------------------------------------------------- */

static int32_t count_ones(uint32_t x) {
  int32_t ones = 0;
  for (; x; x &= x - 1) ones++;
  return ones;
}

static int32_t trailing_ones(uint32_t x) {
  int32_t ones = 0;
  for (; x & 1; x >>= 1) ones++;
  return ones;
}

/* Before leaf k there is a partial sum for each one in the binary digits of k. */
static void place(gp_plan *plan, gp_task *task, walk *w) {
  const int32_t holder = gp_plan_holder(plan, task->stage, task->copy);
  const uint32_t leaf = (uint32_t)(w->seen / plan->sum_group);
  const bool last = w->seen + 1 == w->count;
  const bool ends = last || (w->seen + 1) % plan->sum_group == 0;
  task->partial = count_ones(leaf);
  task->opens = w->seen % plan->sum_group == 0;
  if (ends) task->merges = last ? task->partial : trailing_ones(leaf);
  if (task->partial > plan->partial_count[holder]) plan->partial_count[holder] = task->partial;
  plan->opened[holder] = true;
  w->seen = last ? 0 : w->seen + 1;
}

static gp_status add(gp_plan *plan, walk *walks) {
  find_idle(plan, walks);
  GP_TRY(find_walks(plan, walks));
  for (int32_t h = 0; h < plan->stage_count * plan->copy_count; h++)
    GP_TRY(check_walk(plan, h, &walks[h]));
  for (int32_t t = 0; t < plan->first[plan->device_count]; t++) {
    gp_task *task = &plan->tasks[t];
    walk *own = adds_to(plan, walks, task);
    if (own) place(plan, task, own);
  }
  return GP_OK;
}

gp_status gp_plan_add_sums(gp_plan *plan) {
  walk *walks;
  if (!plan->sum_group) return GP_OK;
  const size_t holders = (size_t)(plan->stage_count * plan->copy_count);
  GP_TRY(gp_alloc_array(holders, sizeof *walks, (void **)&walks));
  gp_status status = add(plan, walks);
  gp_free(walks);
  return status;
}
