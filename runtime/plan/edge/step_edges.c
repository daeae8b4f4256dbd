/* plan/edge/step_edges.c - see step_edges.h. */
#include "plan/edge/step_edges.h"

#include <string.h>

#include "base/memory.h"
#include "base/tensor.h"
#include "graph/param.h"
#include "plan/gathers.h"
#include "plan/records.h"

const char *gp_step_value_name(gp_step_value value) {
  static const char *const names[] = {"a shared parameter",
                                      "the parameters of another copy",
                                      "the buffers of the first copy",
                                      "the gradients of another copy",
                                      "the extra gradients of another copy",
                                      "the records of another copy",
                                      "what all replicas gather",
                                      "the gradient of a shared parameter",
                                      "the vote on the update",
                                      "the verdict on the update"};
  return names[value];
}

int32_t gp_plan_decider(const gp_plan *plan) { return plan->placement[0]; }

/* ---- edges --------------------------------------------------------------------------------- */

typedef struct builder {
  gp_plan *plan;
  const gp_layout *layout;
  size_t room;
} builder;

/* Append an edge that is given; it counts once it has a reader. */
static gp_status add_reader(builder *b, const gp_step_edge *like, int32_t device) {
  gp_plan *plan = b->plan;
  size_t count = (size_t)plan->step_edge_count;
  gp_step_edge *edge = count ? &plan->step_edges[count - 1] : NULL;
  if (device == like->maker) return GP_OK;
  if (!edge || edge->value != like->value || edge->stage != like->stage ||
      edge->number != like->number || edge->maker != like->maker || edge->to != like->to) {
    GP_TRY(gp_grow_array(count, &b->room, sizeof *edge, (void **)&plan->step_edges));
    edge = &plan->step_edges[plan->step_edge_count++];
    *edge = *like;
  }
  int32_t at = 0;
  while (at < edge->reader_count && edge->readers[at].device < device) at++;
  if (at < edge->reader_count && edge->readers[at].device == device) return GP_OK;
  size_t n = (size_t)edge->reader_count;
  GP_TRY(gp_resize_array(n, n + 1, sizeof *edge->readers, (void **)&edge->readers));
  memmove(&edge->readers[at + 1], &edge->readers[at], (n - (size_t)at) * sizeof *edge->readers);
  edge->readers[at] = (gp_step_reader){.device = device};
  edge->reader_count++;
  return GP_OK;
}

/* The parameters that cross, each with all of its readers: they are few. */
static gp_status add_param(builder *b, int32_t param) {
  const gp_plan *plan = b->plan;
  const gp_layout_param *at = &b->layout->at[param];
  const gp_step_edge edge = {.value = GP_STEP_PARAM,
                             .stage = at->stage,
                             .number = param,
                             .maker = plan->placement[gp_plan_holder(plan, at->stage, at->owner)],
                             .bytes = gp_meta_bytes(gp_param_meta(b->layout->params[param]))};
  for (int k = 0; k < 2; k++)
    for (int32_t i = 0; i < plan->shapes[k].crossing_count; i++) {
      const gp_crossing *c = &plan->shapes[k].crossings[i];
      for (int32_t copy = 0; c->param == param && copy < plan->copy_count; copy++) {
        int32_t holder = gp_plan_holder(plan, c->stage, copy);
        if (plan->active[holder]) GP_TRY(add_reader(b, &edge, plan->placement[holder]));
      }
    }
  return GP_OK;
}

static gp_status add_params(builder *b) {
  for (int32_t i = 0; b->layout->crossing_count && i < b->layout->param_count; i++)
    if (b->layout->at[i].crossing) GP_TRY(add_param(b, i));
  return GP_OK;
}

