/* plan/page.c - a step as a page: one line per task, with what it waits for and what it touches.
 *
 * "1B2: waits for e3[0] from 2B2; reads weights, saved[1], e3[0]; adds to gradients; writes e2[0]
 * for 0B2" - the numbers of edges are those of the plan's list of edges, slots stand in brackets.
 */
#include "base/memory.h"
#include "base/text.h"
#include "plan/channels.h"
#include "plan/edge/step_edges.h"
#include "plan/gathers.h"
#include "plan/offload.h"
#include "plan/touches.h"
#include "schedule/schedule.h"

typedef struct page {
  const gp_plan *plan;
  /* Per edge and micro-batch, or turn of a step edge: the task that publishes it + 1; 0: none. */
  int32_t *made;
  gp_text text;
  bool begun; /* the line has a verb */
} page;

/* ---- tasks --------------------------------------------------------------------------------- */

/* Versions stand with the weights that a task reads. */
static void put_task(page *p, const gp_task *task) {
  char text[GP_ACTION_TEXT];
  gp_action action = gp_task_action(p->plan, task, task->micro);
  action.version = -1;
  if (task->op == GP_ACT_P) action.micro = -1;
  gp_text_put(&p->text, "%s", gp_action_print(&action, text));
}

/* There are no more turns than micro-batches, and one for what is there before. */
static size_t columns_of(const gp_plan *plan) { return (size_t)plan->micro_count + 1; }

/* The place of what a task publishes or waits for. */
static size_t cell_of(const page *p, const gp_task *task, int32_t edge) {
  const gp_step_edge *once = gp_plan_step_edge(p->plan, edge);
  int64_t column = once ? 0 : task->micro;
  if (once && gp_step_turns(p->plan, once)) column = gp_step_turn(p->plan, once, task, task->micro);
  return (size_t)edge * columns_of(p->plan) + (size_t)column;
}

/* Find the task that publishes each value, on all devices that the plan holds. */
static void find_makers(page *p) {
  const gp_plan *plan = p->plan;
  for (int32_t t = 0; t < plan->first[plan->device_count]; t++)
    for (int32_t u = 0; u < plan->tasks[t].use_count; u++) {
      const gp_edge_use *use = &plan->tasks[t].uses[u];
      if (use->publish) p->made[cell_of(p, &plan->tasks[t], use->edge)] = t + 1;
    }
}

/* ---- what a task touches --------------------------------------------------------------------- */

/* Print an edge and its slot, "e3[0]"; for a step edge, what it carries. */
static void put_edge(page *p, const gp_task *task, int32_t edge) {
  const gp_step_edge *once = gp_plan_step_edge(p->plan, edge);
  if (once) {
    gp_text_put(&p->text, "%s", gp_step_edge_name(once));
    if (once->stage >= 0) gp_text_put(&p->text, " of stage %d", (int)once->stage);
    return;
  }
  int64_t turn = gp_plan_turn(p->plan, edge, task->micro),
          slots = gp_plan_channel_of(p->plan, edge, task->micro)->slots;
  gp_text_put(&p->text, "e%d", (int)edge);
  if (slots) gp_text_put(&p->text, "[%d]", (int)(turn % slots));
}

static void put_touch(page *p, const gp_task *task, const gp_touch *touch) {
  if (touch->use >= 0) {
    put_edge(p, task, touch->instance);
    return;
  }
  static const char *const until[GP_PARTS] = {"", " until I", " until R"};
  gp_text_put(&p->text, "%s%s", gp_touched_name(touch->buffer), until[touch->part]);
  const bool own = touch->buffer == GP_TOUCHED_EXTRAS && touch->instance == task->stage;
  if (touch->instance < 0 || own) return;
  const char *format = touch->buffer == GP_TOUCHED_NEIGHBOUR ? " stage %d"
                       : touch->buffer == GP_TOUCHED_EXTRAS  ? " of stage %d"
                       : touch->buffer == GP_TOUCHED_WEIGHTS ? "@%d"
                                                             : "[%d]";
  gp_text_put(&p->text, format, (int)touch->instance);
}

/* Print a comma if the verb has objects already (more); else the verb, after a semicolon if it
 * isn't the line's first. */
static void put_verb(page *p, bool more, const char *verb) {
  gp_text_put(&p->text, "%s%s", more ? ", " : p->begun ? "; " : " ", more ? "" : verb);
  p->begun = true;
}

/* Does the page say of each mode what a task touches there? Temporaries tell a reader nothing, and
 * gathers are said once. */
static bool is_shown(const gp_touch *touch) {
  return touch->buffer != GP_TOUCHED_TEMPORARY && touch->buffer != GP_TOUCHED_GATHER;
}

