/* engine/watch/guard.c - see guard.h. */
#include "engine/watch/guard.h"

#ifdef GP_GUARDS

#include <sanitizer/asan_interface.h>
#include <stdlib.h>
#include <string.h>

#include "engine/memory/work.h"
#include "engine/state/pipeline.h"
#include "plan/edge/step_edges.h"
#include "plan/memory/work.h"
#include "plan/touches.h"

/* A part of a device's memory. holder -1: it is the running task's own. */
typedef struct part {
  gp_touched buffer;
  int number; /* of what F or R fills: GP_PART_* */
  int32_t holder;
  char *memory;
  size_t bytes;
} part;

typedef struct guard {
  const gp_worker *worker;
  const gp_task_run *run;
  gp_touch *list; /* what the task names */
  int32_t count;
  const char *hidden; /* GPIPE_GUARD_HIDE: a buffer that counts as not named; or NULL */
} guard;

typedef void (*visit)(const guard *g, const part *p);

static void each(const guard *g, visit each_part, part p) {
  if (p.memory && p.bytes) each_part(g, &p);
}

/* ---- the parts of a device's memory ---------------------------------------------------------- */

/* Do other devices read the value, at a time that this device does not know? copy -1: of any
 * copy. */
static bool is_sent(const gp_plan *plan, gp_step_value value, int32_t stage, int32_t copy) {
  for (int32_t e = 0; e < plan->step_edge_count; e++) {
    const gp_step_edge *edge = &plan->step_edges[e];
    if (edge->value == value && edge->stage == stage && (copy < 0 || edge->copy == copy))
      return true;
  }
  return false;
}

/* Visit the task's own slots and temporaries. They have their places in the work area for a time,
 * and others have had them before. */
static void each_place(const guard *g, visit each_part) {
  const gp_binding *binding = g->worker->pipeline->run.binding;
  const gp_plan *plan = binding->plan;
  const gp_task *task = g->run->task;
  char *area = gp_work_area(binding, g->worker->device);
  for (int slot = 0; slot < GP_SLOT_BASES; slot++) {
    const int32_t base = GP_BASE_SAVED + slot;
    if (task->slot[slot] < 0) continue;
    each(g, each_part,
         (part){.buffer = gp_touched_slot(task, base),
                .number = gp_base_part(base),
                .holder = -1,
                .memory = area + gp_plan_slot_place(plan, task, slot, g->run->micro),
                .bytes = gp_plan_slot_bytes(plan, task, gp_task_slot_kind(task, slot))});
  }
  const size_t bytes = gp_plan_temp_bytes(plan, task, g->worker->device);
  each(g, each_part, (part){GP_TOUCHED_TEMPORARY, 0, -1, area + task->temp, bytes});
}

static void each_gradient(const guard *g, visit each_part, int32_t holder) {
  const gp_plan *plan = g->worker->pipeline->run.plan;
  const int32_t stage = holder / plan->copy_count, copy = holder % plan->copy_count;
  const gp_arena *a = &g->worker->pipeline->arenas[stage];
  const gp_arena_copy *own = &a->copies[copy];
  if (!is_sent(plan, GP_STEP_GRADS, stage, copy))
    each(g, each_part, (part){GP_TOUCHED_GRADIENTS, 0, holder, own->grads, a->grad_bytes});
  if (!is_sent(plan, GP_STEP_TIED, stage, -1) && !is_sent(plan, GP_STEP_EXTRAS, stage, -1))
    each(g, each_part, (part){GP_TOUCHED_EXTRAS, 0, holder, own->extras, a->extra_bytes});
  each(g, each_part,
       (part){GP_TOUCHED_PARTIALS, 0, holder, g->worker->pipeline->run.binding->partials[holder],
              plan->partials[holder].bytes});
}

static void each_weight(const guard *g, visit each_part, int32_t holder) {
  const gp_binding *binding = g->worker->pipeline->run.binding;
  const gp_plan *plan = binding->plan;
  for (int k = 0; k < 2; k++)
    each(g, each_part,
         (part){GP_TOUCHED_PREPARED, 0, holder, binding->invariant[2 * holder + k],
                plan->invariant[2 * holder + k].bytes});
}

