/* plan/offload.c - see offload.h.
 *
 * The device's memory is free between `held` and `fetch` alone (schedule/away.h). */
#include "plan/offload.h"

#include "base/memory.h"
#include "plan/arrange/arrange.h"
#include "plan/memory/work.h"
#include "schedule/away.h"

typedef struct finder {
  gp_plan *plan;
  const bool *keeps; /* per stage: it stays on its device; NULL: none does */
  int32_t device;
  int32_t *work;    /* the device's tasks with programs of micro-batches */
  int32_t *forward; /* per (stage, micro-batch): place of its F in work + 1; 0: none is open */
  int32_t *begun;   /* per place in work: the backward pass of that F has begun */
  int32_t count;    /* of work */
} finder;

static int32_t *forward_of(const finder *f, const gp_task *task) {
  return &f->forward[(size_t)task->stage * (size_t)f->plan->micro_count + (size_t)task->micro];
}

/* Note what goes between F, at place i of work, and the first task of its backward pass. */
static void note(const finder *f, int32_t i, int32_t backward) {
  gp_plan *plan = f->plan;
  const int32_t forward = f->work[i];
  const gp_task *own = &plan->tasks[forward];
  gp_offload offload = {.forward = forward, .backward = f->work[backward]};
  gp_away_span span;
  const bool recomputes = plan->tasks[f->work[i + 1]].op == GP_ACT_R;
  for (int part = 0; part < GP_PARTS; part++)
    offload.bytes[part] = gp_plan_slot_bytes(plan, own, GP_SLOT_AWAY + part);
  if (!gp_offload_bytes(&offload) || (f->keeps && f->keeps[own->stage])) return;
  if (!gp_away_find(i, backward, recomputes, &span)) return;
  offload.held = f->work[span.held];
  offload.fetch = f->work[span.fetch];
  plan->offloads[plan->offload_count] = offload;
  plan->tasks[forward].away = ++plan->offload_count;
  plan->devices[f->device].offload_count++;
}

/* Find the offloads of a device, in the order of their backward passes. */
static void find(finder *f) {
  gp_plan *plan = f->plan;
  plan->devices[f->device].first_offload = plan->offload_count;
  f->count = 0;
  for (int32_t t = plan->first[f->device]; t < plan->first[f->device + 1]; t++) {
    gp_task *task = &plan->tasks[t];
    if (task->op > GP_ACT_R) continue;
    int32_t *at = forward_of(f, task);
    f->work[f->count++] = t;
    if (task->op == GP_ACT_F) {
      *at = f->count;
      continue;
    }
    if (!*at) continue;
    const gp_task *forward = &plan->tasks[f->work[*at - 1]];
    const bool first = !f->begun[*at - 1]++;
    if (first) note(f, *at - 1, f->count - 1);
    task->away = forward->away;
  }
}

/* ---- places in the host's memory ------------------------------------------------------------- */

static gp_status place(gp_plan *plan, int32_t device) {
  gp_plan_device *own = &plan->devices[device];
  gp_offload *list = plan->offloads + own->first_offload;
  gp_lifespan *lives;
  GP_TRY(gp_alloc_array((size_t)own->offload_count + 1, sizeof *lives, (void **)&lives));
  gp_status status = GP_OK;
  for (int32_t i = 0; !status && i < own->offload_count; i++) {
    lives[i] = (gp_lifespan){.first = list[i].forward, .last = list[i].backward};
    status = gp_size_align(gp_offload_bytes(&list[i]), GP_PLAN_ALIGNMENT, &lives[i].bytes);
  }
  if (!status) status = gp_arrange(lives, own->offload_count, &gp_arrange_quick, &own->host_bytes);
  for (int32_t i = 0; !status && i < own->offload_count; i++) list[i].host = lives[i].offset;
  gp_free(lives);
  return status;
}

/* ---- moves ----------------------------------------------------------------------------------- */

static int32_t task_of(const gp_offload *o, gp_move_kind kind) {
  switch (kind) {
  case GP_MOVE_FETCH: return o->fetch;
  case GP_MOVE_ARRIVE: return o->backward;
  case GP_MOVE_PUT: return o->forward;
  default: return o->held;
  }
}

/* Give every task its moves, in the order of their kinds. */
static gp_status list_moves(gp_plan *plan) {
  const size_t count = (size_t)plan->offload_count;
  int32_t total = 0;
  GP_TRY(gp_alloc_array(GP_MOVE_KINDS * count + 1, sizeof *plan->moves, (void **)&plan->moves));
  for (int kind = 0; kind < GP_MOVE_KINDS; kind++)
    for (size_t i = 0; i < count; i++)
      plan->tasks[task_of(&plan->offloads[i], (gp_move_kind)kind)].move_count++;
  for (int32_t t = 0; t < plan->first[plan->device_count]; t++) {
    gp_task *task = &plan->tasks[t];
    task->moves = plan->moves + total;
    total += task->move_count;
    task->move_count = 0;
  }
  for (int kind = 0; kind < GP_MOVE_KINDS; kind++)
    for (size_t i = 0; i < count; i++) {
      gp_task *task = &plan->tasks[task_of(&plan->offloads[i], (gp_move_kind)kind)];
      plan->moves[(task->moves - plan->moves) + task->move_count++] =
          (gp_move){(gp_move_kind)kind, (int32_t)i};
    }
  return GP_OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static gp_status add(finder *f) {
  gp_plan *plan = f->plan;
  const size_t tasks = (size_t)plan->first[plan->device_count] + 1;
  const size_t cells = (size_t)plan->stage_count * (size_t)plan->micro_count;
  GP_TRY(gp_alloc_array(tasks, sizeof *plan->offloads, (void **)&plan->offloads));
  GP_TRY(gp_alloc_array(2 * tasks + cells, sizeof(int32_t), (void **)&f->work));
  f->begun = f->work + tasks;
  f->forward = f->begun + tasks;
  for (f->device = 0; f->device < plan->device_count; f->device++) {
    for (size_t i = 0; i < tasks; i++) f->begun[i] = 0;
    find(f);
    GP_TRY(place(plan, f->device));
  }
  return list_moves(plan);
}

/* Does a stage save anything that goes to the host? */
static bool goes_somewhere(const gp_plan *plan) {
  size_t bytes = 0;
  for (int k = 0; k < 2; k++)
    for (int32_t s = 0; plan->shapes[k].programs && s < plan->stage_count; s++)
      for (int part = 0; part < GP_PARTS; part++)
        bytes += plan->shapes[k].programs[s].away_bytes[part];
  return bytes && gp_plan_trains(plan->kind);
}

gp_status gp_plan_add_offloads(gp_plan *plan, const bool *keeps) {
  finder f = {.plan = plan, .keeps = keeps};
  if (!goes_somewhere(plan)) return GP_OK;
  gp_status status = add(&f);
  gp_free(f.work);
  return status;
}

void gp_plan_free_offloads(gp_plan *plan) {
  gp_free(plan->offloads);
  gp_free(plan->moves);
}

size_t gp_plan_host_bytes(const gp_plan *plan, int device) {
  return device < plan->device_count ? plan->devices[device].host_bytes : 0;
}
