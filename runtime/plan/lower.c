/* plan/lower.c - a schedule names compute only; here everything else is added.
 *
 * Actions become tasks with their programs; recomputation goes right before the backward pass that needs
 * it, ahead of the wait for the incoming gradient; kept values get slots; and for every edge that a
 * program touches it is settled who acquires a slot, who waits, and whose use is the last.
 */
#include "base/memory.h"
#include "plan/plan.h"

typedef struct lowerer {
  const gp_plan_env *env;
  const gp_schedule *schedule;
  gp_plan *plan;
} lowerer;

enum { DROPPED, KEPT, RECOMPUTED };

/* ---- tasks --------------------------------------------------------------------------------- */

static bool trains(const gp_plan *plan) {
  return plan->kind == GP_PLAN_STEP || plan->kind == GP_PLAN_SPLIT;
}

/* Does the backward pass of action a directly follow it on its stage? */
static bool backward_follows(const gp_schedule *s, int32_t a, int32_t end) {
  for (int32_t b = a + 1; b < end; b++)
    if (s->actions[b].stage == s->actions[a].stage)
      return s->actions[b].op != GP_ACT_F && s->actions[b].micro == s->actions[a].micro;
  return false;
}

static bool keeps(const lowerer *l, int32_t a, int32_t end) {
  if (!trains(l->plan)) return false;
  switch (l->env->checkpoint) {
  case GP_CHECKPOINT_NEVER: return true;
  case GP_CHECKPOINT_ALWAYS: return false;
  case GP_CHECKPOINT_EXCEPT_LAST: break;
  }
  return backward_follows(l->schedule, a, end);
}

static gp_stage_programs *programs_of(const lowerer *l, const gp_task *task) {
  return &l->plan->shapes[task->shape].programs[task->stage];
}

static gp_task *append(const lowerer *l, int32_t *at, gp_act op, const gp_action *action) {
  gp_task *task = &l->plan->tasks[(*at)++];
  *task = (gp_task){.op = op,
                    .stage = action->stage,
                    .micro = action->micro,
                    .shape = gp_plan_shape_of(l->plan, action->micro),
                    .saved_slot = -1,
                    .recomputed_slot = -1};
  return task;
}

static void append_forward(const lowerer *l, int32_t *at, int32_t a, int32_t end) {
  gp_task *task = append(l, at, GP_ACT_F, &l->schedule->actions[a]);
  task->kept = keeps(l, a, end);
  task->program = programs_of(l, task)->forward[task->kept];
}

/* kept[]: per (stage, micro-batch), as its forward task decided. */
static void append_backward(const lowerer *l, int32_t *at, const gp_action *action, bool kept) {
  if (!kept) {
    gp_task *again = append(l, at, GP_ACT_R, action);
    again->program = programs_of(l, again)->recompute;
  }
  gp_task *task = append(l, at, GP_ACT_B, action);
  task->kept = kept;
  task->program = programs_of(l, task)->backward[kept];
}

/* What the loss is divided by is counted before anything else, while the last stage waits anyway. */
static void append_counts(const lowerer *l, int32_t *at, int32_t device) {
  int32_t last = l->plan->stage_count - 1;
  if (l->plan->placement[last] != device) return;
  for (int32_t i = 0; i < l->plan->micro_count; i++) {
    gp_action action = {.stage = last, .micro = i};
    gp_task *task = append(l, at, GP_ACT_C, &action);
    task->program = programs_of(l, task)->count;
    task->order = i;
    if (!task->program) --*at;
  }
}

static bool kept_before(const gp_plan *plan, int32_t first, int32_t end, const gp_action *action) {
  for (int32_t t = end - 1; t >= first; t--) {
    const gp_task *task = &plan->tasks[t];
    if (task->op == GP_ACT_F && task->stage == action->stage && task->micro == action->micro)
      return task->kept;
  }
  return false;
}

static void lower_device(const lowerer *l, int32_t device, int32_t *at) {
  const gp_schedule *s = l->schedule;
  int32_t first = *at;
  append_counts(l, at, device);
  l->plan->half[device] = -1;
  for (int32_t a = s->first[device]; a < s->first[device + 1]; a++) {
    const gp_action *action = &s->actions[a];
    int32_t begin = *at;
    if (action->op != GP_ACT_F && l->plan->half[device] < 0) l->plan->half[device] = *at;
    if (action->op == GP_ACT_F)
      append_forward(l, at, a, s->first[device + 1]);
    else
      append_backward(l, at, action, kept_before(l->plan, first, *at, action));
    for (int32_t t = begin; t < *at; t++)
      l->plan->tasks[t].order = l->plan->micro_count + 2 * s->order[a] + (t - begin);
  }
  if (l->plan->half[device] < 0) l->plan->half[device] = *at;
}

static gp_status make_tasks(const lowerer *l) {
  gp_plan *plan = l->plan;
  size_t devices = (size_t)plan->device_count;
  size_t room = 2 * (size_t)l->schedule->first[plan->device_count] + (size_t)plan->micro_count + 1;
  GP_TRY(gp_alloc_array(room, sizeof(gp_task), (void **)&plan->tasks));
  GP_TRY(gp_alloc_array(devices + 1, sizeof(int32_t), (void **)&plan->first));
  GP_TRY(gp_alloc_array(devices + 1, sizeof(int32_t), (void **)&plan->half));
  int32_t at = 0;
  for (int32_t d = 0; d < plan->device_count; d++) {
    plan->first[d] = at;
    lower_device(l, d, &at);
  }
  plan->first[plan->device_count] = at;
  return GP_OK;
}

/* ---- slots for kept values ----------------------------------------------------------------- */

