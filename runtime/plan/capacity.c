/* plan/capacity.c - how many slots an edge needs so that its maker never waits for one.
 *
 * A slot may be reused by micro-batch i when everybody's last use of it for micro-batch i - K is known
 * to be over before i's maker starts: known from the order of each device and from the messages between
 * them, which vector clocks capture exactly. Where only forward runs nothing ever flows back, so a small
 * fixed number of slots is taken and the maker waits for a free one.
 */
#include "base/memory.h"
#include "plan/plan.h"

enum { FORWARD_ONLY_SLOTS = 3 };

typedef struct clocks {
  gp_plan *plan;
  int32_t task_count, devices, micros;
  int32_t *clock;  /* per task and device: tasks of that device that are over before it starts */
  int32_t *device; /* per task */
  int32_t *sorted; /* tasks in topological order */
  int32_t *maker;  /* per (edge, micro-batch): publishing task */
  int32_t *last;   /* per (edge, micro-batch, stage): releasing task, or -1 */
} clocks;

static int32_t *clock_of(const clocks *c, int32_t task) {
  return &c->clock[(size_t)task * (size_t)c->devices];
}

/* Task p and all that it knew are over before t starts. */
static void after(clocks *c, int32_t t, int32_t p) {
  int32_t *mine = clock_of(c, t), *other = clock_of(c, p),
          over = p - c->plan->first[c->device[p]] + 1;
  for (int32_t d = 0; d < c->devices; d++)
    if (other[d] > mine[d]) mine[d] = other[d];
  if (over > mine[c->device[p]]) mine[c->device[p]] = over;
}

/* Does t know, before it starts, that p is over? */
static bool known_over(const clocks *c, int32_t p, int32_t t) {
  return clock_of(c, t)[c->device[p]] > p - c->plan->first[c->device[p]];
}

/* Tasks ordered by their place in the schedule's topological order (unique and dense enough). */
static gp_status sort_tasks(clocks *c) {
  int32_t *at, room = 0, n = 0;
  for (int32_t t = 0; t < c->task_count; t++)
    if (c->plan->tasks[t].order >= room) room = c->plan->tasks[t].order + 1;
  GP_TRY(gp_alloc_array((size_t)room + 1, sizeof *at, (void **)&at));
  for (int32_t t = 0; t < c->task_count; t++) at[c->plan->tasks[t].order] = t + 1;
  for (int32_t i = 0; i < room; i++)
    if (at[i]) c->sorted[n++] = at[i] - 1;
  gp_free(at);
  return GP_OK;
}

/* Who publishes and who releases each message. */
static void index_uses(clocks *c) {
  int32_t stages = c->plan->stage_count;
  for (int32_t i = 0; i < c->plan->edge_count * c->micros; i++) c->maker[i] = -1;
  for (int32_t i = 0; i < c->plan->edge_count * c->micros * stages; i++) c->last[i] = -1;
  for (int32_t d = 0; d < c->devices; d++)
    for (int32_t t = c->plan->first[d]; t < c->plan->first[d + 1]; t++) {
      const gp_task *task = &c->plan->tasks[t];
      c->device[t] = d;
      for (int32_t u = 0; u < task->use_count; u++) {
        int32_t cell = task->uses[u].edge * c->micros + task->micro;
        if (task->uses[u].publish) c->maker[cell] = t;
        if (task->uses[u].release) c->last[cell * stages + task->stage] = t;
      }
    }
}

/* A task knows what its predecessor on the device knew, and what came with its messages. */
static void run_clocks(clocks *c) {
  for (int32_t i = 0; i < c->task_count; i++) {
    int32_t t = c->sorted[i];
    const gp_task *task = &c->plan->tasks[t];
    if (t > c->plan->first[c->device[t]]) after(c, t, t - 1);
    for (int32_t u = 0; u < task->use_count; u++)
      if (task->uses[u].wait) after(c, t, c->maker[task->uses[u].edge * c->micros + task->micro]);
  }
}

/* With this many slots, is the earlier user of each slot known to be done with it? The i-th micro-batch
 * of an edge takes slot i mod K, the (i div K)-th time. */
static bool enough(const clocks *c, int32_t edge, int32_t slots) {
  int32_t stages = c->plan->stage_count;
  for (int64_t turn = slots;; turn++) {
    int64_t micro = gp_plan_micro_at(c->plan, edge, turn);
    int64_t before = gp_plan_micro_at(c->plan, edge, turn - slots);
    if (micro >= c->micros) return true;
    for (int32_t s = 0; s < stages; s++) {
      int32_t last = c->last[(edge * c->micros + before) * stages + s];
      int32_t maker = c->maker[edge * c->micros + micro];
      if (last >= 0 && maker >= 0 && !known_over(c, last, maker)) return false;
    }
  }
}

