/* plan/memory/work.c - see work.h.
 *
 * A device runs one task after the other. So time is counted in tasks, and memory that no task
 * needs any more is free for the next. Two layouts are tried: slots of one size with the largest
 * temporary area behind them, and one in which each thing has a place of its own. Neither can take
 * less than what is alive at the worst moment. */
#include "plan/memory/work.h"

#include <string.h>

#include "base/memory.h"
#include "plan/arrange/arrange.h"
#include "plan/offload.h"

enum { ALIGNMENT = GP_PLAN_ALIGNMENT, LINE = GP_SHARED_ALIGNMENT };

typedef struct worker {
  gp_plan *plan;
  int32_t device, begin, count; /* tasks */
  gp_lifespan *lives;           /* of slots, then of temporaries */
  int32_t slot_count, life_count;
  int32_t *row_of;  /* per stage: its number among those of the device */
  int32_t *life_of; /* [row][kind][micro]: number + 1 of what lies in the slot */
  size_t slots_end; /* of slots of one size */
} worker;

static gp_task *task_at(const worker *w, int32_t t) { return &w->plan->tasks[w->begin + t]; }

size_t gp_stage_slot_bytes(const gp_stage_programs *programs, int kind) {
  const int part = gp_slot_part(kind);
  switch (kind - part) {
  case GP_SLOT_DROPPED: return programs->saved_bytes[GP_BY_MODE][part];
  case GP_SLOT_AWAY:
  case GP_SLOT_FETCHED: return programs->away_bytes[part];
  case GP_SLOT_KEPT: return programs->saved_bytes[GP_KEEPS_ALL][part];
  case GP_SLOT_RECOMPUTED: return programs->recomputed_bytes[part];
  default: return programs->carried_bytes;
  }
}

size_t gp_plan_slot_bytes(const gp_plan *plan, const gp_task *task, int kind) {
  return gp_stage_slot_bytes(&plan->shapes[task->shape].programs[task->stage], kind);
}

size_t gp_plan_temp_bytes(const gp_plan *plan, const gp_task *task, int32_t device) {
  const gp_program *program = task->program;
  if (!program) return 0;
  if (!program->shared_bytes || !gp_plan_on_host(plan, device)) return program->temp_bytes;
  const size_t line = GP_SHARED_ALIGNMENT;
  return (program->temp_bytes + line - 1) / line * line + program->shared_bytes;
}

/* ---- slots of one size ----------------------------------------------------------------------- */

/* Give every stage's slots a place, kind after kind, and count their bytes. */
static gp_status lay_slots(worker *w) {
  gp_plan *plan = w->plan;
  for (int32_t h = 0; h < plan->stage_count * plan->copy_count; h++) {
    gp_slots *slots = &plan->slots[h];
    for (int kind = 0; plan->placement[h] == w->device && kind < GP_SLOT_KINDS; kind++) {
      size_t bytes;
      slots->first[kind] = w->slots_end;
      GP_TRY(gp_size_mul((size_t)slots->count[kind], slots->bytes[kind], &bytes));
      GP_TRY(gp_size_add(w->slots_end, bytes, &w->slots_end));
    }
  }
  return gp_size_align(w->slots_end, ALIGNMENT, &w->slots_end);
}

/* Place tasks as the slots say, with their temporaries behind all slots. */
static void take_slots(const worker *w) {
  for (int32_t t = 0; t < w->count; t++) {
    gp_task *task = task_at(w, t);
    const gp_slots *slots = &w->plan->slots[gp_plan_holder(w->plan, task->stage, task->copy)];
    for (int slot = 0; slot < GP_SLOT_BASES; slot++) {
      const int kind = gp_task_slot_kind(task, slot);
      if (task->slot[slot] >= 0)
        task->place[slot] = slots->first[kind] + (size_t)task->slot[slot] * slots->bytes[kind];
    }
    task->temp = w->slots_end;
  }
}

/* ---- places of their own --------------------------------------------------------------------- */

static int32_t *life_at(const worker *w, const gp_task *task, int kind) {
  const size_t row = (size_t)w->row_of[task->stage] * GP_SLOT_KINDS + (size_t)kind;
  return &w->life_of[row * (size_t)w->plan->micro_count + (size_t)task->micro];
}

