/* engine/watch/report.c - what every device does now: the post-mortem of a run that made no
 * progress.
 *
 * The script's thread reads the events that workers write and the states of the slots that they
 * wait for, while the workers may go on. So every number is checked before it is used as an index,
 * and what is read may be a moment old.
 */
#include "base/text.h"
#include "base/thread.h"
#include "engine/state/pipeline.h"
#include "engine/watch/report.h"
#include "plan/edge/step_edges.h"
#include "plan/gathers.h"
#include "schedule/schedule.h"

enum { BEFORE = 4 }; /* past actions that are shown for each device */

/* ---- what a device does -------------------------------------------------------------------- */

/* GATHERS: it waits for another replica in the middle of an action. */
typedef enum act_state {
  FAR_AWAY,
  NOT_BEGUN,
  AT_GATE,
  BETWEEN,
  WAITS,
  GATHERS,
  RUNS,
  IS_DONE
} act_state;

/* task and micro are valid if the device waits, gathers or runs; since 0: not known. */
typedef struct act {
  act_state state;
  int32_t task;
  int64_t micro, since;
  int32_t replica; /* GATHERS: that it waits for */
} act;

/* A message that a task waits for: the value of an edge for one micro-batch. */
typedef struct message {
  const gp_edge_use *use;
  const gp_task *reader;
  int32_t maker, maker_device; /* its task, -1: another rank planned it; its device, -1: unknown */
  int64_t micro;
} message;

/* Read a time that a worker may be writing: what it says was true a moment ago. */
static int64_t read_time(const _Atomic int64_t *word) {
  return atomic_load_explicit((_Atomic int64_t *)word, memory_order_relaxed);
}

/* The event of this number, which must be among the last event_room: older ones are overwritten. */
static const gp_event *event_of(const gp_worker *w, size_t number) {
  return &w->events[number % w->event_room];
}

/* Tell what a device does: from its phase or, within a range, from the event that is not complete
 * yet. */
static act look(const gp_pipeline *p, int32_t device) {
  gp_worker *w = &p->workers[device];
  const gp_plan *plan = p->run.plan;
  if (w->far) return (act){.state = FAR_AWAY};
  uint32_t phase = atomic_load(&w->phase);
  size_t count = atomic_load(&w->event_count);
  act a = {.state = BETWEEN, .since = count ? read_time(&event_of(w, count - 1)->end) : 0};
  if (phase == GP_WORKER_STARTS) a.state = NOT_BEGUN;
  if (phase == GP_WORKER_AT_GATE) a.state = AT_GATE;
  if (phase == GP_WORKER_DONE) a.state = IS_DONE;
  if (a.state != BETWEEN) return a;
  const gp_event *now = event_of(w, count);
  int64_t wait = read_time(&now->wait), begin = read_time(&now->begin);
  int32_t task = atomic_load((_Atomic int32_t *)&now->task);
  if (read_time(&now->end) || task < plan->first[device] || task >= plan->first[device + 1])
    return a;
  const int32_t replica = atomic_load(&w->awaited) - 1;
  const act_state runs = replica >= 0 && replica < plan->replicas ? GATHERS : RUNS;
  return (act){begin ? runs : WAITS, task, read_time(&now->micro), begin ? begin : wait, replica};
}

/* ---- what it waits for --------------------------------------------------------------------- */

/* Does the task wait for a value that is not published yet? */
static bool is_missing(const gp_binding *binding, const gp_task *task, int32_t u, int64_t micro) {
  const gp_bound_use *bound = &gp_binding_uses(binding, task)[u];
  gp_link_turn turn = gp_binding_turn_of(binding->plan, task, u, bound, micro);
  return task->uses[u].wait && !gp_link_has(bound->link, turn);
}

/* Does the task wait for a slot that its readers have not released yet? */
static bool is_taken(const gp_binding *binding, const gp_task *task, int32_t u, int64_t micro) {
  const gp_bound_use *bound = &gp_binding_uses(binding, task)[u];
  gp_link_turn turn = gp_binding_turn_of(binding->plan, task, u, bound, micro);
  return task->uses[u].acquire &&
         atomic_load(&bound->channel->words[turn.slot].released) < turn.round * bound->parties;
}

