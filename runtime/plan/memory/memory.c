/* plan/memory/memory.c - everything that the runs of a plan need on a device, as areas of one
 * block.
 *
 * Every part takes the next offset of its device's block; the engine asks each device once for the
 * whole block. So the prediction equals the allocation, to the byte.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/tensor.h"
#include "plan/channels.h"
#include "plan/edge/step_edges.h"
#include "plan/gathers.h"
#include "plan/memory/work.h"
#include "plan/records.h"

enum { ALIGNMENT = GP_PLAN_ALIGNMENT };

/* A plan whose memory is laid out. */
typedef struct layout {
  gp_plan *plan;
} layout;

/* Take the next count * bytes behind *end. */
static gp_status take(size_t *end, size_t count, size_t bytes, gp_area *area) {
  size_t total;
  GP_TRY(gp_size_mul(count, bytes, &total));
  *area = (gp_area){.offset = *end, .bytes = total};
  GP_TRY(gp_size_align(total, ALIGNMENT, &total));
  return gp_size_add(*end, total, end);
}

/* Take the next count * bytes of a device's block. */
static gp_status want(layout *l, int32_t device, size_t count, size_t bytes, gp_area *area) {
  return take(&l->plan->devices[device].bytes, count, bytes, area);
}

/* Take room for parts of gathers, which lie in the host's memory. */
static gp_status want_parts(layout *l, int32_t device, size_t bytes, gp_area *area) {
  gp_plan_device *own = &l->plan->devices[device];
  return take(gp_plan_on_host(l->plan, device) ? &own->bytes : &own->exchange.parts, 1, bytes,
              area);
}

/* ---- channels ------------------------------------------------------------------------------ */

gp_status gp_plan_edge_bytes(const gp_plan *plan, int32_t edge, int size, size_t *bytes) {
  const gp_shape_plan *shape = &plan->shapes[size];
  int32_t own = edge - shape->first_edge;
  *bytes = 0;
  if (!shape->stages || own < 0 || own >= shape->stages->edge_count) return GP_OK;
  gp_ref value = shape->stages->edges[own].value;
  return gp_size_align(gp_meta_bytes(&shape->trace->graph.values[value].meta), 64, bytes);
}

static gp_status want_slots(layout *l, const gp_channel *channel, int32_t device, gp_area *area) {
  return want(l, device, (size_t)channel->slots, channel->bytes, area);
}

static bool is_fetched(const gp_channel *channel, int32_t device) {
  for (int32_t i = 0; i < channel->fetch_count; i++)
    if (channel->fetches[i].device == device) return true;
  return false;
}

/* Take slots for one copy of a stage that reads the edge. A device fetches a value once, for all
 * stages that read it there. */
static gp_status want_fetch(layout *l, int32_t c, int32_t stage, int32_t copy) {
  gp_channel *channel = &l->plan->channels[c];
  int32_t device = l->plan->placement[gp_plan_holder(l->plan, stage, copy)];
  size_t n = (size_t)channel->fetch_count;
  if (!gp_plan_channel_leads_to(l->plan, c, stage, copy)) return GP_OK;
  if (gp_plan_shares(l->plan, gp_plan_channel_maker(l->plan, c), device)) return GP_OK;
  if (is_fetched(channel, device)) return GP_OK;
  GP_TRY(gp_resize_array(n, n + 1, sizeof(gp_fetch), (void **)&channel->fetches));
  gp_fetch *fetch = &channel->fetches[channel->fetch_count++];
  fetch->device = device;
  return want_slots(l, channel, device, &fetch->area);
}

/* Do the two copies whose first one makes the channel's values make them in one memory? */
static bool is_twin_near(const gp_plan *plan, int32_t c) {
  return gp_plan_twins(plan) > 1 &&
         gp_plan_shares(plan, gp_plan_channel_maker(plan, c),
                        gp_plan_channel_maker(plan, c + plan->edge_count));
}

/* Take the slots of two copies, of which some may be the same, in the block of the first one's
 * device. */
static gp_status want_twins(layout *l, gp_channel *one, gp_channel *other) {
  const size_t slots = (size_t)one->slots, more = (size_t)other->slots;
  const size_t both = (size_t)abs(one->overlap), bytes = one->bytes;
  const bool begins = one->overlap > 0; /* with slots of the other */
  gp_area all;
  GP_TRY(want(l, one->home, slots + more - both, bytes, &all));
  one->made = (gp_area){all.offset + (begins ? (more - both) * bytes : 0), slots * bytes};
  other->made = (gp_area){all.offset + (begins ? 0 : (slots - both) * bytes), more * bytes};
  other->home = one->home;
  return GP_OK;
}