typedef struct slot_map {
  gp_slots *slots;
  int32_t *taken[3]; /* per slot: micro-batch + 1, or 0 */
  int32_t live;
} slot_map;

static int32_t take(slot_map *m, int kind, int32_t micro) {
  int32_t slot = 0;
  while (m->taken[kind][slot]) slot++;
  m->taken[kind][slot] = micro + 1;
  if (slot >= m->slots->count[kind]) m->slots->count[kind] = slot + 1;
  return slot;
}

static int32_t find(const slot_map *m, int kind, int32_t micro, int32_t room) {
  for (int32_t slot = 0; slot < room; slot++)
    if (m->taken[kind][slot] == micro + 1) return slot;
  return -1;
}

/* Take slots at F and R, give them back after B. */
static void visit(slot_map *m, gp_task *task, int32_t room) {
  int kind = task->kept ? KEPT : DROPPED;
  if (task->op == GP_ACT_F) {
    task->saved_slot = take(m, kind, task->micro);
    if (++m->live > m->slots->peak_live) m->slots->peak_live = m->live;
    return;
  }
  task->saved_slot = find(m, kind, task->micro, room);
  if (task->op == GP_ACT_R) task->recomputed_slot = take(m, RECOMPUTED, task->micro);
  if (task->op != GP_ACT_B) return;
  if (!task->kept) {
    task->recomputed_slot = find(m, RECOMPUTED, task->micro, room);
    m->taken[RECOMPUTED][task->recomputed_slot] = 0;
  }
  m->taken[kind][task->saved_slot] = 0;
  m->live--;
}

static gp_status assign_slots(gp_plan *plan, int32_t stage) {
  slot_map m = {.slots = &plan->slots[stage]};
  int32_t device = plan->placement[stage], room = plan->micro_count + 1;
  int32_t *all;
  GP_TRY(gp_alloc_array(3 * (size_t)room, sizeof *all, (void **)&all));
  for (int k = 0; k < 3; k++) m.taken[k] = all + k * room;
  for (int32_t t = plan->first[device]; t < plan->first[device + 1]; t++)
    if (plan->tasks[t].stage == stage && plan->tasks[t].op != GP_ACT_C)
      visit(&m, &plan->tasks[t], room);
  gp_free(all);
  return GP_OK;
}

/* ---- uses of edges ------------------------------------------------------------------------- */

static void touch(const gp_place *place, bool *touched) {
  if (place->base >= GP_BASE_EDGE) touched[place->base - GP_BASE_EDGE] = true;
}

/* List the edges that a task's program touches. */
static gp_status find_uses(gp_plan *plan, gp_task *task, bool *touched) {
  int32_t count = 0;
  for (int32_t e = 0; e < plan->edge_count; e++) touched[e] = false;
  for (int32_t n = 0; task->program && n < task->program->instr_count; n++) {
    const gp_instr *instr = &task->program->instrs[n];
    for (int i = 0; i < instr->call.n_in; i++) touch(&instr->in[i], touched);
    for (int k = 0; k < instr->call.n_out; k++) touch(&instr->out[k], touched);
  }
  for (int32_t e = 0; e < plan->edge_count; e++) count += touched[e];
  GP_TRY(gp_alloc_array((size_t)count + 1, sizeof(gp_use), (void **)&task->uses));
  for (int32_t e = 0; e < plan->edge_count; e++)
    if (touched[e]) task->uses[task->use_count++] = (gp_use){.edge = e};
  return GP_OK;
}

/* First use by a stage: the maker acquires and publishes, readers wait. Last use: release. */
static void mark_uses(gp_plan *plan, int32_t stage, bool *seen) {
  int32_t device = plan->placement[stage], begin = plan->first[device],
          end = plan->first[device + 1];
  int32_t cells = plan->edge_count * plan->micro_count;
  for (int pass = 0; pass < 2; pass++) {
    for (int32_t i = 0; i < cells; i++) seen[i] = false;
    for (int32_t k = 0; k < end - begin; k++) {
      gp_task *task = &plan->tasks[pass ? end - 1 - k : begin + k];
      for (int32_t u = 0; task->stage == stage && u < task->use_count; u++) {
        gp_use *use = &task->uses[u];
        bool *cell = &seen[use->edge * plan->micro_count + task->micro], first = !*cell;
        bool made_here = plan->shapes[0].stages->edges[use->edge].from == stage;
        *cell = true;
        if (!first) continue;
        if (pass)
          use->release = true;
        else
          use->wait = !made_here, use->acquire = use->publish = made_here;
      }
    }
  }
}

static gp_status find_all_uses(gp_plan *plan) {
  bool *cells;
  size_t room = (size_t)plan->edge_count * (size_t)plan->micro_count;
  GP_TRY(gp_alloc_array(room + (size_t)plan->edge_count + 1, sizeof *cells, (void **)&cells));
  gp_status status = GP_OK;
  for (int32_t t = 0; !status && t < plan->first[plan->device_count]; t++)
    status = find_uses(plan, &plan->tasks[t], cells);
  for (int32_t stage = 0; !status && stage < plan->stage_count; stage++)
    mark_uses(plan, stage, cells);
  gp_free(cells);
  return status;
}

gp_status gp_plan_lower(const gp_plan_env *env, const gp_schedule *schedule, gp_plan *plan) {
  lowerer l = {.env = env, .schedule = schedule, .plan = plan};
  GP_TRY(make_tasks(&l));
  for (int32_t stage = 0; trains(plan) && stage < plan->stage_count; stage++)
    GP_TRY(assign_slots(plan, stage));
  return find_all_uses(plan);
}
