/* engine/gpu/wiring.c - see wiring.h: making and giving back, guests. */
#include "engine/gpu/wiring.h"

#include "base/memory.h"
#include "base/tensor.h"
#include "device/gpus.h"
#include "graph/param.h"

/* ---- links --------------------------------------------------------------------------------- */

/* Devices that hold a stage of the edge. */
static bool is_party(const gp_plan *plan, int32_t edge, int32_t device) {
  const gp_edge *e = gp_plan_edge(plan, edge);
  for (int32_t i = -1; i < e->to_count; i++)
    for (int32_t copy = 0; copy < plan->copy_count; copy++)
      if (plan->placement[gp_plan_holder(plan, i < 0 ? e->from : e->to[i], copy)] == device)
        return true;
  return false;
}

/* Does it join several devices of which one is a GPU? */
static bool needs_link(const gp_wiring *w, const gp_plan *plan, int32_t edge) {
  int32_t parties = 0, gpus = 0;
  for (int32_t d = 0; d < w->device_count; d++) {
    if (!is_party(plan, edge, d)) continue;
    parties++;
    gpus += gp_lane_is_gpu(gp_wiring_lane(w, d));
  }
  return parties > 1 && gpus > 0;
}

/* An event on the GPU of a device; none on a CPU device. */
static gp_status make_event(const gp_lane *lane, gp_gpu_event **event) {
  return gp_lane_is_gpu(lane) ? lane->api->event_new(lane->gpu, false, event) : GP_OK;
}

/* Events for both ends of one slot: a device that has to do with neither gets none. */
static gp_status make_link(gp_wiring *w, const gp_plan *plan, int32_t edge, gp_link *link) {
  size_t devices = (size_t)w->device_count;
  link->maker = -1;
  GP_TRY(gp_alloc_array(devices, sizeof(bool), (void **)&link->has));
  GP_TRY(gp_alloc_array(devices, sizeof(bool), (void **)&link->used));
  GP_TRY(gp_alloc_array(devices, sizeof(gp_gpu_event *), (void **)&link->made));
  GP_TRY(gp_alloc_array(devices, sizeof(gp_gpu_event *), (void **)&link->arrived));
  GP_TRY(gp_alloc_array(devices, sizeof(gp_gpu_event *), (void **)&link->freed));
  for (int32_t d = 0; d < w->device_count; d++) {
    if (!is_party(plan, edge, d)) continue;
    GP_TRY(make_event(gp_wiring_lane(w, d), &link->made[d]));
    GP_TRY(make_event(gp_wiring_lane(w, d), &link->arrived[d]));
    GP_TRY(make_event(gp_wiring_lane(w, d), &link->freed[d]));
  }
  return GP_OK;
}

/* An edge of which all ends are CPU devices needs no events: words in memory do. */
static gp_status make_links(gp_wiring *w, const gp_plan *plan, int32_t edge) {
  const gp_channel *channel = &plan->channels[edge];
  size_t slots = (size_t)channel->slots;
  if (!needs_link(w, plan, edge) || !slots) return GP_OK;
  GP_TRY(gp_alloc_array(slots, sizeof(gp_link), (void **)&w->links[edge]));
  for (int32_t k = 0; k < channel->slots; k++) GP_TRY(make_link(w, plan, edge, &w->links[edge][k]));
  return GP_OK;
}

/* ---- devices ------------------------------------------------------------------------------- */

/* Must `to` send somebody to fetch from `from`? */
static bool needs_courier(const gp_wiring *w, const gp_plan *plan, int32_t to, int32_t from) {
  const gp_lane *a = gp_wiring_lane(w, to), *b = gp_wiring_lane(w, from);
  if (!gp_lane_is_gpu(b) || gp_lane_shares(a, b)) return false;
  if (gp_lane_is_gpu(a) && a->api->reaches(a->gpu, b->gpu)) return false;
  for (int32_t e = 0; e < plan->edge_count; e++)
    if (is_party(plan, e, to) && is_party(plan, e, from)) return true;
  return false;
}

/* Pinned slots for what passes through the host on its way to a GPU. */
static gp_status make_staging(gp_wiring *w, const gp_plan *plan, int32_t to, int32_t from) {
  for (int32_t e = 0; e < plan->edge_count && gp_lane_is_gpu(gp_wiring_lane(w, to)); e++) {
    const gp_channel *channel = &plan->channels[e];
    char **staging = &w->devices[to].staging[e];
    if (*staging || !channel->bytes || !is_party(plan, e, to) || !is_party(plan, e, from)) continue;
    GP_TRY(w->api->host_alloc((size_t)channel->slots * channel->bytes, (void **)staging));
  }
  return GP_OK;
}

