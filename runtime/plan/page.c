/* plan/page.c - a step as a page: one line per task, with what it waits for and what it touches.
 *
 * "1B2: waits for e3[0] from 2B2; reads weights, saved[1], e3[0]; adds to gradients; writes e2[0]
 * for 0B2" - the numbers of edges are those of the plan's list of edges, slots stand in brackets.
 */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "plan/edge/step_edges.h"
#include "plan/touches.h"
#include "schedule/schedule.h"

/* Text that is cut where the room ends; its whole length is counted. */
typedef struct page {
  const gp_plan *plan;
  int32_t *made; /* per edge and micro-batch: the task that publishes it + 1; 0: none here */
  char *text;
  size_t size, length;
  bool begun; /* the line has a verb */
} page;

static void put(page *p, const char *text) {
  size_t n = strlen(text);
  if (p->length + n < p->size) memcpy(p->text + p->length, text, n + 1);
  p->length += n;
}

static void put_number(page *p, const char *format, int32_t number) {
  char text[32];
  snprintf(text, sizeof text, format, (int)number);
  put(p, text);
}

/* ---- tasks --------------------------------------------------------------------------------- */

/* Describe a task as an action: with its micro-batch if the op has one; an update has its own
 * number instead. */
static gp_action action_of(const gp_plan *plan, const gp_task *task) {
  int32_t group = plan->batch ? plan->batch : plan->step_micros;
  gp_action action = {.op = (uint8_t)task->op,
                      .stage = task->stage,
                      .micro = task->op == GP_ACT_U ? task->micro / group : task->micro,
                      .version = -1};
  if (!gp_act_has_micro(task->op) || task->op == GP_ACT_P) action.micro = -1;
  return action;
}

static void put_task(page *p, const gp_task *task) {
  char text[GP_ACTION_TEXT];
  gp_action action = action_of(p->plan, task);
  put(p, gp_action_print(&action, text));
}

static size_t cell_of(const page *p, int32_t edge, int32_t micro) {
  return (size_t)edge * (size_t)p->plan->micro_count + (size_t)micro;
}

/* Find the task that publishes each value, on all devices that the plan holds. */
static void find_makers(page *p) {
  const gp_plan *plan = p->plan;
  for (int32_t t = 0; t < plan->first[plan->device_count]; t++)
    for (int32_t u = 0; u < plan->tasks[t].use_count; u++) {
      const gp_edge_use *use = &plan->tasks[t].uses[u];
      const bool once = use->edge >= plan->edge_count;
      if (use->publish) p->made[cell_of(p, use->edge, once ? 0 : plan->tasks[t].micro)] = t + 1;
    }
}

/* ---- what a task touches --------------------------------------------------------------------- */

/* Print an edge and its slot, "e3[0]"; of a step edge, what it carries. */
static void put_edge(page *p, const gp_task *task, int32_t edge) {
  const gp_step_edge *once = gp_plan_step_edge(p->plan, edge);
  if (once) {
    put(p, gp_step_value_name(once->value));
    if (once->stage >= 0) put_number(p, " of stage %d", once->stage);
    return;
  }
  int64_t turn = gp_plan_turn(p->plan, edge, task->micro), slots = p->plan->channels[edge].slots;
  put_number(p, "e%d", edge);
  if (slots) put_number(p, "[%d]", (int32_t)(turn % slots));
}

static void put_touch(page *p, const gp_task *task, const gp_touch *touch) {
  if (touch->use >= 0) {
    put_edge(p, task, touch->instance);
    return;
  }
  put(p, gp_touched_name(touch->buffer));
  if (touch->buffer == GP_TOUCHED_NEIGHBOUR)
    put_number(p, " stage %d", touch->instance);
  else if (touch->buffer == GP_TOUCHED_WEIGHTS && touch->instance >= 0)
    put_number(p, "@%d", touch->instance);
  else if (touch->instance >= 0)
    put_number(p, "[%d]", touch->instance);
}

/* Print a comma if the verb has objects already (more); else the verb, after a semicolon if it
 * isn't the line's first. */
static void put_verb(page *p, bool more, const char *verb) {
  if (more) {
    put(p, ", ");
    return;
  }
  put(p, p->begun ? "; " : " ");
  put(p, verb);
  p->begun = true;
}

/* Print all that is touched in one mode, except temporaries, which tell a reader nothing. */
static void put_mode(page *p, const gp_task *task, const gp_touch *list, int32_t count,
                     unsigned mode, const char *verb) {
  bool any = false;
  for (int32_t i = 0; i < count; i++) {
    unsigned own = list[i].modes;
    if (own & GP_TOUCH_ADD) own = GP_TOUCH_ADD;
    if (!(own & mode) || list[i].buffer == GP_TOUCHED_TEMPORARY) continue;
    put_verb(p, any, verb);
    put_touch(p, task, &list[i]);
    any = true;
  }
}

/* Print the values that a task waits for and the tasks that publish them. It never waits for tasks
 * of its own stage: they have run before. */
static void put_waits(page *p, const gp_task *task) {
  bool any = false;
  for (int32_t u = 0; u < task->use_count; u++) {
    const gp_edge_use *use = &task->uses[u];
    const bool once = use->edge >= p->plan->edge_count;
    if (!use->wait) continue;
    int32_t made = p->made[cell_of(p, use->edge, once ? 0 : task->micro)];
    put_verb(p, any, "waits for ");
    put_edge(p, task, use->edge);
    if (made) put(p, " from "), put_task(p, &p->plan->tasks[made - 1]);
    any = true;
  }
}

static gp_status put_line(page *p, const gp_task *task) {
  gp_touch *list;
  int32_t count;
  GP_TRY(gp_plan_touches(p->plan, task, &list, &count));
  p->begun = false;
  put_task(p, task);
  put(p, ":");
  put_waits(p, task);
  put_mode(p, task, list, count, GP_TOUCH_READ, "reads ");
  put_mode(p, task, list, count, GP_TOUCH_ADD, "adds to ");
  put_mode(p, task, list, count, GP_TOUCH_WRITE, "writes ");
  put(p, p->begun ? "\n" : " nothing to do\n");
  gp_free(list);
  return GP_OK;
}

gp_status gp_plan_page(const gp_plan *plan, int device, char *text, size_t size, size_t *length) {
  page p = {.plan = plan, .text = text, .size = size};
  size_t cells;
  *length = 0;
  if (size) *text = 0;
  if (device >= plan->device_count) return GP_OK;
  GP_TRY(gp_size_mul((size_t)gp_plan_channel_count(plan), (size_t)plan->micro_count, &cells));
  GP_TRY(gp_alloc_array(cells + 1, sizeof *p.made, (void **)&p.made));
  find_makers(&p);
  gp_status status = GP_OK;
  for (int32_t t = plan->first[device]; !status && t < plan->first[device + 1]; t++)
    status = put_line(&p, &plan->tasks[t]);
  gp_free(p.made);
  *length = p.length;
  return status;
}