static bool publishes(const gp_task *task, int32_t edge) {
  for (int32_t u = 0; u < task->use_count; u++)
    if (task->uses[u].edge == edge && task->uses[u].publish) return true;
  return false;
}

/* The device that makes a message, from the outline of the plan. */
static int32_t maker_device(const gp_plan *plan, int32_t edge, int64_t micro) {
  const gp_step_edge *once = gp_plan_step_edge(plan, edge);
  return once ? once->maker : gp_plan_channel_maker(plan, gp_plan_channel_at(plan, edge, micro));
}

/* By how many mini-batches a task that publishes an edge is moved on where it makes a message;
 * below 0: it makes an earlier one. */
static int64_t moved_by(const gp_plan *plan, const gp_task *task, const message *m) {
  const gp_step_edge *once = gp_plan_step_edge(plan, m->use->edge);
  const int64_t moved = m->micro - task->micro;
  if (!once) return moved % plan->step_micros ? -1 : moved / plan->step_micros;
  if (!gp_step_turns(plan, once)) return 0;
  return gp_step_turn(plan, once, m->reader, m->micro) -
         gp_step_turn(plan, once, task, task->micro);
}

/* Find the task that makes a message. A stream repeats the tasks that are stored last: any task of
 * the same place in a mini-batch tells which device makes the message, and the one of this very
 * micro-batch also tells when. */
static message message_of(const gp_plan *plan, const gp_task *reader, int32_t u, int64_t micro) {
  const gp_edge_use *use = &reader->uses[u];
  message m = {.use = use, .reader = reader, .maker = -1, .micro = micro};
  m.maker_device = maker_device(plan, use->edge, micro);
  for (int32_t d = 0; d < plan->device_count; d++)
    for (int32_t t = plan->first[d]; t < plan->first[d + 1]; t++) {
      if (!publishes(&plan->tasks[t], use->edge)) continue;
      const int64_t moved =
          moved_by(plan, &plan->tasks[t], &(message){use, reader, .micro = micro});
      if (moved < 0) continue;
      m.maker = t;
      m.maker_device = d;
      m.micro = plan->tasks[t].micro + moved * plan->step_micros;
      if (!moved) return m;
    }
  return m;
}

/* The position of a message's maker in the order of the whole stream. */
static int64_t order_of(const gp_plan *plan, const message *m) {
  int64_t total = plan->order_end;
  /* made on another rank: some time before its reader */
  const gp_task *task = m->maker < 0 ? m->reader : &plan->tasks[m->maker];
  return (m->micro - task->micro) / plan->step_micros * total + task->order;
}

/* Find the first message that a device waits for; false if it waits for none. */
static bool find_missing(const gp_pipeline *p, const act *a, message *m) {
  const gp_plan *plan = p->run.plan;
  if (a->state != WAITS) return false;
  const gp_task *task = &plan->tasks[a->task];
  for (int32_t u = 0; u < task->use_count; u++)
    if (is_missing(p->run.binding, task, u, a->micro))
      return *m = message_of(plan, task, u, a->micro), true;
  return false;
}

/* ---- words --------------------------------------------------------------------------------- */

static const char *action_text(const gp_plan *plan, int32_t task, int64_t micro,
                               char text[GP_ACTION_TEXT]) {
  gp_action action = gp_task_action(plan, &plan->tasks[task], micro);
  return gp_action_print(&action, text);
}

/* Write what a message is: "1F3 from cpu:1 (activation, stage 1 to 2)". */
static void put_message(gp_text *w, const gp_pipeline *p, const message *m, int32_t reader) {
  const gp_plan *plan = p->run.plan;
  const gp_step_edge *once = gp_plan_step_edge(plan, m->use->edge);
  char text[GP_ACTION_TEXT];
  if (m->maker < 0)
    gp_text_put(w, "micro-batch %lld", (long long)m->micro);
  else
    gp_text_put(w, "%s", action_text(plan, m->maker, m->micro, text));
  gp_text_put(w, " from %s", p->workers[m->maker_device].lane.name);
  if (once) {
    gp_text_put(w, " (%s)", gp_step_edge_name(once));
    return;
  }
  const gp_edge *edge = gp_plan_edge(plan, m->use->edge);
  gp_text_put(w, " (%s, stage %d to %d)", edge->phase == GP_BACKWARD ? "gradient" : "activation",
              (int)edge->from, (int)reader);
}