/* From one copy of a stage to all others that have micro-batches. */
static gp_status add_outward(builder *b, const gp_step_edge *like) {
  const gp_plan *plan = b->plan;
  for (int32_t copy = 0; like->bytes && copy < plan->copy_count; copy++) {
    const int32_t holder = gp_plan_holder(plan, like->stage, copy);
    if (copy != like->copy && plan->active[holder])
      GP_TRY(add_reader(b, like, plan->placement[holder]));
  }
  return GP_OK;
}

/* From all copies of a stage that have micro-batches to one. */
static gp_status add_inward(builder *b, const gp_step_edge *like) {
  const gp_plan *plan = b->plan;
  for (int32_t copy = 0; like->bytes && copy < plan->copy_count; copy++) {
    const int32_t holder = gp_plan_holder(plan, like->stage, copy);
    gp_step_edge edge = *like;
    edge.copy = copy;
    edge.maker = plan->placement[holder];
    if (copy == like->to || !plan->active[holder]) continue;
    GP_TRY(add_reader(b, &edge, plan->placement[gp_plan_holder(plan, like->stage, like->to)]));
  }
  return GP_OK;
}

static int32_t device_of(const gp_plan *plan, int32_t stage, int32_t copy) {
  return plan->placement[gp_plan_holder(plan, stage, copy)];
}

/* Does a copy of the stage own the parameter of one of its extra accumulators? */
static bool owns_extras(const gp_layout *layout, int32_t stage, int32_t copy) {
  for (size_t x = 0; x < layout->extra_count; x++)
    if (layout->extras[x].stage == stage && layout->at[layout->extras[x].param].owner == copy)
      return true;
  return false;
}

/* Each copy hands out the values that it owns, and takes in their gradients. Extra accumulators are
 * sent as one: almost all models have few. */
static gp_status add_owner(builder *b, int32_t stage, int32_t copy) {
  const gp_plan *plan = b->plan;
  const gp_layout_stage *sizes = &b->layout->stages[stage];
  const gp_layout_slice *own = &b->layout->slices[gp_plan_holder(plan, stage, copy)];
  gp_step_edge values = {.value = GP_STEP_VALUES,
                         .stage = stage,
                         .copy = copy,
                         .maker = device_of(plan, stage, copy),
                         .offset = own->begin,
                         .bytes = own->values};
  GP_TRY(add_outward(b, &values));
  values.value = GP_STEP_BUFFERS;
  values.offset = 0;
  values.bytes = copy ? 0 : sizes->buffers;
  GP_TRY(add_outward(b, &values));
  if (!gp_plan_trains(plan->kind)) return GP_OK;
  gp_step_edge grads = {.value = GP_STEP_GRADS,
                        .stage = stage,
                        .to = copy,
                        .offset = own->begin,
                        .bytes = own->grads};
  GP_TRY(add_inward(b, &grads));
  grads.value = GP_STEP_EXTRAS;
  grads.offset = 0;
  grads.bytes = owns_extras(b->layout, stage, copy) ? sizes->extras : 0;
  return add_inward(b, &grads);
}

/* What F records goes to the copy that keeps the buffers. */
static gp_status add_records(builder *b, int32_t stage) {
  const gp_step_edge records = {
      .value = GP_STEP_RECORDS, .stage = stage, .bytes = gp_plan_records_bytes(b->plan, stage)};
  return add_inward(b, &records);
}

/* A copy's part of a gather goes to the same copy in all other replicas. */
static gp_status add_gather(builder *b, int32_t number) {
  const gp_plan *plan = b->plan;
  const gp_plan_gather *gather = &plan->gathers[number];
  for (int32_t copy = 0; copy < plan->copy_count; copy++)
    for (int32_t r = 0; r < plan->replicas; r++) {
      const int32_t reader = device_of(plan, gather->stage, gp_plan_copy_in(plan, copy, r));
      const gp_step_edge edge = {.value = GP_STEP_GATHER,
                                 .stage = gather->stage,
                                 .copy = copy,
                                 .number = number,
                                 .maker = device_of(plan, gather->stage, copy),
                                 .bytes = gp_plan_gather_bytes(gather)};
      GP_TRY(add_reader(b, &edge, reader));
    }
  return GP_OK;
}

