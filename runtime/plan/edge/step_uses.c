/* plan/edge/step_uses.c - which tasks publish, wait for and release step edges (step_edges.h). */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "plan/edge/buckets.h"
#include "plan/edge/step_edges.h"

/* ---- who uses an edge ------------------------------------------------------------------------ */

/* Does a stage read the parameter, or the halves, that cross? */
static bool reads_param(const gp_plan *plan, int32_t stage, const gp_step_edge *edge) {
  for (int k = 0; k < 2; k++)
    for (int32_t i = 0; i < plan->shapes[k].crossing_count; i++) {
      const gp_crossing *c = &plan->shapes[k].crossings[i];
      if (c->stage == stage && c->param == edge->number && c->half == edge->half) return true;
    }
  return false;
}

/* Is it the task of the stage and copy that own the parameter of an extra accumulator? */
static bool is_owner(const gp_plan *plan, const gp_task *task, int32_t extra) {
  const gp_layout_param *param = &plan->layout.at[plan->layout.extras[extra].param];
  return task->copy == param->owner && task->stage == param->stage;
}

/* Is it the task that waits for values which its device brings for others? */
static bool brings(const gp_task *task) {
  return task->op == GP_ACT_SEND && task->sends == GP_STEP_AT_BROUGHT;
}

/* Does a task of a device that reads the edge read its value? */
static bool is_read_by(const gp_plan *plan, const gp_step_edge *edge, int32_t device,
                       const gp_task *task) {
  const bool computes = task->op <= GP_ACT_R || (task->op >= GP_ACT_C && task->op <= GP_ACT_S);
  switch (edge->value) {
  case GP_STEP_PARAM: return computes && reads_param(plan, task->stage, edge);
  case GP_STEP_VALUES:
    if (plan->layout.apart)
      return task->op == GP_ACT_UNSHARD && task->copy != edge->copy && task->stage == edge->stage;
  /* fall through */
  case GP_STEP_BUFFERS:
    if (brings(task)) return gp_step_is_brought_by(plan, edge, device);
    return computes && task->copy != edge->copy && task->stage == edge->stage;
  case GP_STEP_BROUGHT: return computes && task->stage == edge->stage;
  case GP_STEP_GRADS:
  case GP_STEP_EXTRAS:
    return task->op == GP_ACT_REDUCE && task->copy == edge->to && task->stage == edge->stage;
  /* the first S waits for all of them: then no copy reads the buffers any more */
  case GP_STEP_RECORDS: return task->op == GP_ACT_S && task->stage == edge->stage;
  case GP_STEP_TIED: return task->op == GP_ACT_TIE && is_owner(plan, task, edge->number);
  case GP_STEP_CHECK:
    return task->op == GP_ACT_U && task->copy != edge->copy && task->stage == edge->stage;
  case GP_STEP_VOTE: return task->op == GP_ACT_DECIDE;
  case GP_STEP_GATHER: return false;
  default: return task->op == GP_ACT_CLIP || task->op == GP_ACT_U;
  }
}

/* Does task t publish it, on the device that makes it? */
static bool is_made_by(const gp_plan *plan, const gp_step_edge *edge, int32_t t) {
  const gp_task *task = &plan->tasks[t];
  if (edge->value == GP_STEP_VOTE) return task->op == GP_ACT_VOTE;
  if (edge->value == GP_STEP_VERDICT) return task->op == GP_ACT_DECIDE;
  return task->op == GP_ACT_SEND &&
         gp_step_is_sent(plan, edge, (gp_step_phase)task->sends, task->stage);
}

/* A use of a step edge that task `task` gets. */
typedef struct step_use {
  int32_t task;
  gp_edge_use use;
} step_use;

typedef struct uses {
  gp_plan *plan;
  step_use *list;
  size_t count, room;
} uses;

static gp_status add_use(uses *u, int32_t task, gp_edge_use use) {
  GP_TRY(gp_grow_array(u->count, &u->room, sizeof *u->list, (void **)&u->list));
  u->list[u->count++] = (step_use){task, use};
  return GP_OK;
}

/* The instruction of the task before SEND behind which the edge may be published + 1; 0: that task
 * does not add to it last, or does so at its end. */
