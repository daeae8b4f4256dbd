/* plan/edge/proof.c - gp_transfers_prove of transfers.h: the lists are run without work.
 *
 * The queues are those of the runner: the tasks of each device, the sends of each pair, and its
 * receives. A transfer is over when its receive has run:
 *
 *   task      needs the values that it waits for, and the last uses of the slots that it writes
 *   send      needs its task and its receive, because it blocks its queue until then
 *   receive   needs its send to be the first one left, and the task behind which it is posted
 */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "plan/channels.h"
#include "plan/edge/transfers.h"
#include "schedule/runner.h"

typedef struct proof {
  const gp_transfers *t;
  const gp_plan *plan;
  gp_runner runner;
  gp_action *actions; /* the runner wants some; only tasks have names */
  int32_t *first, *order;
  int32_t tasks;   /* sends come behind them, then receives */
  int32_t *left;   /* per value (gp_transfers_cell): last uses to come */
  int32_t *places; /* per transfer: the one in whose place it is received */
} proof;

/* ---- what a queue lacks ---------------------------------------------------------------------- */

static bool is_done(const proof *p, int32_t position) { return p->order[position] >= 0; }

static int32_t send_at(const proof *p, int32_t transfer) { return p->tasks + transfer; }
static int32_t receive_at(const proof *p, int32_t place) { return p->tasks + p->t->count + place; }

/* The position that brings the value of a use to the task's device, or -1. */
static int32_t source_of(const proof *p, int32_t task, const gp_edge_use *use) {
  const gp_task *own = &p->plan->tasks[task];
  const int32_t transfer = gp_transfers_find(p->t, own, use->edge, p->t->device[task]);
  if (transfer >= 0) return receive_at(p, p->places[transfer]);
  return p->t->maker[gp_transfers_cell_of(p->plan, own, use->edge)] - 1;
}

/* The value that was in the slot before, which is to be given back; false: there was none. */
static bool has_earlier(const proof *p, int32_t task, int32_t edge, size_t *cell) {
  const gp_plan *plan = p->plan;
  const int32_t micro = plan->tasks[task].micro;
  if (edge >= plan->edge_count) {
    const int64_t slots = gp_step_slots(plan, gp_plan_step_edge(plan, edge));
    const int64_t column = gp_transfers_column(plan, &plan->tasks[task], edge) - slots;
    if (column >= 0) *cell = gp_transfers_cell(plan, edge, column);
    return column >= 0;
  }
  const int32_t slots = gp_plan_channel_of(plan, edge, micro)->slots;
  const int64_t before = slots ? gp_plan_micro_before(plan, edge, micro, slots) : -1;
  if (before < 0) return false;
  *cell = gp_transfers_cell(plan, edge, before);
  return true;
}

static int32_t lack_of_task(const proof *p, int32_t task) {
  const gp_task *own = &p->plan->tasks[task];
  for (int32_t u = 0; u < own->use_count; u++) {
    const gp_edge_use *use = &own->uses[u];
    size_t cell;
    const int32_t source = use->wait ? source_of(p, task, use) : -1;
    if (source >= 0 && !is_done(p, source)) return source;
    if (use->acquire && has_earlier(p, task, use->edge, &cell) && p->left[cell])
      return GP_LACKS_WORD;
  }
  return GP_LACKS_NOTHING;
}

static int32_t lack_of_send(const proof *p, int32_t transfer) {
  const int32_t made = p->t->list[transfer].made, place = receive_at(p, p->places[transfer]);
  if (!is_done(p, made)) return made;
  return is_done(p, place) ? GP_LACKS_NOTHING : place;
}

/* Is it the first one of its pair? */
static bool is_first(const gp_transfers *t, int32_t k) {
  return k == 0 || t->list[k - 1].from != t->list[k].from || t->list[k - 1].to != t->list[k].to;
}

static int32_t lack_of_receive(const proof *p, int32_t place) {
  const gp_transfer *own = &p->t->list[place], *one = &p->t->list[own->received];
  if (own->behind >= 0 && !is_done(p, own->behind)) return own->behind;
  if (!is_done(p, one->made)) return one->made;
  const bool leads = is_first(p->t, own->received);
  const int32_t before = leads ? -1 : send_at(p, own->received - 1);
  return before < 0 || is_done(p, before) ? GP_LACKS_NOTHING : before;
}

static int32_t lack_at(const proof *p, int32_t position) {
  if (position < p->tasks) return lack_of_task(p, position);
  const int32_t transfer = position - p->tasks;
  if (transfer < p->t->count) return lack_of_send(p, transfer);
  return lack_of_receive(p, transfer - p->t->count);
}