static gp_status add_copies(builder *b) {
  const gp_plan *plan = b->plan;
  for (int32_t s = 0; plan->copy_count > 1 && s < plan->stage_count; s++) {
    for (int32_t copy = 0; copy < plan->copy_count; copy++) GP_TRY(add_owner(b, s, copy));
    if (gp_plan_trains(plan->kind)) GP_TRY(add_records(b, s));
  }
  for (int32_t j = 0; j < plan->gather_count; j++) GP_TRY(add_gather(b, j));
  return GP_OK;
}

static gp_status add_tied(builder *b) {
  const gp_plan *plan = b->plan;
  for (size_t x = 0; x < b->layout->extra_count; x++) {
    const gp_layout_extra *extra = &b->layout->extras[x];
    const gp_layout_param *param = &b->layout->at[extra->param];
    const gp_step_edge edge = {.value = GP_STEP_TIED,
                               .stage = extra->stage,
                               .number = (int32_t)x,
                               .maker = device_of(plan, extra->stage, param->owner),
                               .bytes =
                                   gp_meta_bytes(gp_param_meta(b->layout->params[extra->param]))};
    GP_TRY(add_reader(b, &edge, device_of(plan, param->stage, param->owner)));
  }
  return GP_OK;
}

/* Every device that holds a stage votes. */
static gp_status add_votes(builder *b) {
  const gp_plan *plan = b->plan;
  const int32_t decider = gp_plan_decider(plan), holders = plan->stage_count * plan->copy_count;
  bool *votes;
  GP_TRY(gp_alloc_array((size_t)plan->device_count, sizeof *votes, (void **)&votes));
  for (int32_t h = 0; h < holders; h++) votes[plan->placement[h]] = true;
  gp_status status = GP_OK;
  for (int32_t d = 0; !status && d < plan->device_count; d++) {
    const gp_step_edge vote = {.value = GP_STEP_VOTE, .stage = -1, .number = d, .maker = d};
    if (votes[d]) status = add_reader(b, &vote, decider);
  }
  const gp_step_edge verdict = {.value = GP_STEP_VERDICT, .stage = -1, .maker = decider};
  for (int32_t d = 0; !status && d < plan->device_count; d++)
    if (votes[d]) status = add_reader(b, &verdict, d);
  gp_free(votes);
  return status;
}

gp_status gp_plan_add_step_edges(gp_plan *plan, const gp_plan_env *env, bool tied) {
  builder b = {.plan = plan, .layout = env->layout};
  gp_status status = add_params(&b);
  if (!status) status = add_copies(&b);
  if (!status && tied) status = add_tied(&b);
  if (!status && plan->decides) status = add_votes(&b);
  return status;
}

void gp_plan_free_step_edges(gp_plan *plan) {
  for (int32_t i = 0; i < plan->step_edge_count; i++) gp_free(plan->step_edges[i].readers);
  gp_free(plan->step_edges);
}

/* ---- what SEND publishes --------------------------------------------------------------------- */

static bool is_sent(const gp_step_edge *edge, gp_step_phase phase, int32_t stage) {
  const bool sums = edge->value == GP_STEP_GRADS || edge->value == GP_STEP_EXTRAS;
  switch (phase) {
  case GP_STEP_AT_BEGIN: return edge->value <= GP_STEP_BUFFERS;
  case GP_STEP_AT_REDUCE: return sums;
  case GP_STEP_OF_STAGE: return sums && edge->stage == stage;
  case GP_STEP_AT_LATE: return edge->value == GP_STEP_RECORDS;
  default: return edge->value == GP_STEP_TIED;
  }
}