/* Take the slots that the maker writes. */
static gp_status want_made(layout *l, int32_t c) {
  const gp_plan *plan = l->plan;
  gp_channel *channel = &plan->channels[c];
  const bool is_second = gp_plan_channel_copy(plan, c) % gp_plan_twins(plan) > 0;
  if (is_second && is_twin_near(plan, c - plan->edge_count)) return GP_OK; /* they are taken */
  channel->home = gp_plan_channel_maker(plan, c);
  if (is_second || !is_twin_near(plan, c))
    return want_slots(l, channel, channel->home, &channel->made);
  return want_twins(l, channel, channel + plan->edge_count);
}

/* Take the slots of a channel, on its maker's device and on each device that cannot read them
 * there; they fit both sizes of micro-batches. */
static gp_status want_channel(layout *l, int32_t c) {
  gp_plan *plan = l->plan;
  gp_channel *channel = &plan->channels[c];
  const int32_t e = gp_plan_channel_edge(plan, c);
  const gp_edge *edge = gp_plan_edge(plan, e);
  for (int k = 0; k < 2; k++) {
    size_t bytes;
    GP_TRY(gp_plan_edge_bytes(plan, e, k, &bytes));
    if (bytes > channel->bytes) channel->bytes = bytes;
  }
  GP_TRY(want_made(l, c));
  for (int32_t copy = 0; copy < plan->copy_count; copy++)
    for (int32_t r = 0; r < edge->to_count; r++) GP_TRY(want_fetch(l, c, edge->to[r], copy));
  return GP_OK;
}

/* Take room for a parameter that crosses, or for the records or parts of another copy, on each
 * device that cannot read it in place; in a stream also for new values, which the device takes over
 * when it has stashed the old ones. What else joins copies and tied gradients has room in the
 * pipeline. */
static gp_status want_step_edge(layout *l, int32_t e) {
  const gp_step_edge *edge = &l->plan->step_edges[e];
  const bool gathers = edge->value == GP_STEP_GATHER;
  const bool taken = edge->value == GP_STEP_PARAM || edge->value == GP_STEP_RECORDS ||
                     (edge->value == GP_STEP_VALUES && gp_plan_shares_updates(l->plan));
  for (int32_t r = 0; r < edge->reader_count; r++) {
    gp_step_reader *reader = &edge->readers[r];
    if (taken && !gp_plan_shares(l->plan, edge->maker, reader->device))
      GP_TRY(want(l, reader->device, (size_t)gp_step_slots(l->plan, edge), edge->bytes,
                  &reader->area));
    if (gathers && !gp_plan_parts_in_place(l->plan, edge->maker, reader->device))
      GP_TRY(want_parts(l, reader->device, edge->bytes, &reader->area));
  }
  return GP_OK;
}

/* ---- what a stage keeps ---------------------------------------------------------------------- */

/* Measure the slots of a stage's copy: they fit micro-batches of both sizes. */
static void size_slots(gp_plan *plan, int32_t holder) {
  gp_slots *slots = &plan->slots[holder];
  for (int k = 0; k < 2; k++) {
    if (!plan->shapes[k].programs) continue;
    const gp_stage_programs *s = &plan->shapes[k].programs[holder / plan->copy_count];
    for (int kind = 0; kind < GP_SLOT_KINDS; kind++) {
      const size_t wanted = gp_stage_slot_bytes(s, kind);
      if (wanted > slots->bytes[kind]) slots->bytes[kind] = wanted;
    }
  }
}

/* Take what P makes, for each live version of the weights; constants and states; partial sums of
 * gradients; what F records; what other replicas gather of it; and the older versions of the
 * weights themselves. */