/* For GPUs that this one cannot reach: the CPU's reader has one for every GPU. */
static gp_status make_couriers(gp_wiring *w, const gp_plan *plan, int32_t to) {
  gp_wired_device *device = &w->devices[to];
  GP_TRY(gp_alloc_array((size_t)w->device_count, sizeof(gp_courier), (void **)&device->courier));
  GP_TRY(gp_alloc_array((size_t)w->edge_count + 1, sizeof(char *), (void **)&device->staging));
  for (int32_t from = 0; from < w->device_count; from++) {
    gp_device_name name;
    gp_courier *courier = &device->courier[from];
    if (!needs_courier(w, plan, to, from)) continue;
    GP_TRY(gp_device_parse(gp_wiring_lane(w, from)->name, &name));
    GP_TRY(w->api->open(&name.spec, &courier->gpu));
    GP_TRY(w->api->event_new(courier->gpu, false, &courier->brought));
    GP_TRY(make_staging(w, plan, to, from));
  }
  return GP_OK;
}

/* Its end of the desk, and graphs where the addresses of a task are the same in every mini-batch. */
static gp_status make_desk(gp_wiring *w, const gp_plan *plan, int32_t d) {
  gp_wired_device *device = &w->devices[d];
  const gp_lane *lane = gp_wiring_lane(w, d);
  size_t tasks = (size_t)(plan->first[d + 1] - plan->first[d]);
  if (!gp_lane_is_gpu(lane)) return GP_OK;
  GP_TRY(w->api->host_alloc(plan->devices[d].desk.area.bytes, (void **)&device->pinned));
  GP_TRY(
      gp_alloc_array((size_t)plan->step_micros, sizeof(gp_gpu_event *), (void **)&device->arrived));
  GP_TRY(gp_alloc_array((size_t)plan->step_micros, sizeof(gp_gpu_event *),
                        (void **)&device->computed));
  bool outputs = plan->shapes[0].output != GP_NONE;
  for (int32_t i = 0; i < plan->step_micros; i++) {
    GP_TRY(make_event(lane, &device->arrived[i]));
    if (outputs) GP_TRY(make_event(lane, &device->computed[i]));
  }
  if (gp_plan_streams(plan)) return GP_OK;
  return gp_alloc_array(tasks + 1, sizeof(gp_replay), (void **)&device->replays);
}

/* ---- tags ---------------------------------------------------------------------------------- */

/* Tags have 32 bits: the kind, the instruction, and the task with what is left. */
static int32_t bits_of_instrs(const gp_plan *plan) {
  int32_t most = 1, bits = 1;
  for (int32_t t = 0; t < plan->first[plan->device_count]; t++) {
    const gp_program *program = plan->tasks[t].program;
    if (program && program->instr_count > most) most = program->instr_count;
  }
  while (most >> bits) bits++;
  return bits + 1;
}

/* The reverse of what execute.c puts together. */
gp_tag gp_tag_read(const gp_binding *binding, int32_t device, uint32_t tag) {
  int32_t bits = binding->wiring->task_bits;
  return (gp_tag){.task = binding->plan->first[device] + (int32_t)(tag >> bits),
                  .instr = (int32_t)(tag & ((1u << bits) - 1)) >> 1,
                  .finite = tag & 1};
}

/* ---- constants ------------------------------------------------------------------------------- */

/* Guests that never change: the storage of each constant, whole. */
static gp_status load_constants(const gp_binding *binding, int32_t holder, int k) {
  const gp_plan *plan = binding->plan;
  const gp_shape_plan *shape = &plan->shapes[k];
  const gp_lane *lane = gp_wiring_lane(binding->wiring, plan->placement[holder]);
  if (!shape->programs) return GP_OK;
  const gp_stage_programs *own = &shape->programs[holder / plan->copy_count];
  for (int32_t i = 0; i < own->guest_count; i++) {
    const gp_value *value = &shape->trace->graph.values[own->guests[i].value];
    if (value->kind != GP_VALUE_CONST) continue;
    const gp_tensor *tensor = shape->trace->graph.constants[value->index];
    const gp_meta *meta = gp_tensor_meta(tensor);
    char *from = (char *)gp_tensor_data(tensor) - (size_t)meta->offset * gp_dtype_size(meta->dtype);
    char *to = binding->guests[2 * holder + k] + own->guests[i].offset;
    GP_TRY(gp_lane_copy(lane, to, from, gp_tensor_bytes(tensor)));
    GP_TRY(gp_lane_sync(lane));
  }
  return GP_OK;
}

/* ---- guests -------------------------------------------------------------------------------- */

/* Parameters and constants that lie elsewhere, into the stage's own copies. */
static gp_status refresh_holder(gp_worker *worker, const gp_binding *binding, int32_t holder,
                                int k) {
  const gp_pipeline *p = worker->pipeline;
  const gp_plan *plan = binding->plan;
  const gp_shape_plan *shape = &plan->shapes[k];
  if (!shape->programs) return GP_OK;
  const gp_stage_programs *own = &shape->programs[holder / plan->copy_count];
  for (int32_t i = 0; i < own->guest_count; i++) {
    const gp_value *value = &shape->trace->graph.values[own->guests[i].value];
    if (value->kind != GP_VALUE_PARAM) continue;
    int32_t param = gp_pipeline_find(p, shape->trace->graph.params[value->index]);
    const gp_tensor *tensor = p->values[param];
    GP_TRY(gp_lane_take(&worker->lane, binding->guests[2 * holder + k] + own->guests[i].offset,
                        gp_stage_lane(p, p->param_stage[param], 0), gp_tensor_data(tensor),
                        gp_meta_bytes(gp_tensor_meta(tensor))));
  }
  return GP_OK;
}