bool gp_plan_sends(const gp_plan *plan, int32_t device, gp_step_phase phase, int32_t stage) {
  for (int32_t i = 0; i < plan->step_edge_count; i++)
    if (plan->step_edges[i].maker == device && is_sent(&plan->step_edges[i], phase, stage))
      return true;
  return false;
}

/* ---- uses ---------------------------------------------------------------------------------- */

/* Does a stage read the parameter? */
static bool reads_param(const gp_plan *plan, int32_t stage, int32_t param) {
  for (int k = 0; k < 2; k++)
    for (int32_t i = 0; i < plan->shapes[k].crossing_count; i++) {
      const gp_crossing *c = &plan->shapes[k].crossings[i];
      if (c->stage == stage && c->param == param) return true;
    }
  return false;
}

/* Is it the task of the stage and copy that own the parameter of an extra accumulator? */
static bool is_owner(const gp_plan *plan, const gp_task *task, int32_t extra) {
  const gp_layout_param *param = &plan->layout.at[plan->layout.extras[extra].param];
  return task->copy == param->owner && task->stage == param->stage;
}

/* Does task t, of a device that reads the edge, read its value? */
static bool is_read_by(const gp_plan *plan, const gp_step_edge *edge, const gp_task *task) {
  const bool computes = task->op <= GP_ACT_R || (task->op >= GP_ACT_C && task->op <= GP_ACT_S);
  switch (edge->value) {
  case GP_STEP_PARAM: return computes && reads_param(plan, task->stage, edge->number);
  case GP_STEP_VALUES:
  case GP_STEP_BUFFERS: return computes && task->copy != edge->copy && task->stage == edge->stage;
  case GP_STEP_GRADS:
  case GP_STEP_EXTRAS:
    return task->op == GP_ACT_REDUCE && task->copy == edge->to && task->stage == edge->stage;
  /* the first S waits for all of them: then no copy reads the buffers any more */
  case GP_STEP_RECORDS: return task->op == GP_ACT_S && task->stage == edge->stage;
  case GP_STEP_TIED: return task->op == GP_ACT_TIE && is_owner(plan, task, edge->number);
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
  return task->op == GP_ACT_SEND && is_sent(edge, (gp_step_phase)task->sends, task->stage);
}

/* A use of a step edge that task `task` gets. */
typedef struct step_use {
  int32_t task;
  gp_edge_use use;
} step_use;

typedef struct uses {
  gp_plan *plan;
  step_use *list; /* ascending in edges */
  size_t count, room;
} uses;

static gp_status add_use(uses *u, int32_t task, gp_edge_use use) {
  GP_TRY(gp_grow_array(u->count, &u->room, sizeof *u->list, (void **)&u->list));
  u->list[u->count++] = (step_use){task, use};
  return GP_OK;
}

static gp_status add_maker(uses *u, int32_t e) {
  const gp_plan *plan = u->plan;
  const gp_step_edge *edge = &plan->step_edges[e];
  for (int32_t t = plan->first[edge->maker]; t < plan->first[edge->maker + 1]; t++)
    if (is_made_by(plan, edge, t))
      return add_use(u, t, (gp_edge_use){.edge = plan->edge_count + e, .publish = true});
  return GP_OK;
}

/* The first task that reads it waits, the last one releases it: in a stream the first, because its
 * later tasks run again and again. */
static gp_status add_reads(uses *u, int32_t e, int32_t device) {
  const gp_plan *plan = u->plan;
  int32_t first = -1, last = -1;
  for (int32_t t = plan->first[device]; t < plan->first[device + 1]; t++) {
    if (!is_read_by(plan, &plan->step_edges[e], &plan->tasks[t])) continue;
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
    GP_TRY(add_maker(u, e));
    for (int32_t r = 0; r < edge->reader_count; r++)
      GP_TRY(add_reads(u, e, edge->readers[r].device));
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
  if (!status) status = merge(&u, more);
  gp_free(u.list);
  gp_free(more);
  return status;
}