/* Write that the readers of an edge are not through with what a task wants to overwrite. */
static void put_taken(gp_text *w, const gp_plan *plan, const gp_task *task, int32_t edge) {
  const gp_step_edge *once = gp_plan_step_edge(plan, edge);
  if (once)
    gp_text_put(w, "needs others to be through with what it handed out before (%s)",
                gp_step_edge_name(once));
  else
    gp_text_put(w, "needs a free one of %d slots for what stage %d sends",
                (int)gp_plan_channel_of(plan, edge, task->micro)->slots, (int)task->stage);
}

/* Write what a waiting task needs: a message and where it comes from, or a free slot. */
static void put_wait(gp_text *w, const gp_pipeline *p, const act *a) {
  const gp_plan *plan = p->run.plan;
  const gp_task *task = &plan->tasks[a->task];
  message m;
  if (find_missing(p, a, &m)) {
    gp_text_put(w, "needs ");
    put_message(w, p, &m, task->stage);
    return;
  }
  for (int32_t u = 0; u < task->use_count; u++)
    if (is_taken(p->run.binding, task, u, a->micro)) {
      put_taken(w, plan, task, task->uses[u].edge);
      return;
    }
  gp_text_put(w, "has everything now");
}

/* Write which task of another replica the device waits for: "0F4 from cpu:2". */
static void put_gather(gp_text *w, const gp_pipeline *p, const act *a) {
  const gp_plan *plan = p->run.plan;
  gp_task other = plan->tasks[a->task];
  const int32_t copy = gp_plan_copy_in(plan, other.copy, a->replica);
  char text[GP_ACTION_TEXT];
  other.micro = gp_plan_micro_in(plan, other.micro, a->replica);
  const gp_action action = gp_task_action(plan, &other, other.micro);
  gp_text_put(w, "needs %s from %s (a part of what all replicas gather)",
              gp_action_print(&action, text),
              p->workers[plan->placement[gp_plan_holder(plan, other.stage, copy)]].lane.name);
}

/* Write for how long the device has done so. */
static void put_time(gp_text *w, const act *a, int64_t now) {
  if (a->since > 0 && a->since <= now)
    gp_text_put(w, " for %.1f s", 1e-9 * (double)(now - a->since));
}

/* Write the last actions that a device has ended, oldest first. */
static void put_before(gp_text *w, const gp_pipeline *p, int32_t device) {
  gp_worker *worker = &p->workers[device];
  const gp_plan *plan = p->run.plan;
  size_t count = atomic_load(&worker->event_count), shown = count < BEFORE ? count : BEFORE;
  char text[GP_ACTION_TEXT];
  if (shown >= worker->event_room) shown = worker->event_room - 1;
  for (size_t k = count - shown; k < count; k++) {
    const gp_event *event = event_of(worker, k);
    int32_t task = atomic_load((_Atomic int32_t *)&event->task);
    if (task < plan->first[device] || task >= plan->first[device + 1]) continue;
    gp_text_put(w, "%s%s", k == count - shown ? "; before: " : " ",
                action_text(plan, task, read_time(&event->micro), text));
  }
}