static int32_t lacks(void *context, int32_t queue, int32_t position) {
  (void)queue;
  return lack_at(context, position);
}

/* ---- what has run ---------------------------------------------------------------------------- */

/* Any copy of the stage may make the next value of the slot. */
static void wake_makers(proof *p, int32_t edge) {
  const gp_plan *plan = p->plan;
  const gp_step_edge *once = gp_plan_step_edge(plan, edge);
  if (once) gp_runner_wake(&p->runner, once->maker);
  for (int32_t copy = 0; !once && copy < plan->copy_count; copy++)
    gp_runner_wake(&p->runner, gp_plan_maker(plan, edge, copy));
}

static gp_status ran(void *context, int32_t queue, int32_t begin, int32_t end) {
  proof *p = context;
  (void)queue, (void)end;
  if (begin >= p->tasks) return GP_OK;
  const gp_task *task = &p->plan->tasks[begin];
  for (int32_t u = 0; u < task->use_count; u++) {
    const gp_edge_use *use = &task->uses[u];
    if (!use->release) continue;
    if (--p->left[gp_transfers_cell_of(p->plan, task, use->edge)] == 0) wake_makers(p, use->edge);
  }
  return GP_OK;
}

/* ---- what went wrong ------------------------------------------------------------------------- */

enum { NAME = 120, TEXT = 900 };

/* The queue that a position is in. */
static int32_t queue_of(const proof *p, int32_t position) {
  int32_t low = 0, high = p->runner.device_count;
  while (high - low > 1) {
    const int32_t middle = (low + high) / 2;
    if (p->first[middle] <= position)
      low = middle;
    else
      high = middle;
  }
  return low;
}

static int rank_of(const proof *p, int32_t device) {
  return (int)p->plan->devices[device].spec.rank;
}

static char *task_name(const proof *p, int32_t task, char text[GP_ACTION_TEXT]) {
  const gp_task *own = &p->plan->tasks[task];
  const gp_action action = gp_task_action(p->plan, own, own->micro);
  return gp_action_print(&action, text);
}

static char *name_of(const proof *p, int32_t position, char text[NAME]) {
  char task[GP_ACTION_TEXT];
  const int32_t transfer = position - p->tasks, place = transfer - p->t->count;
  if (position < p->tasks) {
    snprintf(text, NAME, "%s (device %d, rank %d)", task_name(p, position, task),
             (int)p->t->device[position], rank_of(p, p->t->device[position]));
    return text;
  }
  const bool sends = place < 0;
  const gp_transfer *one = &p->t->list[sends ? transfer : p->t->list[place].received];
  snprintf(text, NAME, "the %s of what %s makes for device %d (rank %d)",
           sends ? "send" : "receive", task_name(p, one->made, task), (int)one->to,
           rank_of(p, one->to));
  return text;
}

/* The task that is to give back the slot for which this one waits. */
static int32_t missing_release(const proof *p, int32_t task) {
  const gp_task *own = &p->plan->tasks[task];
  for (int32_t u = 0; u < own->use_count; u++) {
    size_t cell;
    const int32_t edge = own->uses[u].edge;
    if (!own->uses[u].acquire || !has_earlier(p, task, edge, &cell) || !p->left[cell]) continue;
    for (int32_t t = 0; t < p->tasks; t++)
      for (int32_t k = 0; !is_done(p, t) && k < p->plan->tasks[t].use_count; k++) {
        const gp_edge_use *use = &p->plan->tasks[t].uses[k];
        if (use->release && use->edge == edge &&
            gp_transfers_cell_of(p->plan, &p->plan->tasks[t], edge) == cell)
          return t;
      }
  }
  return task;
}

/* What the head of a stuck queue waits for. */
static int32_t need_of(const proof *p, int32_t queue) {
  const int32_t head = p->runner.at[queue].next, need = lack_at(p, head);
  return need == GP_LACKS_WORD ? missing_release(p, head) : need;
}

/* Every stuck queue waits for something in a stuck queue: follow them into the cycle, and print it
 * once around. */