/* Print all that is touched in one mode. */
static void put_mode(page *p, const gp_task *task, const gp_touch *list, int32_t count,
                     unsigned mode, const char *verb) {
  bool any = false;
  for (int32_t i = 0; i < count; i++) {
    unsigned own = list[i].modes;
    if (own & GP_TOUCH_ADD) own = GP_TOUCH_ADD;
    if (!(own & mode) || !is_shown(&list[i])) continue;
    put_verb(p, any, verb);
    put_touch(p, task, &list[i]);
    any = true;
  }
}

/* Print the values that a task waits for and the tasks that publish them. Tasks of its own
 * device have run before. */
static void put_waits(page *p, int32_t device, const gp_task *task) {
  bool any = false;
  for (int32_t u = 0; u < task->use_count; u++) {
    const gp_edge_use *use = &task->uses[u];
    if (!use->wait) continue;
    int32_t made = p->made[cell_of(p, task, use->edge)];
    if (made > p->plan->first[device] && made <= p->plan->first[device + 1]) continue;
    put_verb(p, any, "waits for ");
    put_edge(p, task, use->edge);
    if (made) gp_text_put(&p->text, " from "), put_task(p, &p->plan->tasks[made - 1]);
    any = true;
  }
}

/* Print what the task gathers with the same task of the other replicas: "gathers g0, g1 with
 * 0F4". */
static void put_gathers(page *p, const gp_task *task, const gp_touch *list, int32_t count) {
  bool any = false;
  for (int32_t i = 0; i < count; i++) {
    if (list[i].buffer != GP_TOUCHED_GATHER) continue;
    put_verb(p, any, "gathers ");
    gp_text_put(&p->text, "g%d", (int)list[i].instance);
    any = true;
  }
  for (int32_t r = 0, own = gp_plan_replica_of(p->plan, task->micro); any && r < p->plan->replicas;
       r++) {
    gp_task other = *task;
    other.micro = gp_plan_micro_in(p->plan, task->micro, r);
    if (r == own) continue;
    gp_text_put(&p->text, r == (own == 0) ? " with " : ", ");
    put_task(p, &other);
  }
}

/* Print which saved values go to the host's memory and come back, by the task that makes them. */
static void put_moves(page *p, const gp_task *task, bool behind) {
  static const char *const texts[GP_MOVE_KINDS] = {"begins to fetch what ", "waits for what ",
                                                   "begins to put on the host what ",
                                                   "waits until the host has what "};
  for (int32_t i = 0; i < task->move_count; i++) {
    const gp_move *move = &task->moves[i];
    if (behind != (move->kind >= GP_MOVE_PUT)) continue;
    put_verb(p, false, texts[move->kind]);
    put_task(p, gp_move_owner(p->plan, move));
    gp_text_put(&p->text, " saved");
  }
}

static gp_status put_line(page *p, int32_t device, const gp_task *task) {
  const size_t most = (size_t)gp_plan_touches_most(p->plan, task);
  gp_touch *list;
  GP_TRY(gp_alloc_array(most, sizeof *list, (void **)&list));
  const int32_t count = gp_plan_touches(p->plan, task, list);
  p->begun = false;
  put_task(p, task);
  gp_text_put(&p->text, ":");
  put_waits(p, device, task);
  put_moves(p, task, false);
  put_gathers(p, task, list, count);
  put_mode(p, task, list, count, GP_TOUCH_READ, "reads ");
  put_mode(p, task, list, count, GP_TOUCH_ADD, "adds to ");
  put_mode(p, task, list, count, GP_TOUCH_WRITE, "writes ");
  put_moves(p, task, true);
  gp_text_put(&p->text, p->begun ? "\n" : " nothing to do\n");
  gp_free(list);
  return GP_OK;
}

gp_status gp_plan_page(const gp_plan *plan, int device, char *text, size_t size, size_t *length) {
  page p = {.plan = plan, .text = gp_text_begin(text, size)};
  size_t cells;
  *length = 0;
  if (device >= plan->device_count) return GP_OK;
  GP_TRY(gp_size_mul((size_t)gp_plan_channel_count(plan), columns_of(plan), &cells));
  GP_TRY(gp_alloc_array(cells + 1, sizeof *p.made, (void **)&p.made));
  find_makers(&p);
  gp_status status = GP_OK;
  for (int32_t t = plan->first[device]; !status && t < plan->first[device + 1]; t++)
    status = put_line(&p, device, &plan->tasks[t]);
  gp_free(p.made);
  *length = p.text.length;
  return status;
}