/* Write one line: what a device does, for how long, and what it did before. */
static void put_device(gp_text *w, const gp_pipeline *p, int32_t device, int64_t now) {
  static const char *const words[] = {[FAR_AWAY] = "on another rank",
                                      [NOT_BEGUN] = "not begun",
                                      [AT_GATE] = "waiting for the next mini-batch",
                                      [BETWEEN] = "between two actions",
                                      [WAITS] = "waiting",
                                      [GATHERS] = "waiting in",
                                      [RUNS] = "in",
                                      [IS_DONE] = "done"};
  act a = look(p, device);
  char text[GP_ACTION_TEXT];
  gp_text_put(w, "  device %d (%s): %s", (int)device, p->workers[device].lane.name, words[a.state]);
  if (a.state == RUNS || a.state == GATHERS)
    gp_text_put(w, " %s", action_text(p->run.plan, a.task, a.micro, text));
  put_time(w, &a, now);
  if (a.state == GATHERS) {
    gp_text_put(w, ": ");
    put_gather(w, p, &a);
  }
  if (a.state == WAITS) {
    gp_text_put(w, ": %s ", action_text(p->run.plan, a.task, a.micro, text));
    put_wait(w, p, &a);
  }
  put_before(w, p, device);
  gp_text_put(w, "\n");
}

/* ---- the whole ----------------------------------------------------------------------------- */

/* Find the message that the schedule makes first, among those that devices wait for. */
static bool find_first(const gp_pipeline *p, message *first, int32_t *reader) {
  message m;
  bool found = false;
  for (int32_t d = 0; d < p->run.plan->device_count; d++) {
    act a = look(p, d);
    if (!find_missing(p, &a, &m)) continue;
    if (found && order_of(p->run.plan, &m) >= order_of(p->run.plan, first)) continue;
    *first = m;
    *reader = p->run.plan->tasks[a.task].stage;
    found = true;
  }
  return found;
}

const char *gp_report_kind(const gp_run *run) {
  switch (run->plan->kind) {
  case GP_PLAN_STEP: return run->open ? "the stream of steps" : "step";
  case GP_PLAN_SPLIT: return run->backward_half ? "backward" : "forward";
  case GP_PLAN_EVALUATE: return "evaluate";
  default: return "forward";
  }
}

char *gp_report_write(gp_pipeline *p, char *text, size_t size) {
  gp_text w = gp_text_begin(text, size);
  int64_t now = gp_now_ns();
  message first;
  int32_t reader;
  gp_text_put(&w, "post-mortem of %s (training step %lld), %.1f s after its begin:\n",
              gp_report_kind(&p->run), (long long)p->step, 1e-9 * (double)(now - p->last_begin));
  for (int32_t d = 0; d < p->run.plan->device_count; d++) put_device(&w, p, d, now);
  if (find_first(p, &first, &reader)) {
    gp_text_put(&w, "  first missing message: ");
    put_message(&w, p, &first, reader);
    gp_text_put(&w, "\n");
  }
  return text;
}

bool gp_report_running(const gp_pipeline *p) {
  for (int32_t d = 0; d < p->run.plan->device_count; d++)
    if (look(p, d).state == RUNS) return true;
  return false;
}

/* The devices that run an action hold the others up. If none does, the schedule or the engine is
 * wrong. */
char *gp_report_cause(gp_pipeline *p, char *text, size_t size) {
  gp_text w = gp_text_begin(text, size);
  int64_t now = gp_now_ns();
  char name[GP_ACTION_TEXT];
  message first;
  int32_t reader, running = 0;
  for (int32_t d = 0; d < p->run.plan->device_count; d++) {
    act a = look(p, d);
    if (a.state != RUNS) continue;
    gp_text_put(&w, "%sdevice %d (%s) is in %s", running++ ? ", " : "", (int)d,
                p->workers[d].lane.name, action_text(p->run.plan, a.task, a.micro, name));
    put_time(&w, &a, now);
  }
  if (running) return text;
  gp_text_put(&w, "no device runs anything");
  if (find_first(p, &first, &reader)) {
    gp_text_put(&w, ", the first missing message is ");
    put_message(&w, p, &first, reader);
  }
  for (int32_t d = 0; d < p->run.plan->device_count; d++) {
    act a = look(p, d);
    if (a.state != GATHERS) continue;
    gp_text_put(&w, ", device %d (%s) ", (int)d, p->workers[d].lane.name);
    put_gather(&w, p, &a);
    break;
  }
  return text;
}