static int32_t early_end(const gp_plan *plan, const gp_step_edge *edge, int32_t send) {
  const gp_task *task = &plan->tasks[send - 1];
  if (edge->value != GP_STEP_GRADS || plan->tasks[send].sends != GP_STEP_OF_STAGE) return 0;
  const int32_t end = gp_bucket_end(task->program, edge->offset, edge->bytes);
  return end && end < task->program->instr_count ? end : 0;
}

/* ---- with every mini-batch ------------------------------------------------------------------- */

/* Is it the task of the copy and stage that makes the edge? */
static bool is_of_maker(const gp_step_edge *edge, const gp_task *task) {
  return task->stage == edge->stage && task->copy == edge->copy;
}

/* Is it the first forward pass of its stage in its mini-batch? */
static bool is_first_pass(const gp_plan *plan, int32_t t) {
  const gp_task *task = &plan->tasks[t];
  if (task->op != GP_ACT_F) return false;
  for (int32_t k = t - 1; k >= 0 && plan->tasks[k].copy == task->copy; k--) {
    const gp_task *before = &plan->tasks[k];
    if (before->op == GP_ACT_F && before->stage == task->stage &&
        before->micro / plan->step_micros == task->micro / plan->step_micros)
      return false;
  }
  return true;
}

/* Does task t write what readers of an earlier turn may still read? */
static bool overwrites(const gp_plan *plan, const gp_step_edge *edge, int32_t t) {
  const gp_task *task = &plan->tasks[t];
  if (!is_of_maker(edge, task)) return false;
  switch (edge->value) {
  case GP_STEP_VALUES: return task->op == GP_ACT_U;
  case GP_STEP_CHECK: return task->op == GP_ACT_NORM;
  case GP_STEP_RECORDS: return is_first_pass(plan, t);
  default: return task->opens && !task->partial;
  }
}

/* Does the task publish a turn at its end? */
static bool makes_turn(const gp_plan *plan, const gp_step_edge *edge, int32_t t) {
  if (edge->value == GP_STEP_CHECK) return overwrites(plan, edge, t);
  return is_made_by(plan, edge, t) || (edge->value == GP_STEP_VALUES && overwrites(plan, edge, t));
}

static gp_status add_turns(uses *u, int32_t e) {
  const gp_plan *plan = u->plan;
  const gp_step_edge *edge = &plan->step_edges[e];
  for (int32_t t = plan->first[edge->maker]; t < plan->first[edge->maker + 1]; t++) {
    gp_edge_use use = {.edge = plan->edge_count + e, .acquire = overwrites(plan, edge, t)};
    const bool makes = makes_turn(plan, edge, t);
    const int32_t end = makes ? early_end(plan, edge, t) : 0;
    use.publish = makes && !end;
    if (use.acquire || use.publish) GP_TRY(add_use(u, t, use));
    if (!end) continue;
    use = (gp_edge_use){.edge = plan->edge_count + e, .publish = true, .early = end};
    GP_TRY(add_use(u, t - 1, use));
  }
  return GP_OK;
}

/* The next task of the device behind t that reads the edge; its end: there is none. */
static int32_t next_read(const gp_plan *plan, int32_t e, int32_t device, int32_t t) {
  do t++;
  while (t < plan->first[device + 1] &&
         !is_read_by(plan, &plan->step_edges[e], device, &plan->tasks[t]));
  return t;
}

/* Do two tasks that read the edge read the same turn? Several do only where S reads records. */
static bool read_one_turn(const gp_plan *plan, int32_t e, int32_t a, int32_t b) {
  return plan->step_edges[e].value == GP_STEP_RECORDS &&
         plan->tasks[a].micro / plan->step_micros == plan->tasks[b].micro / plan->step_micros;
}

/* The first task that reads a turn waits for it, and at the end of the last one the device is
 * through with it. */
static gp_status add_turn_reads(uses *u, int32_t e, int32_t device) {
  const gp_plan *plan = u->plan;
  const int32_t end = plan->first[device + 1];
  bool goes_on = false; /* the task before has read the turn */
  for (int32_t t = next_read(plan, e, device, plan->first[device] - 1); t < end;) {
    const int32_t next = next_read(plan, e, device, t);
    gp_edge_use use = {.edge = plan->edge_count + e, .wait = !goes_on};
    goes_on = next < end && read_one_turn(plan, e, t, next);
    use.release = !goes_on;
    if (use.wait || use.release) GP_TRY(add_use(u, t, use));
    t = next;
  }
  return GP_OK;
}

