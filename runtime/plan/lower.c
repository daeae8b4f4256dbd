/* plan/lower.c - a schedule names compute only; here everything else is added.
 *
 * Actions become tasks with their programs; recomputation goes right before the backward pass that needs
 * it, ahead of the wait for the incoming gradient; weight gradients are put into ascending order of
 * micro-batches, because they are added in it; kept values get slots; and for every edge that a program
 * touches it is settled who acquires a slot, who waits, and whose use is the last.
 */
#include "base/memory.h"
#include "plan/plan.h"

typedef struct lowerer {
  const gp_plan_env *env;
  const gp_schedule *schedule;
  gp_plan *plan;
  bool *kept;       /* per (stage, micro-batch), as its F decided */
  bool *due;        /* per (stage, micro-batch): its W may run */
  bool *apart;      /* per stage: I and W are tasks of their own */
  int32_t *next;    /* per stage: micro-batch of the next W */
  int32_t *at;      /* per action: its first task */
  int32_t count;    /* tasks so far */
  int32_t prepared; /* P tasks so far: they come first in the order, then C */
} lowerer;

/* ---- tasks --------------------------------------------------------------------------------- */

/* Does the backward pass of action a directly follow it on its stage? */
static bool backward_follows(const gp_schedule *s, int32_t a, int32_t end) {
  for (int32_t b = a + 1; b < end; b++)
    if (s->actions[b].stage == s->actions[a].stage)
      return s->actions[b].op != GP_ACT_F && s->actions[b].micro == s->actions[a].micro;
  return false;
}

/* Kept, or dropped and recomputed: decided at F. */
static bool keeps(const lowerer *l, int32_t a, int32_t end) {
  if (!gp_plan_trains(l->plan->kind)) return false;
  switch (l->env->checkpoint) {
  case GP_CHECKPOINT_NEVER: return true;
  case GP_CHECKPOINT_ALWAYS: return false;
  case GP_CHECKPOINT_EXCEPT_LAST: break;
  }
  return backward_follows(l->schedule, a, end);
}

/* I and W of this stage must be programs of their own: the schedule says so, or it runs backwards in an
 * order in which weight gradients may not be added. */
bool gp_schedule_splits(const gp_schedule *s, int32_t stage) {
  int32_t next = 0;
  for (int32_t a = 0; a < s->first[s->device_count]; a++) {
    const gp_action *x = &s->actions[a];
    if (x->stage != stage || x->op == GP_ACT_F) continue;
    if (x->op != GP_ACT_B || x->micro != next++) return true;
  }
  return false;
}

static gp_stage_programs *programs_of(const lowerer *l, const gp_task *task) {
  return &l->plan->shapes[task->shape].programs[task->stage];
}

static size_t cell(const lowerer *l, const gp_action *action) {
  return (size_t)action->stage * (size_t)l->plan->micro_count + (size_t)action->micro;
}

static gp_task *append(lowerer *l, gp_act op, const gp_action *action) {
  gp_task *task = &l->plan->tasks[l->count++];
  *task = (gp_task){.op = op,
                    .stage = action->stage,
                    .micro = action->micro,
                    .shape = gp_plan_shape_of(l->plan, action->micro),
                    .kept = l->kept[cell(l, action)]};
  for (int kind = 0; kind < GP_SLOT_KINDS; kind++) task->slot[kind] = -1;
  return task;
}

/* F. */
static void append_forward(lowerer *l, int32_t a, int32_t end) {
  const gp_action *action = &l->schedule->actions[a];
  l->kept[cell(l, action)] = keeps(l, a, end);
  gp_task *task = append(l, GP_ACT_F, action);
  task->program = programs_of(l, task)->forward[task->kept];
}

/* Ws run ascending: this one, and those that waited for it, or none yet. */
static void append_weights(lowerer *l, const gp_action *action) {
  gp_action next = {.op = GP_ACT_W, .stage = action->stage, .micro = l->next[action->stage]};
  l->due[cell(l, action)] = true;
  for (; next.micro < l->plan->micro_count && l->due[cell(l, &next)]; next.micro++) {
    gp_task *task = append(l, GP_ACT_W, &next);
    task->program = programs_of(l, task)->weight[task->kept];
  }
  l->next[action->stage] = next.micro;
}

