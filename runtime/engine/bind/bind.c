/* engine/bind/bind.c - makes a binding: takes one block of memory on each device, then gives the
 * plan's areas their addresses. */
#include "base/memory.h"
#include "base/tensor.h"
#include "engine/bind/bind.h"
#include "engine/bind/constants.h"
#include "engine/bind/host_area.h"
#include "engine/bind/links.h"
#include "engine/bind/parts.h"
#include "engine/bind/segments.h"
#include "engine/bind/states.h"
#include "engine/bind/step_links.h"
#include "engine/bind/votes.h"
#include "engine/intake/intake.h"
#include "engine/memory/take.h"
#include "engine/state/binding.h"
#include "engine/state/pipeline.h"
#include "engine/watch/tags.h"

/* Take one block on each device, however many areas the plan has: if a device cannot hold the plan,
 * one allocation fails before anything runs. */
static gp_status take_blocks(gp_binding *b) {
  for (int32_t d = 0; d < b->plan->device_count; d++) {
    size_t bytes = b->plan->devices[d].bytes;
    if (bytes && gp_device_is_here(b->pipeline, d))
      GP_TRY(gp_pipeline_take(b->pipeline, gp_device_lane(b->pipeline, d), bytes,
                              (void **)&b->devices[d].block));
  }
  return GP_OK;
}

/* An empty area is NULL, so that reading one that the plan did not request faults at once; so is
 * one of another rank. */
static char *address(const gp_binding *b, int32_t device, const gp_area *area) {
  return area->bytes && b->devices[device].block ? b->devices[device].block + area->offset : NULL;
}

/* ---- addresses ----------------------------------------------------------------------------- */

static gp_status bind_channel(gp_binding *b, int32_t c) {
  const gp_plan *plan = b->plan;
  const gp_channel *from = &plan->channels[c];
  gp_bound_channel *to = &b->channels[c];
  GP_TRY(gp_alloc_array((size_t)plan->device_count, sizeof(char *), (void **)&to->fetched));
  GP_TRY(gp_alloc_array((size_t)from->slots, sizeof(gp_link_word), (void **)&to->words));
  to->maker = gp_plan_channel_maker(plan, c);
  to->made = address(b, from->home, &from->made);
  for (int32_t i = 0; i < from->fetch_count; i++)
    to->fetched[from->fetches[i].device] =
        address(b, from->fetches[i].device, &from->fetches[i].area);
  return GP_OK;
}

/* Set the addresses of one copy of a stage. */
static void bind_holder(gp_binding *b, int32_t h) {
  const gp_plan *plan = b->plan;
  int32_t device = plan->placement[h];
  for (int k = 0; k < 2; k++) {
    b->invariant[2 * h + k] = address(b, device, &plan->invariant[2 * h + k]);
    b->constant_copies[2 * h + k] = address(b, device, &plan->constants[2 * h + k]);
    b->states[2 * h + k] = address(b, device, &plan->states[2 * h + k]);
  }
  b->partials[h] = address(b, device, &plan->partials[h]);
  b->records[h] = address(b, device, &plan->records[h]);
  b->sent[h] = gp_exchange_at(b, device, &plan->sent[h]);
  b->stash[h] = address(b, device, &plan->versions[h].stash);
}

/* Set the address at which S finds the records of a copy, once links are there. */
static void bind_recorded(gp_binding *b, int32_t h) {
  const gp_plan *plan = b->plan;
  const int32_t stage = h / plan->copy_count, copy = h % plan->copy_count;
  const int32_t reader = plan->placement[gp_plan_holder(plan, stage, 0)];
  const gp_step_between between = {.stage = stage, .from = copy};
  b->recorded[h] = plan->placement[h] == reader
                       ? b->records[h]
                       : gp_step_copy_address(b, GP_STEP_RECORDS, &between);
}

