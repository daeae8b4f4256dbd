/* plan/edge/step_edges.c - see step_edges.h. */
#include "plan/edge/step_edges.h"

#include <string.h>

#include "base/memory.h"
#include "base/tensor.h"
#include "graph/param.h"
#include "plan/edge/buckets.h"
#include "plan/gathers.h"
#include "plan/records.h"

const char *gp_step_edge_name(const gp_step_edge *edge) {
  static const char *const names[] = {"a shared parameter",
                                      "the parameters of another copy",
                                      "the buffers of the first copy",
                                      "what another device has brought",
                                      "the gradients of another copy",
                                      "the extra gradients of another copy",
                                      "the records of another copy",
                                      "the check of gradients that another copy owns",
                                      "what all replicas gather",
                                      "the gradient of a shared parameter",
                                      "the vote on the update",
                                      "the verdict on the update"};
  return edge->half ? "the halves of a shared parameter" : names[edge->value];
}

int32_t gp_plan_decider(const gp_plan *plan) { return plan->placement[0]; }

/* ---- edges --------------------------------------------------------------------------------- */

typedef struct builder {
  gp_plan *plan;
  const gp_layout *layout;
  size_t bucket;   /* least bytes; 0: the default */
  int32_t *leader; /* per device, for the stage at hand: the first one with the same memory */
  bool *follows;   /* per device: that one brings something for it */
  size_t room;
} builder;

/* Append an edge that is given; it counts once it has a reader. A device runs one copy of a stage,
 * so that the maker tells which. */
