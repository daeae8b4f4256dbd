/* plan/memory/slots.c - slots for values of a stage that outlive an action: taken at F, R and I,
 * given back after B or W.
 *
 * A synchronous schedule gets the colouring of its list: a slot is free when its micro-batch is
 * done. A stream that never ends cannot be coloured: there micro-batch i takes slot i mod K, with
 * the smallest K for which no two live ones meet.
 */
#include "base/memory.h"
#include "plan/make.h"

typedef struct slot_map {
  gp_slots *slots;
  int32_t *taken[GP_SLOT_KINDS]; /* per slot: micro-batch + 1, or 0 */
  int32_t *own[GP_SLOT_KINDS];   /* per micro-batch: its slot + 1, or 0 */
  int32_t free[GP_SLOT_KINDS];   /* no slot before this one is free */
} slot_map;

static bool ends(const gp_task *task) { return task->op == GP_ACT_B || task->op == GP_ACT_W; }

/* Does the task use a slot of this kind? */
static bool wants(const gp_task *task, int kind) {
  bool apart = task->op == GP_ACT_I || task->op == GP_ACT_W;
  switch (kind) {
  case GP_SLOT_DROPPED: return !task->kept;
  case GP_SLOT_KEPT: return task->kept;
  case GP_SLOT_RECOMPUTED: return !task->kept && task->op != GP_ACT_F;
  default: return apart;
  }
}

/* The micro-batch's slot of this kind, a free one where it has none. */
static int32_t take(slot_map *m, int kind, int32_t micro) {
  int32_t slot = m->free[kind], *own = &m->own[kind][micro];
  if (*own) return *own - 1;
  while (m->taken[kind][slot]) slot++;
  if (slot == m->slots->count[kind]) m->slots->count[kind]++;
  m->taken[kind][slot] = micro + 1;
  m->free[kind] = slot + 1;
  *own = slot + 1;
  return slot;
}

static void give(slot_map *m, int kind, int32_t micro) {
  int32_t slot = m->own[kind][micro] - 1;
  m->taken[kind][slot] = m->own[kind][micro] = 0;
  if (slot < m->free[kind]) m->free[kind] = slot;
}

static void visit(slot_map *m, gp_task *task) {
  for (int kind = 0; kind < GP_SLOT_KINDS; kind++) {
    if (!wants(task, kind)) continue;
    task->slot[kind] = take(m, kind, task->micro);
    if (ends(task)) give(m, kind, task->micro);
  }
}

/* Compute tasks of a stage on one of its devices. */
static bool is_mine(const gp_task *task, int32_t stage) {
  return task->stage == stage && task->op <= GP_ACT_R;
}

/* ---- streams ------------------------------------------------------------------------------- */

/* Would micro-batches meet in one of k slots? */
static bool meet(const gp_plan *plan, int32_t device, int32_t stage, slot_map *m, int kind,
                 int32_t k) {
  bool met = false;
  for (int32_t i = 0; i < k; i++) m->taken[kind][i] = 0;
  for (int32_t t = plan->first[device]; !met && t < plan->first[device + 1]; t++) {
    const gp_task *task = &plan->tasks[t];
    if (!is_mine(task, stage) || !wants(task, kind)) continue;
    int32_t *taken = &m->taken[kind][task->micro % k];
    met = *taken && *taken != task->micro + 1;
    *taken = ends(task) ? 0 : task->micro + 1;
  }
  return met;
}

static void share_in_turn(gp_plan *plan, int32_t device, int32_t stage, slot_map *m) {
  for (int kind = 0; kind < GP_SLOT_KINDS; kind++) {
    int32_t *count = &m->slots->count[kind];
    while (*count && *count < plan->micro_count && meet(plan, device, stage, m, kind, *count))
      ++*count;
  }
}

/* ---- all of them --------------------------------------------------------------------------- */

/* In the order of the device, which is the order in which slots are taken and given back. */
static gp_status assign(gp_plan *plan, int32_t stage, int32_t copy) {
  int32_t holder = gp_plan_holder(plan, stage, copy), device = plan->placement[holder];
  slot_map m = {.slots = &plan->slots[holder]};
  int32_t room = plan->micro_count + 1, *all;
  GP_TRY(gp_alloc_array(2 * GP_SLOT_KINDS * (size_t)room, sizeof *all, (void **)&all));
  for (int k = 0; k < GP_SLOT_KINDS; k++) {
    m.taken[k] = all + 2 * k * room;
    m.own[k] = m.taken[k] + room;
  }
  for (int32_t t = plan->first[device]; t < plan->first[device + 1]; t++)
    if (is_mine(&plan->tasks[t], stage)) visit(&m, &plan->tasks[t]);
  if (plan->batch) share_in_turn(plan, device, stage, &m);
  gp_free(all);
  return GP_OK;
}

/* Activations of all stages of a device, from F to the last backward action. */
static void find_peak(gp_plan *plan, int32_t device) {
  int32_t live = 0;
  for (int32_t t = plan->first[device]; t < plan->first[device + 1]; t++) {
    live += plan->tasks[t].op == GP_ACT_F;
    if (live > plan->devices[device].peak_live) plan->devices[device].peak_live = live;
    live -= ends(&plan->tasks[t]);
  }
}

gp_status gp_plan_add_slots(gp_plan *plan) {
  for (int32_t d = 0; gp_plan_trains(plan->kind) && d < plan->device_count; d++) find_peak(plan, d);
  for (int32_t stage = 0; gp_plan_trains(plan->kind) && stage < plan->stage_count; stage++)
    for (int32_t copy = 0; copy < plan->copy_count; copy++)
      if (gp_plan_has(plan, plan->placement[gp_plan_holder(plan, stage, copy)]))
        GP_TRY(assign(plan, stage, copy));
  return GP_OK;
}