/* Note that task t touches what a task's micro-batch has in a slot. */
static gp_status note_slot(worker *w, int32_t t, const gp_task *task, int kind) {
  int32_t *number = life_at(w, task, kind);
  if (!*number) {
    gp_lifespan *life = &w->lives[w->life_count];
    *number = ++w->life_count;
    life->first = t;
    GP_TRY(gp_size_align(gp_plan_slot_bytes(w->plan, task, kind), LINE, &life->bytes));
  }
  w->lives[*number - 1].last = t;
  return GP_OK;
}

/* List the kinds of slots that a move begins or ends to use at its task; returns how many. */
static int kinds_of_move(const gp_plan *plan, const gp_move *move, int kinds[GP_PARTS]) {
  const int first = move->kind == GP_MOVE_FETCH ? GP_SLOT_FETCHED : GP_SLOT_AWAY;
  int count = 0;
  if (move->kind != GP_MOVE_FETCH && move->kind != GP_MOVE_LEAVE) return 0;
  for (int part = 0; part < GP_PARTS; part++)
    if (plan->offloads[move->offload].bytes[part]) kinds[count++] = first + part;
  return count;
}

/* What lies in a slot lives from the first task that touches it to the last. */
static gp_status note_slots(worker *w, int32_t t) {
  const gp_task *task = task_at(w, t);
  int kinds[GP_PARTS];
  for (int slot = 0; slot < GP_SLOT_BASES; slot++)
    if (task->slot[slot] >= 0) GP_TRY(note_slot(w, t, task, gp_task_slot_kind(task, slot)));
  for (int32_t i = 0; i < task->move_count; i++)
    for (int k = kinds_of_move(w->plan, &task->moves[i], kinds); k-- > 0;)
      GP_TRY(note_slot(w, t, gp_move_owner(w->plan, &task->moves[i]), kinds[k]));
  return GP_OK;
}

/* List what is alive when. Largest: of all temporaries. */
static gp_status list_lives(worker *w, size_t *largest) {
  for (int32_t t = 0; t < w->count; t++) GP_TRY(note_slots(w, t));
  w->slot_count = w->life_count;
  for (int32_t t = 0; t < w->count; t++) {
    gp_lifespan *life = &w->lives[w->life_count++];
    life->first = life->last = t;
    const size_t bytes = gp_plan_temp_bytes(w->plan, task_at(w, t), w->device);
    GP_TRY(gp_size_align(bytes, LINE, &life->bytes));
    if (life->bytes > *largest) *largest = life->bytes;
  }
  return GP_OK;
}

static void take_places(const worker *w) {
  for (int32_t t = 0; t < w->count; t++) {
    gp_task *task = task_at(w, t);
    for (int slot = 0; slot < GP_SLOT_BASES; slot++)
      if (task->slot[slot] >= 0)
        task->place[slot] = w->lives[*life_at(w, task, gp_task_slot_kind(task, slot)) - 1].offset;
    task->temp = w->lives[w->slot_count + t].offset;
  }
}

/* ---- the worst moment ------------------------------------------------------------------------ */

/* Add what a slot takes if its life begins at task t, or subtract it if it ends there. */
static void add_slot(const worker *w, int32_t t, const gp_task *task, int kind, size_t *alive,
                     bool born) {
  const gp_lifespan *life = &w->lives[*life_at(w, task, kind) - 1];
  if (born && life->first == t) alive[kind] += life->bytes;
  if (!born && life->last == t) alive[kind] -= life->bytes;
}

/* Add what slots and temporaries take, task by task, to the sums of their kinds. */
static void add_alive(const worker *w, int32_t t, size_t alive[GP_SLOT_KINDS + 1], bool born) {
  const gp_task *task = task_at(w, t);
  int kinds[GP_PARTS];
  for (int slot = 0; slot < GP_SLOT_BASES; slot++)
    if (task->slot[slot] >= 0) add_slot(w, t, task, gp_task_slot_kind(task, slot), alive, born);
  for (int32_t i = 0; i < task->move_count; i++)
    for (int k = kinds_of_move(w->plan, &task->moves[i], kinds); k-- > 0;)
      add_slot(w, t, gp_move_owner(w->plan, &task->moves[i]), kinds[k], alive, born);
  alive[GP_SLOT_KINDS] = born ? w->lives[w->slot_count + t].bytes : 0;
}