static gp_status add_reader(builder *b, const gp_step_edge *like, int32_t device) {
  gp_plan *plan = b->plan;
  size_t count = (size_t)plan->step_edge_count;
  gp_step_edge *edge = count ? &plan->step_edges[count - 1] : NULL;
  if (device == like->maker) return GP_OK;
  if (!edge || edge->value != like->value || edge->stage != like->stage ||
      edge->number != like->number || edge->maker != like->maker || edge->to != like->to ||
      edge->half != like->half) {
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

/* The parameters that cross, or their halves, each with all of its readers: they are few. */
static gp_status add_param(builder *b, int32_t param, bool half) {
  const gp_plan *plan = b->plan;
  const gp_layout_param *at = &b->layout->at[param];
  const size_t bytes = gp_meta_bytes(gp_param_meta(b->layout->params[param]));
  const gp_step_edge edge = {.value = GP_STEP_PARAM,
                             .stage = at->stage,
                             .number = param,
                             .maker = plan->placement[gp_plan_holder(plan, at->stage, at->owner)],
                             .half = half,
                             .offset = half ? at->offset / 2 : 0,
                             .bytes = half ? bytes / 2 : bytes};
  for (int k = 0; k < 2; k++)
    for (int32_t i = 0; i < plan->shapes[k].crossing_count; i++) {
      const gp_crossing *c = &plan->shapes[k].crossings[i];
      if (c->param != param || c->half != half) continue;
      for (int32_t copy = 0; copy < plan->copy_count; copy++) {
        int32_t holder = gp_plan_holder(plan, c->stage, copy);
        if (plan->active[holder]) GP_TRY(add_reader(b, &edge, plan->placement[holder]));
      }
    }
  return GP_OK;
}

static gp_status add_params(builder *b) {
  for (int32_t i = 0; b->layout->crossing_count && i < b->layout->param_count; i++)
    for (int half = 0; half < 2; half++)
      if (half ? b->layout->at[i].half_crossing : b->layout->at[i].crossing)
        GP_TRY(add_param(b, i, half));
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

/* The gradients that a copy owns, bucket by bucket, from all other copies. */
static gp_status add_gradients(builder *b, int32_t stage, int32_t copy) {
  gp_step_edge grads = {.value = GP_STEP_GRADS, .stage = stage, .to = copy};
  const gp_layout_slice *own = &b->layout->slices[gp_plan_holder(b->plan, stage, copy)];
  const size_t end = own->begin + own->grads;
  for (grads.offset = own->begin; grads.offset < end; grads.offset += grads.bytes, grads.number++) {
    const int32_t holder = gp_plan_holder(b->plan, stage, copy);
    grads.bytes = gp_bucket_bytes(b->layout, holder, grads.offset, b->bucket);
    GP_TRY(add_inward(b, &grads));
  }
  return GP_OK;
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
  GP_TRY(add_gradients(b, stage, copy));
  const gp_step_edge extras = {.value = GP_STEP_EXTRAS,
                               .stage = stage,
                               .to = copy,
                               .bytes = owns_extras(b->layout, stage, copy) ? sizes->extras : 0};
  return add_inward(b, &extras);
}

/* In a stream all copies skip an update whose gradients are not finite: those that own gradients
 * tell the others. */
static gp_status add_checks(builder *b, int32_t stage) {
  const gp_plan *plan = b->plan;
  for (int32_t copy = 0; plan->checks && copy < plan->copy_count; copy++) {
    const gp_step_edge check = {.value = GP_STEP_CHECK,
                                .stage = stage,
                                .copy = copy,
                                .number = copy,
                                .maker = device_of(plan, stage, copy),
                                .bytes = sizeof(gp_step_check)};
    if (!b->layout->slices[gp_plan_holder(plan, stage, copy)].grads) continue;
    for (int32_t other = 0; other < plan->copy_count; other++)
      GP_TRY(add_reader(b, &check, device_of(plan, stage, other)));
  }
  return GP_OK;
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

/* ---- what one device brings for others ------------------------------------------------------- */

static bool is_active(const gp_plan *plan, int32_t stage, int32_t copy) {
  return plan->active[gp_plan_holder(plan, stage, copy)];
}

/* Find, for the devices of a stage, the first one with the same memory. */
static void find_leaders(const builder *b, int32_t stage) {
  const gp_plan *plan = b->plan;
  for (int32_t copy = 0; copy < plan->copy_count; copy++) {
    const int32_t device = device_of(plan, stage, copy);
    int32_t first = 0;
    if (!is_active(plan, stage, copy)) continue;
    while (!is_active(plan, stage, first) ||
           !gp_plan_shares(plan, device_of(plan, stage, first), device))
      first++;
    b->leader[device] = device_of(plan, stage, first);
    b->follows[device] = false;
  }
}

/* Mark the readers of an edge for which another one brings the value. */
static void mark_followers(const builder *b, const gp_step_edge *edge) {
  for (int32_t r = 0; r < edge->reader_count; r++) {
    gp_step_reader *reader = &edge->readers[r];
    const bool in_place = gp_plan_shares(b->plan, edge->maker, reader->device);
    reader->follows = !in_place && b->leader[reader->device] != reader->device;
    b->follows[reader->device] |= reader->follows;
  }
}

/* From a device to those for which it brings values of the stage. */
static gp_status add_brought(builder *b, int32_t stage, int32_t leader) {
  const gp_plan *plan = b->plan;
  const gp_step_edge brought = {.value = GP_STEP_BROUGHT, .stage = stage, .maker = leader};
  for (int32_t copy = 0; copy < plan->copy_count; copy++) {
    const int32_t device = device_of(plan, stage, copy);
    if (is_active(plan, stage, copy) && b->follows[device] && b->leader[device] == leader)
      GP_TRY(add_reader(b, &brought, device));
  }
  return GP_OK;
}

/* Do copies of a stage in one memory share the room for what crosses? */
static bool has_one_room(const gp_plan *plan, const gp_step_edge *edge) {
  return edge->value == GP_STEP_BUFFERS || (edge->value == GP_STEP_VALUES && !plan->layout.apart);
}

/* first: the first edge of the stage that joins copies. */
static gp_status join_readers(builder *b, int32_t stage, int32_t first) {
  const gp_plan *plan = b->plan;
  find_leaders(b, stage);
  for (int32_t e = first; e < plan->step_edge_count; e++)
    if (has_one_room(plan, &plan->step_edges[e])) mark_followers(b, &plan->step_edges[e]);
  for (int32_t copy = 0; copy < plan->copy_count; copy++) {
    const int32_t device = device_of(plan, stage, copy);
    if (is_active(plan, stage, copy) && b->leader[device] == device)
      GP_TRY(add_brought(b, stage, device));
  }
  return GP_OK;
}

bool gp_plan_takes(const gp_plan *plan, int32_t device, int32_t stage) {
  for (int32_t e = 0; plan->layout.apart && e < plan->step_edge_count; e++) {
    const gp_step_edge *edge = &plan->step_edges[e];
    if (edge->value != GP_STEP_VALUES || edge->stage != stage) continue;
    for (int32_t r = 0; r < edge->reader_count; r++)
      if (edge->readers[r].device == device) return true;
  }
  return false;
}

bool gp_step_is_brought_by(const gp_plan *plan, const gp_step_edge *edge, int32_t device) {
  if (gp_plan_shares(plan, edge->maker, device)) return false;
  for (int32_t e = 0; e < plan->step_edge_count; e++) {
    const gp_step_edge *brought = &plan->step_edges[e];
    if (brought->value == GP_STEP_BROUGHT && brought->stage == edge->stage &&
        brought->maker == device)
      return true;
  }
  return false;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static gp_status add_copies(builder *b) {
  const gp_plan *plan = b->plan;
  for (int32_t s = 0; plan->copy_count > 1 && s < plan->stage_count; s++) {
    const int32_t first = plan->step_edge_count;
    for (int32_t copy = 0; copy < plan->copy_count; copy++) GP_TRY(add_owner(b, s, copy));
    GP_TRY(join_readers(b, s, first));
    if (gp_plan_trains(plan->kind)) GP_TRY(add_records(b, s));
    GP_TRY(add_checks(b, s));
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
  builder b = {.plan = plan, .layout = env->layout, .bucket = env->bucket};
  const size_t devices = (size_t)plan->device_count;
  gp_status status = gp_alloc_array(devices, sizeof *b.leader, (void **)&b.leader);
  if (!status) status = gp_alloc_array(devices, sizeof *b.follows, (void **)&b.follows);
  if (!status) status = add_params(&b);
  if (!status) status = add_copies(&b);
  if (!status && tied) status = add_tied(&b);
  if (!status && plan->decides) status = add_votes(&b);
  gp_free(b.leader);
  gp_free(b.follows);
  return status;
}

void gp_plan_free_step_edges(gp_plan *plan) {
  for (int32_t i = 0; i < plan->step_edge_count; i++) gp_free(plan->step_edges[i].readers);
  gp_free(plan->step_edges);
}

/* ---- what SEND publishes --------------------------------------------------------------------- */

bool gp_step_is_sent(const gp_plan *plan, const gp_step_edge *edge, gp_step_phase phase,
                     int32_t stage) {
  const bool sums = edge->value == GP_STEP_GRADS || edge->value == GP_STEP_EXTRAS;
  const bool records = edge->value == GP_STEP_RECORDS, turns = gp_step_turns(plan, edge);
  switch (phase) {
  case GP_STEP_AT_BEGIN: return edge->value <= GP_STEP_BUFFERS;
  case GP_STEP_AT_BROUGHT: return edge->value == GP_STEP_BROUGHT;
  case GP_STEP_AT_REDUCE: return sums;
  case GP_STEP_OF_STAGE: return (sums || (records && turns)) && edge->stage == stage;
  case GP_STEP_AT_LATE: return records && !turns;
  default: return edge->value == GP_STEP_TIED;
  }
}

bool gp_plan_sends(const gp_plan *plan, int32_t device, gp_step_phase phase, int32_t stage) {
  for (int32_t i = 0; i < plan->step_edge_count; i++) {
    const gp_step_edge *edge = &plan->step_edges[i];
    if (edge->maker == device && gp_step_is_sent(plan, edge, phase, stage)) return true;
  }
  return false;
}