/* B, or I and the Ws that may run after it; before them R where nothing was kept. */
static void append_backward(lowerer *l, const gp_action *action) {
  bool apart = l->apart[action->stage], kept = l->kept[cell(l, action)];
  if (action->op != GP_ACT_W) {
    gp_task *again = kept ? NULL : append(l, GP_ACT_R, action);
    if (again) again->program = programs_of(l, again)->recompute;
    gp_task *task = append(l, apart ? GP_ACT_I : GP_ACT_B, action);
    task->program = (apart ? programs_of(l, task)->input : programs_of(l, task)->backward)[kept];
  }
  if (apart && action->op != GP_ACT_I) append_weights(l, action);
}

/* What the loss is divided by is counted before anything else, while the last stage waits anyway. */
static void append_counts(lowerer *l, int32_t device) {
  int32_t last = l->plan->stage_count - 1;
  if (l->plan->placement[last] != device) return;
  for (int32_t i = 0; i < l->plan->micro_count; i++) {
    gp_action action = {.stage = last, .micro = i};
    gp_task *task = append(l, GP_ACT_C, &action);
    task->program = programs_of(l, task)->count;
    task->order = 2 * l->plan->stage_count + i;
    if (!task->program) l->count--;
  }
}

/* What depends on parameters only comes first: once for each number of rows. */
static void append_prepares(lowerer *l, int32_t device) {
  for (int32_t stage = 0; stage < l->plan->stage_count; stage++)
    for (int32_t k = 0; k < 2; k++) {
      const gp_stage_programs *programs = l->plan->shapes[k].programs;
      if (l->plan->placement[stage] != device || !programs || !programs[stage].prepare) continue;
      gp_action action = {.stage = stage, .micro = k ? l->plan->shapes[0].micros : 0};
      gp_task *task = append(l, GP_ACT_P, &action);
      task->program = programs[stage].prepare;
      task->order = l->prepared++;
    }
}

/* P and C come first: while the first stage fills the pipeline, the last has nothing else to do. */
static void lower_device(lowerer *l, int32_t device) {
  const gp_schedule *s = l->schedule;
  append_prepares(l, device);
  append_counts(l, device);
  l->plan->half[device] = -1;
  for (int32_t a = s->first[device]; a < s->first[device + 1]; a++) {
    const gp_action *action = &s->actions[a];
    l->at[a] = l->count;
    if (action->op != GP_ACT_F && l->plan->half[device] < 0) l->plan->half[device] = l->count;
    if (action->op == GP_ACT_F)
      append_forward(l, a, s->first[device + 1]);
    else
      append_backward(l, action);
  }
  if (l->plan->half[device] < 0) l->plan->half[device] = l->count;
}

/* Number the tasks in the topological order of their actions, after the counts. */
static void number_tasks(const lowerer *l, int32_t *action_at) {
  const gp_schedule *s = l->schedule;
  int32_t number = 2 * l->plan->stage_count + l->plan->micro_count;
  for (int32_t d = 0; d < s->device_count; d++)
    for (int32_t a = s->first[d]; a < s->first[d + 1]; a++) action_at[s->order[a]] = a;
  for (int32_t k = 0; k < s->first[s->device_count]; k++) {
    int32_t a = action_at[k], device = s->placement[s->actions[a].stage];
    bool last = a + 1 == s->first[device + 1];
    int32_t end = last ? l->plan->first[device + 1] : l->at[a + 1];
    for (int32_t t = l->at[a]; t < end; t++) l->plan->tasks[t].order = number++;
  }
}

/* An action becomes two tasks at most, but for I and W apart, where R, I and W come of it. */
static gp_status make_tasks(lowerer *l) {
  gp_plan *plan = l->plan;
  size_t devices = (size_t)plan->device_count, actions = (size_t)l->schedule->first[devices];
  GP_TRY(gp_alloc_array(3 * actions + (size_t)(plan->micro_count + 2 * plan->stage_count) + 1,
                        sizeof(gp_task), (void **)&plan->tasks));
  GP_TRY(gp_alloc_array(devices + 1, sizeof(int32_t), (void **)&plan->first));
  GP_TRY(gp_alloc_array(devices + 1, sizeof(int32_t), (void **)&plan->half));
  for (int32_t d = 0; d < plan->device_count; d++) {
    lower_device(l, d);
    plan->first[d + 1] = l->count;
  }
  number_tasks(l, l->at + actions + 1);
  return GP_OK;
}