static gp_status report_cycle(const proof *p, int32_t queue) {
  char text[TEXT] = "", one[NAME], two[NAME];
  size_t used = 0;
  for (int32_t i = 0; i < p->runner.device_count; i++) queue = queue_of(p, need_of(p, queue));
  const int32_t begin = queue;
  do {
    const int32_t need = need_of(p, queue), head = p->runner.at[queue].next;
    queue = queue_of(p, need);
    const int32_t behind = p->runner.at[queue].next;
    used += (size_t)snprintf(text + used, TEXT - used, "%s%s waits for %s", used ? "; " : "",
                             name_of(p, head, one), name_of(p, need, two));
    if (need != behind && used < TEXT)
      used += (size_t)snprintf(text + used, TEXT - used, ", which comes behind %s",
                               name_of(p, behind, one));
  } while (queue != begin && used + 3 * NAME < TEXT);
  return gp_fail(GP_ESCHEDULE,
                 "transfers: the queues of GPUs wait for each other: %s%s: expected an order in "
                 "which everything comes to its end",
                 text, queue == begin ? "" : "; ...");
}

/* NCCL matches by order alone. */
static gp_status check_order(const gp_transfers *t, const proof *p) {
  char one[GP_ACTION_TEXT], two[GP_ACTION_TEXT];
  for (int32_t i = 0; i < t->count; i++) {
    const gp_transfer *own = &t->list[i];
    if (own->received == i) continue;
    return gp_fail(GP_ESCHEDULE,
                   "transfers: device %d (rank %d) sends what %s makes where device %d (rank %d) "
                   "receives what %s makes, expected the same order on both sides",
                   (int)own->from, rank_of(p, own->from), task_name(p, own->made, one),
                   (int)own->to, rank_of(p, own->to),
                   task_name(p, t->list[own->received].made, two));
  }
  return GP_OK;
}

/* ---- the proof ------------------------------------------------------------------------------- */

/* The queues: tasks of devices, sends of pairs, receives of pairs. */
static void part_queues(proof *p) {
  const gp_plan *plan = p->plan;
  int32_t *first = p->first;
  for (int32_t d = 0; d < plan->device_count; d++) *first++ = plan->first[d];
  for (int32_t k = 0; k < p->t->pair_count; k++) *first++ = send_at(p, p->t->first[k]);
  for (int32_t k = 0; k <= p->t->pair_count; k++) *first++ = receive_at(p, p->t->first[k]);
}

static void count_releases(proof *p) {
  const gp_plan *plan = p->plan;
  for (int32_t t = 0; t < p->tasks; t++)
    for (int32_t u = 0; u < plan->tasks[t].use_count; u++) {
      const gp_edge_use *use = &plan->tasks[t].uses[u];
      if (use->release) p->left[gp_transfers_cell_of(plan, &plan->tasks[t], use->edge)]++;
    }
}

static gp_status run(proof *p) {
  const gp_transfers *t = p->t;
  const size_t positions = (size_t)p->tasks + 2 * (size_t)t->count;
  const size_t queues = (size_t)p->runner.device_count;

  GP_TRY(gp_alloc_array(positions + 1, sizeof *p->actions, (void **)&p->actions));
  GP_TRY(gp_alloc_array(positions + 1, sizeof *p->order, (void **)&p->order));
  GP_TRY(gp_alloc_array(queues + 1, sizeof *p->first, (void **)&p->first));
  GP_TRY(gp_alloc_array(gp_transfers_cells(p->plan) + 1, sizeof *p->left, (void **)&p->left));
  GP_TRY(gp_alloc_array((size_t)t->count + 1, sizeof *p->places, (void **)&p->places));
  for (int32_t i = 0; i < t->count; i++) p->places[t->list[i].received] = i;
  part_queues(p);
  count_releases(p);
  p->runner.actions = p->actions;
  p->runner.first = p->first;
  p->runner.order = p->order;
  GP_TRY(gp_runner_new(&p->runner));
  GP_TRY(gp_runner_run(&p->runner, NULL));
  for (int32_t q = 0; q < p->runner.device_count; q++)
    if (p->runner.at[q].next < p->runner.at[q].end) return report_cycle(p, q);
  return GP_OK;
}

gp_status gp_transfers_prove(const gp_transfers *t) {
  proof p = {.t = t, .plan = t->plan, .tasks = t->plan->first[t->plan->device_count]};
  p.runner = (gp_runner){.device_count = p.plan->device_count + 2 * t->pair_count,
                         .rule = GP_TURNS_QUEUE,
                         .context = &p,
                         .lacks = lacks,
                         .ran = ran};
  gp_status status = check_order(t, &p);
  if (!status) status = run(&p);
  gp_runner_free(&p.runner);
  gp_free(p.actions);
  gp_free(p.first);
  gp_free(p.order);
  gp_free(p.left);
  gp_free(p.places);
  return status;
}