/* Other devices read what is sent at a time that this one does not know. */
static void each_record(const guard *g, visit each_part, int32_t holder) {
  const gp_plan *plan = g->worker->pipeline->run.plan;
  if (is_sent(plan, GP_STEP_RECORDS, holder / plan->copy_count, holder % plan->copy_count)) return;
  each(g, each_part,
       (part){GP_TOUCHED_RECORDS, 0, holder, g->worker->pipeline->run.binding->records[holder],
              plan->records[holder].bytes});
}

static void each_part_of(const guard *g, visit each_part) {
  const gp_binding *binding = g->worker->pipeline->run.binding;
  const gp_plan *plan = binding->plan;
  const int32_t device = g->worker->device;
  for (int32_t h = 0; h < plan->stage_count * plan->copy_count; h++) {
    if (plan->placement[h] != device) continue;
    each_gradient(g, each_part, h);
    each_weight(g, each_part, h);
    each_record(g, each_part, h);
  }
}

/* ---- poison -------------------------------------------------------------------------------- */

/* Accumulators are named by their stage; those of another one are of its first copy. */
static bool is_extra(const guard *g, const part *p, const gp_touch *touch) {
  const gp_task *task = g->run->task;
  const int32_t copy = touch->instance == task->stage ? task->copy : 0;
  return p->holder == gp_plan_holder(g->worker->pipeline->run.plan, touch->instance, copy);
}

static bool is_named(const guard *g, const part *p) {
  const gp_task *task = g->run->task;
  const gp_plan *plan = g->worker->pipeline->run.plan;
  const int32_t copy =
      task->op == GP_ACT_S && p->buffer == GP_TOUCHED_RECORDS ? task->from : task->copy;
  const bool own = p->holder < 0 || p->holder == gp_plan_holder(plan, task->stage, copy);
  if (g->hidden && !strcmp(g->hidden, gp_touched_name(p->buffer))) return false;
  for (int32_t i = 0; i < g->count; i++) {
    if (g->list[i].buffer != p->buffer || g->list[i].part != p->number) continue;
    if (p->buffer == GP_TOUCHED_EXTRAS ? is_extra(g, p, &g->list[i]) : own) return true;
  }
  return false;
}

static void poison_all(const guard *g) {
  const gp_binding *binding = g->worker->pipeline->run.binding;
  const int32_t device = g->worker->device;
  const size_t bytes = binding->plan->devices[device].work.bytes;
  if (bytes) ASAN_POISON_MEMORY_REGION(gp_work_area(binding, device), bytes);
}

static void heal_all(const guard *g) {
  const gp_binding *binding = g->worker->pipeline->run.binding;
  const int32_t device = g->worker->device;
  const size_t bytes = binding->plan->devices[device].work.bytes;
  if (bytes) ASAN_UNPOISON_MEMORY_REGION(gp_work_area(binding, device), bytes);
}

/* Heal a part of the work area if the task names it. */
static void admit(const guard *g, const part *p) {
  if (is_named(g, p)) ASAN_UNPOISON_MEMORY_REGION(p->memory, p->bytes);
}

static void poison(const guard *g, const part *p) {
  if (!is_named(g, p)) ASAN_POISON_MEMORY_REGION(p->memory, p->bytes);
}

static void heal(const guard *g, const part *p) {
  (void)g;
  ASAN_UNPOISON_MEMORY_REGION(p->memory, p->bytes);
}

/* Does the host know when a task runs? On a device with a queue it does not. */
static bool is_guarded(const gp_worker *worker) { return worker->lane.facts->at_once; }

gp_status gp_guard_begin(const gp_worker *worker, const gp_task_run *r) {
  guard g = {.worker = worker, .run = r, .hidden = getenv("GPIPE_GUARD_HIDE")};
  const gp_plan *plan = worker->pipeline->run.plan;
  if (!is_guarded(worker)) return GP_OK;
  /* no memory that is counted: a step allocates none */
  g.list = malloc((size_t)gp_plan_touches_most(plan, r->task) * sizeof *g.list);
  if (!g.list) return gp_fail(GP_ENOMEM, "guard: no memory");
  g.count = gp_plan_touches(plan, r->task, g.list);
  poison_all(&g);
  each_place(&g, admit);
  each_part_of(&g, poison);
  free(g.list);
  return GP_OK;
}

void gp_guard_end(const gp_worker *worker, const gp_task_run *r) {
  const guard g = {.worker = worker, .run = r};
  if (!is_guarded(worker)) return;
  heal_all(&g);
  each_part_of(&g, heal);
}

#endif