/* ---- once in a run -------------------------------------------------------------------------- */

static gp_status add_maker(uses *u, int32_t e) {
  const gp_plan *plan = u->plan;
  const gp_step_edge *edge = &plan->step_edges[e];
  for (int32_t t = plan->first[edge->maker]; t < plan->first[edge->maker + 1]; t++) {
    if (!is_made_by(plan, edge, t)) continue;
    const int32_t end = early_end(plan, edge, t);
    return add_use(u, end ? t - 1 : t,
                   (gp_edge_use){.edge = plan->edge_count + e, .publish = true, .early = end});
  }
  return GP_OK;
}

/* The first task that reads it waits, the last one releases it: in a stream the first, because its
 * later tasks run again and again. */
static gp_status add_reads(uses *u, int32_t e, int32_t device) {
  const gp_plan *plan = u->plan;
  int32_t first = -1, last = -1;
  for (int32_t t = plan->first[device]; t < plan->first[device + 1]; t++) {
    if (!is_read_by(plan, &plan->step_edges[e], device, &plan->tasks[t])) continue;
    if (first < 0) first = t;
    last = t;
  }
  if (first < 0) return GP_OK;
  if (gp_plan_streams(plan)) last = first;
  gp_edge_use use = {.edge = plan->edge_count + e, .wait = true, .release = first == last};
  GP_TRY(add_use(u, first, use));
  if (first == last) return GP_OK;
  return add_use(u, last, (gp_edge_use){.edge = plan->edge_count + e, .release = true});
}

/* Those of a task that are published early come behind its others, in this order. */
static int compare(const void *one, const void *other) {
  const step_use *a = one, *b = other;
  if (a->use.early != b->use.early) return a->use.early < b->use.early ? -1 : 1;
  return (a->use.edge > b->use.edge) - (a->use.edge < b->use.edge);
}

/* Tasks point into the array of all uses, which is made anew with the others behind each task's
 * own. more: per task, how many. */
static gp_status merge(uses *u, int32_t *more) {
  gp_plan *plan = u->plan;
  const int32_t tasks = plan->first[plan->device_count];
  size_t total = u->count + 1;
  gp_edge_use *merged, *end;
  for (size_t i = 0; i < u->count; i++) more[u->list[i].task]++;
  for (int32_t t = 0; t < tasks; t++) total += (size_t)plan->tasks[t].use_count;
  GP_TRY(gp_alloc_array(total, sizeof *merged, (void **)&merged));
  end = merged;
  for (int32_t t = 0; t < tasks; t++) {
    gp_task *task = &plan->tasks[t];
    if (task->use_count) memcpy(end, task->uses, (size_t)task->use_count * sizeof *end);
    task->uses = end;
    end += task->use_count + more[t];
  }
  for (size_t i = 0; i < u->count; i++) {
    gp_task *task = &plan->tasks[u->list[i].task];
    task->uses[task->use_count++] = u->list[i].use;
  }
  gp_free(plan->uses);
  plan->uses = merged;
  return GP_OK;
}

static gp_status find_uses(uses *u) {
  for (int32_t e = 0; e < u->plan->step_edge_count; e++) {
    const gp_step_edge *edge = &u->plan->step_edges[e];
    const bool turns = gp_step_turns(u->plan, edge);
    GP_TRY(turns ? add_turns(u, e) : add_maker(u, e));
    for (int32_t r = 0; r < edge->reader_count; r++) {
      const int32_t device = edge->readers[r].device;
      GP_TRY(turns ? add_turn_reads(u, e, device) : add_reads(u, e, device));
    }
  }
  return GP_OK;
}

gp_status gp_plan_add_step_uses(gp_plan *plan) {
  uses u = {.plan = plan};
  int32_t *more = NULL;
  if (!plan->step_edge_count) return GP_OK;
  gp_status status =
      gp_alloc_array((size_t)plan->first[plan->device_count] + 1, sizeof *more, (void **)&more);
  if (!status) status = find_uses(&u);
  if (!status && u.count) qsort(u.list, u.count, sizeof *u.list, compare);
  if (!status) status = merge(&u, more);
  gp_free(u.list);
  gp_free(more);
  return status;
}