/* ---- forward only -------------------------------------------------------------------------- */

/* Slots as the engine sees them: rounds published and last uses, per edge and slot. */
typedef struct trial {
  int32_t slots, *next, *published, *released;
} trial;

/* Where a task's use of an edge is, and its round there. */
static int32_t slot_at(const clocks *c, const trial *t, const gp_task *task, int32_t edge,
                       int32_t *round) {
  int64_t turn = gp_plan_turn(c->plan, edge, task->micro);
  *round = (int32_t)(turn / t->slots);
  return edge * t->slots + (int32_t)(turn % t->slots);
}

static bool can_run(const clocks *c, const trial *t, const gp_task *task) {
  for (int32_t u = 0; u < task->use_count; u++) {
    const gp_edge_use *use = &task->uses[u];
    int32_t round, at = slot_at(c, t, task, use->edge, &round);
    int32_t parties = 1 + gp_plan_edge(c->plan, use->edge)->to_count;
    if (use->wait && t->published[at] <= round) return false;
    if (use->acquire && t->released[at] < round * parties) return false;
  }
  return true;
}

static void note_run(const clocks *c, const trial *t, const gp_task *task) {
  for (int32_t u = 0; u < task->use_count; u++) {
    int32_t round, at = slot_at(c, t, task, task->uses[u].edge, &round);
    if (task->uses[u].publish) t->published[at] = round + 1;
    t->released[at] += task->uses[u].release;
  }
}

/* Makers wait for free slots here: does everything still run to its end? */
static bool flows(const clocks *c, const trial *t) {
  const gp_plan *plan = c->plan;
  int32_t done = 0, states = plan->edge_count * t->slots;
  for (int32_t i = 0; i < states; i++) t->published[i] = t->released[i] = 0;
  for (int32_t d = 0; d < c->devices; d++) t->next[d] = plan->first[d];
  for (bool moved = true; moved;) {
    moved = false;
    for (int32_t d = 0; d < c->devices; d++)
      while (t->next[d] < plan->first[d + 1] && can_run(c, t, &plan->tasks[t->next[d]])) {
        note_run(c, t, &plan->tasks[t->next[d]++]);
        moved = true;
        done++;
      }
  }
  return done == c->task_count;
}

/* The smallest number, from a few on, that lets everything run; one per micro-batch always does. */
static gp_status forward_slots(const clocks *c, int32_t *slots) {
  int32_t *notes, states = c->plan->edge_count * c->micros;
  GP_TRY(gp_alloc_array((size_t)(c->devices + 2 * states) + 1, sizeof *notes, (void **)&notes));
  trial t = {FORWARD_ONLY_SLOTS, notes, notes + c->devices, notes + c->devices + states};
  while (t.slots < c->micros && !flows(c, &t)) t.slots++;
  *slots = t.slots < c->micros ? t.slots : c->micros;
  gp_free(notes);
  return GP_OK;
}

/* The smallest number that is enough: memory of an edge is slots times bytes. */
static gp_status size_all(clocks *c) {
  gp_plan *plan = c->plan;
  bool forward_only = !gp_plan_trains(plan->kind);
  int32_t forward = 1;
  GP_TRY(sort_tasks(c));
  index_uses(c);
  run_clocks(c);
  if (forward_only) GP_TRY(forward_slots(c, &forward));
  for (int32_t e = 0; e < plan->edge_count; e++) {
    int32_t n = forward;
    while (!forward_only && n < c->micros && !enough(c, e, n)) n++;
    plan->channels[e].slots = n;
    plan->channels[e].parties = 1 + gp_plan_edge(plan, e)->to_count;
  }
  return GP_OK;
}

gp_status gp_plan_size_channels(gp_plan *plan) {
  clocks c = {.plan = plan,
              .task_count = plan->first[plan->device_count],
              .devices = plan->device_count,
              .micros = plan->micro_count};
  size_t tasks = (size_t)c.task_count, cells = (size_t)(plan->edge_count * plan->micro_count);
  size_t ints = tasks * (size_t)c.devices + 2 * tasks + cells * (1 + (size_t)plan->stage_count);
  int32_t *memory;
  GP_TRY(gp_alloc_array(ints + 1, sizeof *memory, (void **)&memory));
  c.clock = memory;
  c.device = c.clock + tasks * (size_t)c.devices;
  c.sorted = c.device + tasks;
  c.maker = c.sorted + tasks;
  c.last = c.maker + cells;
  gp_status status = size_all(&c);
  gp_free(memory);
  return status;
}