static gp_status want_weights(layout *l, int32_t holder) {
  gp_plan *plan = l->plan;
  int32_t stage = holder / plan->copy_count, device = plan->placement[holder];
  gp_versions *v = &plan->versions[holder];
  for (int k = 0; k < 2; k++) {
    const gp_stage_programs *programs = plan->shapes[k].programs;
    if (!programs) continue;
    GP_TRY(want(l, device, (size_t)v->live, programs[stage].invariant_bytes,
                &plan->invariant[2 * holder + k]));
    GP_TRY(want(l, device, 1, programs[stage].constant_bytes, &plan->constants[2 * holder + k]));
    if (gp_plan_on_host(plan, device))
      GP_TRY(want(l, device, 1, programs[stage].state_bytes, &plan->states[2 * holder + k]));
  }
  GP_TRY(want(l, device, (size_t)plan->partial_count[holder], gp_plan_partial_bytes(plan, stage),
              &plan->partials[holder]));
  if (plan->active[holder])
    GP_TRY(want(l, device, (size_t)plan->record_rounds[stage], gp_plan_records_bytes(plan, stage),
                &plan->records[holder]));
  GP_TRY(want_parts(l, device, gp_plan_gathered_bytes(plan, stage), &plan->sent[holder]));
  return want(l, device, (size_t)v->live - 1, v->stash_bytes, &v->stash);
}

/* ---- what a device needs once -------------------------------------------------------------- */

/* Grow what programs of a device that works in the host's memory share: one scratch per thread. */
static void grow_scratch(gp_plan *plan, const gp_program *program, int32_t device) {
  if (!program || !gp_plan_on_host(plan, device)) return;
  if (program->scratch_bytes > plan->scratch_bytes) plan->scratch_bytes = program->scratch_bytes;
}

static void note_read(int32_t base, int32_t first, uint32_t *read) {
  if (base >= first && base < first + GP_MAX_BATCH_TENSORS) *read |= 1u << (base - first);
}

/* Note which inputs, targets and gradients of outputs a program reads. */
static void note_reads(const gp_program *program, gp_staging *staging) {
  for (int32_t n = 0; program && n < program->instr_count; n++)
    for (int i = 0; i < program->instrs[n].call.n_in; i++) {
      int32_t base = program->instrs[n].in[i].base;
      note_read(base, GP_BASE_INPUT, &staging->inputs);
      note_read(base, GP_BASE_TARGET, &staging->targets);
      note_read(base, GP_BASE_OUT_GRAD, &staging->out_grads);
    }
}

/* Take a place for each micro-batch, of the size of a larger one. */
static gp_status place_rows(const gp_plan *plan, const gp_meta *meta, size_t *offset, size_t *end) {
  size_t bytes;
  *offset = *end;
  GP_TRY(gp_size_mul(gp_plan_padded(gp_meta_bytes(meta)), (size_t)plan->step_micros, &bytes));
  return gp_size_add(*end, bytes, end);
}

static void place_bytes(size_t bytes, size_t *offset, size_t *end) {
  *offset = *end;
  *end += gp_plan_padded(bytes);
}

/* Place the inputs, targets and gradients of outputs that the device reads. */
static gp_status place_read(const gp_plan *plan, gp_staging *staging) {
  const gp_graph *graph = &plan->shapes[0].trace->graph;
  for (gp_ref r = 0; r < graph->value_count; r++) {
    const gp_value *value = &graph->values[r];
    const int32_t k = value->index;
    size_t *place = NULL;
    if (value->kind == GP_VALUE_INPUT && staging->inputs >> k & 1) place = &staging->input[k];
    if (value->kind == GP_VALUE_TARGET && staging->targets >> k & 1) place = &staging->target[k];
    if (value->kind == GP_VALUE_OUT_GRAD && staging->out_grads >> k & 1)
      place = &staging->out_grad[k];
    if (place) GP_TRY(place_rows(plan, &value->meta, place, &staging->bytes));
  }
  return GP_OK;
}

static gp_status place_outputs(const gp_plan *plan, gp_staging *staging) {
  const gp_shape_plan *shape = &plan->shapes[0];
  staging->results = staging->bytes;
  for (int k = 0; k < shape->output_count; k++)
    GP_TRY(place_rows(plan, &shape->trace->graph.values[shape->outputs[k]].meta,
                      &staging->output[k], &staging->bytes));
  for (int k = 0; k < shape->input_grad_count; k++)
    if (shape->input_grads[k] != GP_NONE)
      GP_TRY(place_rows(plan, &shape->trace->graph.values[shape->input_grads[k]].meta,
                        &staging->input_grad[k], &staging->bytes));
  return GP_OK;
}

/* Lay out a device's staging buffer in the order that gp_staging says (areas.h); the room for
 * losses and counts is the same on every device. */
