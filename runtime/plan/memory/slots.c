/* plan/memory/slots.c - slots for values of a stage that outlive an action: they are made at F, R
 * and I, and given back behind their last reader: B, I or W.
 *
 * The tasks of a device list what they keep as accesses (schedule/access); lifetimes and slots come
 * from there. A synchronous schedule gets the colouring of its list; in a stream, which never ends,
 * the i-th micro-batch of a replica takes slot i mod K.
 */
#include "base/memory.h"
#include "plan/memory/work.h"
#include "plan/offload.h"
#include "schedule/access/access.h"

/* What lies in the slots of each kind. The rest, which is held longest, counts as the activation of
 * its micro-batch. */
static gp_buffer_class class_of(int kind) {
  const int part = gp_slot_part(kind);
  if (part != GP_PART_REST) return GP_BUFFER_HEAD;
  switch (kind) {
  case GP_SLOT_DROPPED: return GP_BUFFER_INPUT;
  case GP_SLOT_KEPT: return GP_BUFFER_SAVED;
  case GP_SLOT_RECOMPUTED: return GP_BUFFER_RECOMPUTED;
  case GP_SLOT_CARRIED: return GP_BUFFER_CARRIED;
  default: return GP_BUFFER_AWAY;
  }
}

typedef struct slotter {
  gp_plan *plan;
  int32_t device;
  int32_t *buffer; /* per stage: its first buffer, kind after kind; -1: it is on another device */
  gp_access_list list;
  gp_lifetimes lifetimes;
  int32_t *slot;  /* per lifetime */
  int32_t *count; /* per buffer */
  int32_t *taken; /* [buffer][micro]: slot */
} slotter;

/* ---- accesses ------------------------------------------------------------------------------ */

/* Does the task come before the last reader of a part, or is it that? */
static bool comes_before_last(const gp_task *task, int part) {
  if (part == GP_PART_REST) return true;
  if (part == GP_PART_HEAD) return task->op != GP_ACT_W;
  return task->op == GP_ACT_F || task->op == GP_ACT_R;
}

/* Does the task use its slot of a base? */
static bool wants(const gp_plan *plan, const gp_task *task, int slot) {
  const int kind = gp_task_slot_kind(task, slot), part = gp_slot_part(kind);
  const bool apart = task->op == GP_ACT_I || task->op == GP_ACT_W;
  const bool any = gp_plan_slot_bytes(plan, task, kind) > 0;
  if (!comes_before_last(task, part) || (part != GP_PART_REST && !any)) return false;
  switch (kind - part) {
  case GP_SLOT_DROPPED:
  case GP_SLOT_KEPT: return true;
  case GP_SLOT_AWAY:
  case GP_SLOT_FETCHED: return !task->kept && any;
  case GP_SLOT_RECOMPUTED: return !task->kept && task->op != GP_ACT_F;
  default: return apart;
  }
}

/* Does the task make what lies in the slot? F makes what it keeps, R what is recomputed, I what W
 * needs of it. What comes back from the host is there when its backward pass begins. */
static bool makes(const gp_task *task, int kind) {
  switch (kind - gp_slot_part(kind)) {
  case GP_SLOT_FETCHED: return false;
  case GP_SLOT_RECOMPUTED: return task->op == GP_ACT_R;
  case GP_SLOT_CARRIED: return task->op == GP_ACT_I;
  default: return task->op == GP_ACT_F;
  }
}

static int32_t instance_of(const slotter *s, const gp_task *task) {
  return (int32_t)gp_plan_own_micro(s->plan, task->micro);
}

/* A copy to the host reads until it is over, a copy back writes from when it begins. */
static gp_status touch_moved(slotter *s, const gp_move *move) {
  const gp_task *own = gp_move_owner(s->plan, move);
  const bool fetches = move->kind == GP_MOVE_FETCH;
  const int32_t first = s->buffer[own->stage] + (fetches ? GP_SLOT_FETCHED : GP_SLOT_AWAY);
  if (!fetches && move->kind != GP_MOVE_LEAVE) return GP_OK;
  for (int part = 0; part < GP_PARTS; part++)
    if (s->plan->offloads[move->offload].bytes[part])
      GP_TRY(gp_access_list_add(&s->list, first + part, instance_of(s, own),
                                fetches ? GP_ACCESS_WRITE : GP_ACCESS_READ));
  return GP_OK;
}

static gp_status touch(slotter *s, const gp_task *task) {
  gp_access_list_begin(&s->list, false);
  for (int slot = 0; task->op <= GP_ACT_R && slot < GP_SLOT_BASES; slot++) {
    const int kind = gp_task_slot_kind(task, slot);
    if (wants(s->plan, task, slot))
      GP_TRY(gp_access_list_add(&s->list, s->buffer[task->stage] + kind, instance_of(s, task),
                                makes(task, kind) ? GP_ACCESS_WRITE : GP_ACCESS_READ));
  }
  for (int32_t i = 0; i < task->move_count; i++) GP_TRY(touch_moved(s, &task->moves[i]));
  return GP_OK;
}

/* Number the buffers of the device's stages, and describe them in buffers (optional). A device
 * holds one copy of each stage at most. */