gp_status gp_guests_refresh(gp_worker *worker, const gp_binding *binding) {
  const gp_plan *plan = binding->plan;
  for (int32_t h = 0; h < plan->stage_count * plan->copy_count; h++)
    for (int k = 0; k < 2 && plan->placement[h] == worker->device; k++)
      GP_TRY(refresh_holder(worker, binding, h, k));
  return GP_OK;
}

/* ---- all of it ----------------------------------------------------------------------------- */

/* In the order in which parts need each other; what was made before a failure is given back by free. */
static gp_status build(gp_binding *binding) {
  gp_wiring *w = binding->wiring;
  const gp_plan *plan = binding->plan;
  GP_TRY(gp_alloc_array((size_t)w->edge_count + 1, sizeof(gp_link *), (void **)&w->links));
  GP_TRY(gp_alloc_array((size_t)w->device_count, sizeof(gp_wired_device), (void **)&w->devices));
  w->task_bits = bits_of_instrs(plan);
  for (int32_t d = 0; d < w->device_count; d++) {
    GP_TRY(make_couriers(w, plan, d));
    GP_TRY(make_desk(w, plan, d));
  }
  for (int32_t e = 0; e < w->edge_count; e++) GP_TRY(make_links(w, plan, e));
  for (int32_t h = 0; h < plan->stage_count * plan->copy_count; h++)
    for (int k = 0; k < 2; k++) GP_TRY(load_constants(binding, h, k));
  return GP_OK;
}

/* It is part of the binding first, so that giving that back gives back what there is of it. */
gp_status gp_wiring_new(gp_binding *binding) {
  gp_pipeline *p = binding->pipeline;
  const gp_plan *plan = binding->plan;
  const gp_gpu_api *api = NULL;
  for (int32_t d = 0; d < plan->device_count; d++)
    if (gp_lane_is_gpu(&p->workers[d].lane)) api = p->workers[d].lane.api;
  if (!api) return GP_OK;
  GP_TRY(gp_alloc(sizeof *binding->wiring, (void **)&binding->wiring));
  binding->wiring->pipeline = p;
  binding->wiring->api = api;
  binding->wiring->device_count = plan->device_count;
  binding->wiring->edge_count = plan->edge_count;
  return build(binding);
}

/* Of a list that may be half filled, or not there. */
static void free_events(const gp_wiring *w, gp_gpu_event **events, int32_t count) {
  for (int32_t i = 0; events && i < count; i++)
    if (events[i]) w->api->event_free(events[i]);
  gp_free(events);
}

static void free_link(const gp_wiring *w, gp_link *link) {
  gp_free(link->has);
  gp_free(link->used);
  free_events(w, link->made, w->device_count);
  free_events(w, link->arrived, w->device_count);
  free_events(w, link->freed, w->device_count);
}

/* Graphs first: they hold what the rest made. */
static void forget(const gp_wiring *w, const gp_plan *plan, int32_t d) {
  gp_replay *replays = w->devices[d].replays;
  for (int32_t t = 0; replays && t < plan->first[d + 1] - plan->first[d]; t++) {
    if (replays[t].graph) w->api->graph_free(replays[t].graph);
    replays[t] = (gp_replay){0};
  }
}

void gp_wiring_forget(gp_binding *binding) {
  const gp_wiring *w = binding->wiring;
  for (int32_t d = 0; w && d < w->device_count; d++) forget(w, binding->plan, d);
}

static void free_device(const gp_wiring *w, const gp_plan *plan, int32_t d) {
  gp_wired_device *device = &w->devices[d];
  forget(w, plan, d);
  for (int32_t from = 0; device->courier && from < w->device_count; from++) {
    gp_courier *courier = &device->courier[from];
    if (courier->brought) w->api->event_free(courier->brought);
    if (courier->gpu) w->api->close(courier->gpu);
  }
  for (int32_t e = 0; device->staging && e < w->edge_count; e++)
    if (device->staging[e]) w->api->host_free(device->staging[e]);
  if (device->pinned) w->api->host_free(device->pinned);
  free_events(w, device->arrived, plan->step_micros);
  free_events(w, device->computed, plan->step_micros);
  gp_free(device->replays);
  gp_free(device->courier);
  gp_free(device->staging);
}

void gp_wiring_free(gp_binding *binding) {
  gp_wiring *w = binding->wiring;
  const gp_plan *plan = binding->plan;
  if (!w) return;
  for (int32_t e = 0; w->links && e < w->edge_count; e++) {
    for (int32_t k = 0; w->links[e] && k < plan->channels[e].slots; k++)
      free_link(w, &w->links[e][k]);
    gp_free(w->links[e]);
  }
  for (int32_t d = 0; w->devices && d < w->device_count; d++) free_device(w, plan, d);
  gp_free(w->links);
  gp_free(w->devices);
  gp_free(w);
  binding->wiring = NULL;
}