static gp_status want_staging(layout *l, int32_t device) {
  gp_plan *plan = l->plan;
  gp_staging *staging = &plan->devices[device].staging;
  size_t cells = (size_t)plan->step_micros * (size_t)plan->copy_count;
  if (gp_plan_on_host(plan, device)) return GP_OK;
  for (int32_t t = plan->first[device]; t < plan->first[device + 1]; t++)
    note_reads(plan->tasks[t].program, staging);
  place_bytes(cells * sizeof(gp_step_block), &staging->blocks, &staging->bytes);
  GP_TRY(place_read(plan, staging));
  place_bytes(sizeof(int64_t[2]), &staging->fault, &staging->bytes);
  place_bytes((size_t)plan->step_micros * sizeof(double), &staging->losses, &staging->bytes);
  place_bytes(cells * sizeof(int64_t), &staging->counts, &staging->bytes);
  GP_TRY(place_outputs(plan, staging));
  return want(l, device, (size_t)gp_plan_batch_room(plan), staging->bytes, &staging->area);
}

/* Make room for the largest result of a gather of the device's stages. */
static void want_result(gp_plan *plan, int32_t holder) {
  gp_plan_exchange *exchange = &plan->devices[plan->placement[holder]].exchange;
  if (gp_plan_on_host(plan, plan->placement[holder])) return;
  for (int32_t j = 0; j < plan->gather_count; j++) {
    const gp_plan_gather *gather = &plan->gathers[j];
    if (gather->stage != holder / plan->copy_count) continue;
    const size_t bytes = gp_plan_gather_result(plan, gather);
    if (bytes > exchange->result) exchange->result = bytes;
  }
}

static gp_status want_device(layout *l, int32_t device) {
  gp_plan *plan = l->plan;
  gp_plan_device *own = &plan->devices[device];
  for (int32_t t = plan->first[device]; t < plan->first[device + 1]; t++)
    grow_scratch(plan, plan->tasks[t].program, device);
  GP_TRY(gp_plan_add_work(plan, device));
  if (!plan->shares) GP_TRY(want(l, device, 1, own->work.bytes, &own->work));
  GP_TRY(want_staging(l, device));
  return want(l, device, 1, own->spec.scratch, &own->scratch);
}

/* ---- all of it ----------------------------------------------------------------------------- */

gp_status gp_plan_add_memory(gp_plan *plan) {
  layout l = {.plan = plan};
  for (int32_t c = 0; c < gp_plan_value_channels(plan); c++) GP_TRY(want_channel(&l, c));
  for (int32_t e = 0; e < plan->step_edge_count; e++) GP_TRY(want_step_edge(&l, e));
  for (int32_t h = 0; h < plan->stage_count * plan->copy_count; h++) {
    size_slots(plan, h);
    GP_TRY(want_weights(&l, h));
    want_result(plan, h);
  }
  for (int32_t d = 0; d < plan->device_count; d++) GP_TRY(want_device(&l, d));
  return GP_OK;
}

/* ---- what devices answer ------------------------------------------------------------------- */

/* The scratch lies behind everything else, so it may be known last. */
gp_status gp_plan_set_scratch(gp_plan *plan, int32_t device, size_t bytes) {
  gp_plan_device *own = &plan->devices[device];
  own->bytes = own->scratch.offset;
  own->spec.scratch = bytes;
  return want(&(layout){plan}, device, 1, bytes, &own->scratch);
}

/* Number a task's program among those that a plan can have. */
static size_t program_cell(const gp_plan *plan, const gp_task *task) {
  size_t holder = (size_t)gp_plan_holder(plan, task->stage, task->copy);
  size_t row = (2 * holder + (size_t)task->shape) * GP_ACT_COUNT + (size_t)task->op;
  return 2 * row + task->kept;
}

gp_status gp_plan_each_program(const gp_plan *plan, int32_t device, gp_program_visit visit,
                               void *context) {
  size_t holders = (size_t)(plan->stage_count * plan->copy_count);
  bool *seen;
  gp_status status = GP_OK;
  GP_TRY(gp_alloc_array(4 * GP_ACT_COUNT * holders, sizeof *seen, (void **)&seen));
  for (int32_t t = plan->first[device]; !status && t < plan->first[device + 1]; t++) {
    const gp_task *task = &plan->tasks[t];
    bool *here = &seen[program_cell(plan, task)];
    if (task->program && !*here) status = visit(context, task->program);
    *here = true;
  }
  gp_free(seen);
  return status;
}