static int32_t number_buffers(slotter *s, gp_buffer *buffers) {
  const gp_plan *plan = s->plan;
  int32_t count = 0;
  for (int32_t stage = 0; stage < plan->stage_count; stage++) {
    s->buffer[stage] = -1;
    for (int32_t copy = 0; copy < plan->copy_count; copy++)
      if (plan->placement[gp_plan_holder(plan, stage, copy)] == s->device) s->buffer[stage] = count;
    for (int kind = 0; s->buffer[stage] == count && kind < GP_SLOT_KINDS && buffers; kind++)
      buffers[count + kind] = (gp_buffer){.class = class_of(kind), .stage = stage};
    if (s->buffer[stage] == count) count += GP_SLOT_KINDS;
  }
  return count;
}

static gp_status list_accesses(slotter *s) {
  const gp_plan *plan = s->plan;
  const int32_t begin = plan->first[s->device], end = plan->first[s->device + 1];
  const int32_t count = number_buffers(s, NULL);
  gp_buffer *buffers;
  GP_TRY(gp_alloc_array((size_t)count + 1, sizeof *buffers, (void **)&buffers));
  number_buffers(s, buffers);
  GP_TRY(gp_access_list_new(end - begin, plan->micro_count, buffers, count, &s->list));
  for (int32_t t = begin; t < end; t++) GP_TRY(touch(s, &plan->tasks[t]));
  return GP_OK;
}

/* ---- slots --------------------------------------------------------------------------------- */

static int32_t *taken_by(const slotter *s, int32_t buffer, int32_t micro) {
  return &s->taken[(size_t)buffer * (size_t)s->plan->micro_count + (size_t)micro];
}

static void note_tasks(const slotter *s) {
  gp_plan *plan = s->plan;
  for (int32_t i = 0; i < s->lifetimes.count; i++) {
    const gp_lifetime *life = &s->lifetimes.list[i];
    *taken_by(s, life->buffer, life->instance) = s->slot[i];
  }
  for (int32_t t = plan->first[s->device]; t < plan->first[s->device + 1]; t++) {
    gp_task *task = &plan->tasks[t];
    for (int slot = 0; task->op <= GP_ACT_R && slot < GP_SLOT_BASES; slot++) {
      const int32_t buffer = s->buffer[task->stage] + gp_task_slot_kind(task, slot);
      if (wants(plan, task, slot)) task->slot[slot] = *taken_by(s, buffer, instance_of(s, task));
    }
  }
}

static gp_status note_counts(const slotter *s) {
  gp_plan *plan = s->plan;
  for (int32_t h = 0; h < plan->stage_count * plan->copy_count; h++) {
    if (plan->placement[h] != s->device) continue;
    for (int kind = 0; kind < GP_SLOT_KINDS; kind++) {
      const int32_t buffer = s->buffer[h / plan->copy_count] + kind;
      int32_t *count = &s->count[buffer];
      if (plan->batch) GP_TRY(gp_lifetimes_ring(&s->lifetimes, buffer, plan->micro_count, count));
      plan->slots[h].count[kind] = *count;
    }
  }
  return GP_OK;
}

static gp_status assign(slotter *s) {
  size_t lives = (size_t)s->lifetimes.count, buffers = (size_t)s->list.buffer_count, cells;
  GP_TRY(gp_size_mul(buffers, (size_t)s->plan->micro_count, &cells));
  GP_TRY(gp_alloc_array(lives + buffers + cells + 1, sizeof(int32_t), (void **)&s->slot));
  s->count = s->slot + lives;
  s->taken = s->count + buffers;
  GP_TRY(gp_lifetimes_colour(&s->list, &s->lifetimes, s->slot, s->count));
  note_tasks(s);
  return note_counts(s);
}

/* ---- what is alive ------------------------------------------------------------------------- */

typedef struct peak {
  const slotter *s;
  int32_t live, most;
} peak;

/* Count a micro-batch once: from F on it keeps all of its values, or its input. */
static int32_t activations_of(const peak *p, const gp_lifetime *life) {
  const gp_buffer_class class = p->s->list.buffers[life->buffer].class;
  return class == GP_BUFFER_INPUT || class == GP_BUFFER_SAVED;
}

static gp_status born(void *context, const gp_lifetime *life) {
  peak *p = context;
  p->live += activations_of(p, life);
  if (p->live > p->most) p->most = p->live;
  return GP_OK;
}

static void dead(void *context, const gp_lifetime *life) {
  peak *p = context;
  p->live -= activations_of(p, life);
}

/* ---- all of them --------------------------------------------------------------------------- */

static gp_status add_slots(slotter *s) {
  peak p = {.s = s};
  GP_TRY(list_accesses(s));
  GP_TRY(gp_lifetimes_find(&s->list, &s->lifetimes));
  GP_TRY(assign(s));
  GP_TRY(gp_lifetimes_walk(&s->lifetimes, &(gp_lifetime_watch){&p, born, dead}));
  s->plan->devices[s->device].peak_live = p.most;
  return GP_OK;
}

gp_status gp_plan_add_slots(gp_plan *plan) {
  int32_t *buffer;
  gp_status status = GP_OK;
  if (!gp_plan_trains(plan->kind)) return GP_OK;
  GP_TRY(gp_alloc_array((size_t)plan->stage_count, sizeof *buffer, (void **)&buffer));
  for (int32_t d = 0; !status && d < plan->device_count; d++) {
    slotter s = {.plan = plan, .device = d, .buffer = buffer};
    if (gp_plan_has(plan, d)) status = add_slots(&s);
    gp_free(s.slot);
    gp_lifetimes_free(&s.lifetimes);
    gp_access_list_free(&s.list);
  }
  gp_free(buffer);
  return status;
}