/* Walk through the tasks and call visit with what is alive during each. */
typedef void (*at_task)(void *context, int32_t t, const size_t alive[GP_SLOT_KINDS + 1]);
static void walk(const worker *w, at_task visit, void *context) {
  size_t alive[GP_SLOT_KINDS + 1] = {0};
  for (int32_t t = 0; t < w->count; t++) {
    add_alive(w, t, alive, true);
    visit(context, t, alive);
    add_alive(w, t, alive, false);
  }
}

static size_t sum_of(const size_t alive[GP_SLOT_KINDS + 1]) {
  size_t sum = 0;
  for (int kind = 0; kind <= GP_SLOT_KINDS; kind++) sum += alive[kind];
  return sum;
}

size_t gp_plan_least_work(const gp_plan *plan, int32_t device) {
  return sum_of(plan->devices[device].alive);
}

static void keep_worst(void *context, int32_t t, const size_t alive[GP_SLOT_KINDS + 1]) {
  gp_plan_device *own = context;
  (void)t;
  if (sum_of(alive) > sum_of(own->alive)) memcpy(own->alive, alive, sizeof own->alive);
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Choose the layout. Slots of one size are as good as anything where the most of them are alive
 * together with the largest temporaries, which is so in most schedules; then nothing is searched.
 * Devices share the effort of a search, so that large plans do not take long. */
static gp_status choose(worker *w) {
  gp_plan_device *own = &w->plan->devices[w->device];
  const int32_t devices = w->plan->share > 0 ? 1 : w->plan->device_count;
  const gp_arrange_effort effort = {gp_arrange_thorough.looks / devices,
                                    gp_arrange_thorough.more / devices};
  size_t largest = 0, arranged;
  GP_TRY(list_lives(w, &largest));
  GP_TRY(gp_size_add(w->slots_end, largest, &own->work.bytes));
  take_slots(w);
  walk(w, keep_worst, own);
  const size_t least = sum_of(own->alive);
  if (w->plan->batch || own->work.bytes <= least + least / 256) return GP_OK;
  GP_TRY(gp_arrange(w->lives, w->life_count, &effort, &arranged));
  if (arranged >= own->work.bytes) return GP_OK;
  own->work.bytes = arranged;
  take_places(w);
  return GP_OK;
}

/* Number the stages of the device; returns how many they are. */
static size_t number_stages(const worker *w) {
  const gp_plan *plan = w->plan;
  int32_t count = 0;
  for (int32_t h = 0; h < plan->stage_count * plan->copy_count; h++)
    if (plan->placement[h] == w->device) w->row_of[h / plan->copy_count] = count++;
  return (size_t)count;
}

static gp_status make_room(worker *w) {
  const size_t tasks = (size_t)w->count, stages = (size_t)w->plan->stage_count;
  size_t cells;
  GP_TRY(gp_alloc_array((GP_SLOT_BASES + GP_PARTS + 1) * tasks + 1, sizeof *w->lives,
                        (void **)&w->lives));
  GP_TRY(gp_alloc_array(stages, sizeof *w->row_of, (void **)&w->row_of));
  GP_TRY(gp_size_mul(number_stages(w) * GP_SLOT_KINDS, (size_t)w->plan->micro_count, &cells));
  return gp_alloc_array(cells + 1, sizeof *w->life_of, (void **)&w->life_of);
}

static worker begin(const gp_plan *plan, int32_t device) {
  return (worker){.plan = (gp_plan *)plan,
                  .device = device,
                  .begin = plan->first[device],
                  .count = plan->first[device + 1] - plan->first[device]};
}

static void end(worker *w) {
  gp_free(w->lives);
  gp_free(w->row_of);
  gp_free(w->life_of);
}

gp_status gp_plan_add_work(gp_plan *plan, int32_t device) {
  worker w = begin(plan, device);
  gp_status status = make_room(&w);
  if (!status) status = lay_slots(&w);
  if (!status) status = choose(&w);
  end(&w);
  return status;
}

static void note_moment(void *context, int32_t t, const size_t alive[GP_SLOT_KINDS + 1]) {
  size_t(*moments)[GP_SLOT_KINDS + 1] = context;
  memcpy(moments[t], alive, sizeof moments[t]);
}

gp_status gp_plan_moments(const gp_plan *plan, int device, size_t (*moments)[GP_SLOT_KINDS + 1]) {
  worker w = begin(plan, device);
  size_t largest = 0;
  gp_status status = make_room(&w);
  if (!status) status = list_lives(&w, &largest);
  if (!status) walk(&w, note_moment, moments);
  end(&w);
  return status;
}