/* Set the addresses of a stage's newest weights. */
static void bind_weights(gp_binding *b, int32_t h) {
  const gp_plan *plan = b->plan;
  const int32_t stage = h / plan->copy_count, copy = h % plan->copy_count;
  const gp_arena_copy *own = &b->pipeline->arenas[stage].copies[copy];
  /* what it does not own it receives there by step edges, or reads in place */
  b->values[h] = own->values;
  b->buffers[h] = own->buffers;
}

/* Note where the storage of each constant begins: strided constants keep their layout. */
static void bind_constants(gp_binding *b) {
  for (int32_t k = 0; k < gp_plan_constant_count(b->plan); k++) {
    const gp_tensor *tensor = gp_plan_constant(b->plan, k);
    const gp_meta *meta = gp_tensor_meta(tensor);
    b->constants[k] =
        (char *)gp_tensor_data(tensor) - (size_t)meta->offset * gp_dtype_size(meta->dtype);
  }
}

static void bind_device(gp_binding *b, int32_t d) {
  const gp_plan_device *from = &b->plan->devices[d];
  b->devices[d].scratch = address(b, d, &from->scratch);
  b->devices[d].staging = address(b, d, &from->staging.area);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Make room for the device's longest program: it runs one at a time. */
static gp_status make_calls(gp_binding *b, int32_t d) {
  const gp_plan *plan = b->plan;
  int32_t most = 0;
  for (int32_t t = plan->first[d]; t < plan->first[d + 1]; t++) {
    const gp_program *program = plan->tasks[t].program;
    if (program && program->instr_count > most) most = program->instr_count;
  }
  return gp_alloc_array((size_t)most + 1, sizeof(gp_call), (void **)&b->devices[d].calls);
}

/* ---- all of it ----------------------------------------------------------------------------- */

static gp_status make_room(gp_binding *b) {
  const gp_plan *plan = b->plan;
  size_t devices = (size_t)plan->device_count, stages = (size_t)plan->stage_count,
         edges = (size_t)gp_plan_channel_count(plan), holders = stages * (size_t)plan->copy_count;
  GP_TRY(gp_alloc_array(devices, sizeof(gp_bound_device), (void **)&b->devices));
  GP_TRY(gp_alloc_array(edges + 1, sizeof(gp_bound_channel), (void **)&b->channels));
  GP_TRY(gp_alloc_array(holders, sizeof(char *), (void **)&b->stash));
  if (plan->checks)
    GP_TRY(gp_alloc_array(devices * holders, sizeof(gp_step_check), (void **)&b->checks));
  GP_TRY(gp_alloc_array(holders, sizeof(char *), (void **)&b->values));
  GP_TRY(gp_alloc_array(holders, sizeof(char *), (void **)&b->buffers));
  GP_TRY(gp_alloc_array(2 * holders, sizeof(char *), (void **)&b->invariant));
  GP_TRY(gp_alloc_array(2 * holders, sizeof(char *), (void **)&b->constant_copies));
  GP_TRY(gp_alloc_array(2 * holders, sizeof(char *), (void **)&b->states));
  GP_TRY(gp_alloc_array(holders, sizeof(char *), (void **)&b->partials));
  GP_TRY(gp_alloc_array(holders, sizeof(char *), (void **)&b->records));
  GP_TRY(gp_alloc_array(holders, sizeof(char *), (void **)&b->recorded));
  GP_TRY(gp_alloc_array(holders, sizeof(char *), (void **)&b->sent));
  size_t constants = (size_t)gp_plan_constant_count(plan) + 1;
  return gp_alloc_array(constants, sizeof(char *), (void **)&b->constants);
}

static gp_status bind(gp_binding *b) {
  const gp_plan *plan = b->plan;
  GP_TRY(make_room(b));
  GP_TRY(take_blocks(b));
  for (int32_t d = 0; d < plan->device_count; d++) GP_TRY(gp_exchange_new(b, d));
  for (int32_t c = 0; c < gp_plan_value_channels(plan); c++) GP_TRY(bind_channel(b, c));
  for (int32_t h = 0; h < plan->stage_count * plan->copy_count; h++) bind_holder(b, h);
  for (int32_t d = 0; d < plan->device_count; d++) bind_device(b, d);
  bind_constants(b);
  for (int32_t d = 0; d < plan->device_count; d++) GP_TRY(make_calls(b, d));
  GP_TRY(gp_states_new(b));
  b->tag_bits = gp_tag_bits(plan);
  GP_TRY(gp_votes_new(b));
  GP_TRY(gp_links_new(b));
  GP_TRY(gp_parts_new(b));
  gp_votes_listen(b);
  for (int32_t h = 0; h < plan->stage_count * plan->copy_count; h++) {
    bind_weights(b, h);
    if (plan->records[h].bytes) bind_recorded(b, h);
  }
  for (int32_t d = 0; d < plan->device_count; d++) {
    if (gp_device_is_here(b->pipeline, d)) GP_TRY(gp_segments_new(b, d));
    GP_TRY(gp_host_area_new(b, d));
  }
  GP_TRY(gp_intakes_new(b));
  return gp_constants_load(b);
}

/* Free what bind made, also if it stopped half-way. */
static void give_back(gp_binding *b) {
  /* graphs first: they use what the rest made */
  for (int32_t d = 0; b->devices && d < b->plan->device_count; d++) gp_segments_free(b, d);
  gp_intakes_free(b);
  gp_links_free(b);
  gp_votes_free(b);
  gp_states_free(b);
  for (int32_t d = 0; b->devices && d < b->plan->device_count; d++) {
    gp_host_area_free(b, d);
    gp_exchange_free(b, d);
  }
  for (int32_t d = 0; b->devices && d < b->plan->device_count; d++)
    if (b->devices[d].block)
      gp_pipeline_give(b->pipeline, gp_device_lane(b->pipeline, d), b->devices[d].block,
                       b->plan->devices[d].bytes);
  for (int32_t e = 0; b->channels && e < gp_plan_channel_count(b->plan); e++) {
    gp_free(b->channels[e].fetched);
    gp_free(b->channels[e].words);
  }
  for (int32_t d = 0; b->devices && d < b->plan->device_count; d++) gp_free(b->devices[d].calls);
  gp_free(b->devices);
  gp_free(b->channels);
  gp_free(b->stash);
  gp_free(b->checks);
  gp_free(b->values);
  gp_free(b->buffers);
  gp_free(b->invariant);
  gp_free(b->constant_copies);
  gp_free(b->states);
  gp_free(b->partials);
  gp_free(b->records);
  gp_free(b->recorded);
  gp_free(b->sent);
  gp_free(b->parts);
  gp_free(b->constants);
  gp_free(b);
}

gp_status gp_bind(gp_pipeline *pipeline, gp_plan *plan, gp_binding **binding) {
  gp_binding *made;
  GP_TRY(gp_alloc(sizeof *made, (void **)&made));
  if (pipeline->spread) made->ports = pipeline->spread->plan_ports;
  made->pipeline = pipeline;
  made->plan = plan;
  gp_status status = bind(made);
  if (status) return give_back(made), status;
  *binding = made;
  return GP_OK;
}

void gp_binding_move(gp_binding *b) {
  gp_links_move(b);
  for (int32_t d = 0; d < b->plan->device_count; d++) gp_segments_forget(b, d);
}

void gp_unbind(gp_binding *binding) {
  gp_plan *plan = binding->plan;
  give_back(binding);
  gp_plan_free(plan);
}

gp_binding *gp_pipeline_binding(const gp_pipeline *p, const gp_plan *plan) {
  for (int32_t i = 0; i < p->binding_count; i++)
    if (p->bindings[i]->plan == plan) return p->bindings[i];
  return NULL;
}