/* Notes of the lowering: ints first, then flags. */
static gp_status lower_tasks(lowerer *l) {
  size_t stages = (size_t)l->plan->stage_count, cells = stages * (size_t)l->plan->micro_count,
         actions = (size_t)l->schedule->first[l->plan->device_count] + 1;
  GP_TRY(gp_alloc_array(stages + 2 * actions, sizeof(int32_t), (void **)&l->next));
  l->at = l->next + stages;
  gp_status status = gp_alloc_array(2 * cells + stages, sizeof(bool), (void **)&l->kept);
  if (!status) {
    l->due = l->kept + cells;
    l->apart = l->due + cells;
    for (int32_t s = 0; s < l->plan->stage_count; s++)
      l->apart[s] = gp_schedule_splits(l->schedule, s);
    status = make_tasks(l);
  }
  gp_free(l->next);
  gp_free(l->kept);
  return status;
}

/* ---- slots for kept values ----------------------------------------------------------------- */

typedef struct slot_map {
  gp_slots *slots;
  int32_t *taken[GP_SLOT_KINDS]; /* per slot: micro-batch + 1, or 0 */
  int32_t live;
} slot_map;

/* The micro-batch's slot of this kind, a free one where it has none. */
static int32_t take(slot_map *m, int kind, int32_t micro) {
  int32_t slot = 0, free = -1;
  for (; slot < m->slots->count[kind]; slot++) {
    if (m->taken[kind][slot] == micro + 1) return slot;
    if (!m->taken[kind][slot] && free < 0) free = slot;
  }
  if (free < 0) free = m->slots->count[kind]++;
  m->taken[kind][free] = micro + 1;
  return free;
}

/* Slots are taken at F, R and I, and given back after B or W. */
static void visit(slot_map *m, gp_task *task) {
  bool last = task->op == GP_ACT_B || task->op == GP_ACT_W;
  bool apart = task->op == GP_ACT_I || task->op == GP_ACT_W;
  bool wanted[GP_SLOT_KINDS] = {[GP_SLOT_DROPPED] = !task->kept,
                                [GP_SLOT_KEPT] = task->kept,
                                [GP_SLOT_RECOMPUTED] = !task->kept && task->op != GP_ACT_F,
                                [GP_SLOT_CARRIED] = apart};
  m->live += task->op == GP_ACT_F;
  if (m->live > m->slots->peak_live) m->slots->peak_live = m->live;
  for (int kind = 0; kind < GP_SLOT_KINDS; kind++) {
    if (!wanted[kind]) continue;
    task->slot[kind] = take(m, kind, task->micro);
    if (last) m->taken[kind][task->slot[kind]] = 0;
  }
  m->live -= last;
}

/* In the order of the device, which is the order in which slots are taken and given back. */
static gp_status assign_slots(gp_plan *plan, int32_t stage) {
  slot_map m = {.slots = &plan->slots[stage]};
  int32_t device = plan->placement[stage], room = plan->micro_count + 1;
  int32_t *all;
  GP_TRY(gp_alloc_array(GP_SLOT_KINDS * (size_t)room, sizeof *all, (void **)&all));
  for (int k = 0; k < GP_SLOT_KINDS; k++) m.taken[k] = all + k * room;
  for (int32_t t = plan->first[device]; t < plan->first[device + 1]; t++)
    if (plan->tasks[t].stage == stage && plan->tasks[t].op < GP_ACT_C) visit(&m, &plan->tasks[t]);
  gp_free(all);
  return GP_OK;
}

/* ---- uses of edges ------------------------------------------------------------------------- */

/* Only edges need slots of channels. */
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
        bool made_here = gp_plan_edge(plan, use->edge)->from == stage;
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

/* Programs say what they touch; nothing is declared twice. */
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
  GP_TRY(lower_tasks(&l));
  for (int32_t stage = 0; gp_plan_trains(plan->kind) && stage < plan->stage_count; stage++)
    GP_TRY(assign_slots(plan, stage));
  return find_all_uses(plan);
}
