/* plan/edge/uses.c - what tasks do with values of edges: which acquires a slot, which waits, and
 * which use is the last.
 *
 * All of it is read off lifetimes: the task with which a value begins to live on a stage makes it,
 * or waits for it, and the one with which it ends gives its slot back.
 */
#include "base/memory.h"
#include "plan/edge/accesses.h"

typedef struct user {
  gp_plan *plan;
  gp_action *actions; /* of the device at hand, one for each of its tasks */
  int32_t *marks;     /* per edge: see gp_edge_lives_find */
} user;

/* ---- uses ---------------------------------------------------------------------------------- */

static gp_action action_of(const gp_task *task) {
  return (gp_action){.op = (uint8_t)task->op, .stage = task->stage, .micro = task->micro};
}

/* Makes room for the uses of all tasks. They are counted first, because tasks point into the array
 * and it may not move. */
static gp_status make_uses(gp_plan *plan) {
  size_t count = 0;
  int32_t tasks = plan->first[plan->device_count];
  for (int32_t t = 0; t < tasks; t++) {
    gp_action action = action_of(&plan->tasks[t]);
    count += (size_t)gp_edge_touched(plan, &action)->count;
  }
  GP_TRY(gp_alloc_array(count + 1, sizeof(gp_edge_use), (void **)&plan->uses));
  gp_edge_use *use = plan->uses;
  for (int32_t t = 0; t < tasks; t++) {
    gp_task *task = &plan->tasks[t];
    gp_action action = action_of(task);
    const gp_edge_list *touched = gp_edge_touched(plan, &action);
    task->uses = use;
    task->use_count = touched->count;
    for (int32_t i = 0; i < touched->count; i++) *use++ = (gp_edge_use){.edge = touched->edges[i]};
  }
  return GP_OK;
}

/* ---- first and last ones -------------------------------------------------------------------- */

static gp_edge_use *use_of(const gp_task *task, int32_t edge) {
  gp_edge_use *use = task->uses;
  while (use->edge != edge) use++;
  return use;
}

static void mark(const gp_plan *plan, int32_t begin, const gp_edge_lives *lives) {
  for (int32_t i = 0; i < lives->lifetimes.count; i++) {
    const gp_lifetime *life = &lives->lifetimes.list[i];
    const gp_buffer *buffer = &lives->list.buffers[life->buffer];
    gp_edge_use *first = use_of(&plan->tasks[begin + life->task], buffer->edge);
    first->acquire = first->publish = buffer->made_here;
    first->wait = !buffer->made_here;
    use_of(&plan->tasks[begin + life->end], buffer->edge)->release = true;
  }
}

static gp_status mark_device(user *u, int32_t device) {
  gp_plan *plan = u->plan;
  const int32_t begin = plan->first[device], count = plan->first[device + 1] - begin;
  for (int32_t t = 0; t < count; t++) u->actions[t] = action_of(&plan->tasks[begin + t]);
  for (int32_t h = 0; h < plan->stage_count * plan->copy_count; h++) {
    gp_edge_lives lives;
    if (plan->placement[h] != device) continue;
    GP_TRY(gp_edge_lives_find(plan, h / plan->copy_count, u->actions, count, u->marks, &lives));
    mark(plan, begin, &lives);
    gp_edge_lives_free(&lives);
  }
  return GP_OK;
}

gp_status gp_plan_add_uses(gp_plan *plan) {
  user u = {.plan = plan};
  int32_t tasks = 0;
  GP_TRY(make_uses(plan));
  for (int32_t d = 0; d < plan->device_count; d++)
    if (plan->first[d + 1] - plan->first[d] > tasks) tasks = plan->first[d + 1] - plan->first[d];
  gp_status status = gp_alloc_array((size_t)tasks + 1, sizeof *u.actions, (void **)&u.actions);
  if (!status)
    status = gp_alloc_array((size_t)plan->edge_count + 1, sizeof *u.marks, (void **)&u.marks);
  for (int32_t d = 0; !status && d < plan->device_count; d++)
    if (gp_plan_has(plan, d)) status = mark_device(&u, d);
  gp_free(u.actions);
  gp_free(u.marks);
  return status;
}
