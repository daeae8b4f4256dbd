/* engine/bind/parts.c - see parts.h. */
#include "engine/bind/parts.h"

#include "base/memory.h"
#include "engine/bind/links.h"
#include "engine/bind/step_links.h"
#include "engine/state/pipeline.h"
#include "plan/gathers.h"

/* ---- the exchange of a device ---------------------------------------------------------------- */

gp_status gp_exchange_new(gp_binding *b, int32_t d) {
  const gp_plan_exchange *own = &b->plan->devices[d].exchange;
  if (!own->result || !gp_device_is_here(b->pipeline, d)) return GP_OK;
  return gp_lane_host_alloc(gp_device_lane(b->pipeline, d), own->parts + own->result,
                            (void **)&b->devices[d].exchange);
}

void gp_exchange_free(gp_binding *b, int32_t d) {
  if (b->devices[d].exchange)
    gp_lane_host_free(gp_device_lane(b->pipeline, d), b->devices[d].exchange);
}

char *gp_exchange_at(const gp_binding *b, int32_t d, const gp_area *area) {
  const gp_bound_device *own = &b->devices[d];
  char *memory = own->exchange ? own->exchange : own->block;
  return area->bytes && memory ? memory + area->offset : NULL;
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* Bind the part of the maker of step edge e for one device, the maker's or a reader's. */
static void bind_part(const gp_binding *b, int32_t e, int32_t device, gp_bound_part *part) {
  const gp_plan *plan = b->plan;
  const int32_t c = gp_plan_value_channels(plan) + e;
  gp_bound_channel *channel = &b->channels[c];
  part->address = gp_step_edge_address(b, e, device);
  part->use = (gp_bound_use){.channel = channel,
                             .link = gp_links_find(b, c, device),
                             .parties = (uint32_t)plan->step_edges[e].reader_count};
  bool plain = true;
  for (int32_t i = 0; i < channel->link_count; i++) plain &= channel->links[i].link->plain;
  part->use.plain = plain;
}

/* Bind a copy's part for every replica that is here. */
static void bind_gather(const gp_binding *b, int32_t e) {
  const gp_plan *plan = b->plan;
  const gp_step_edge *edge = &plan->step_edges[e];
  const int32_t replica = edge->copy / gp_plan_twins(plan);
  for (int32_t r = 0; r < plan->replicas; r++) {
    const int32_t copy = gp_plan_copy_in(plan, edge->copy, r);
    const int32_t device = plan->placement[gp_plan_holder(plan, edge->stage, copy)];
    if (gp_device_is_here(b->pipeline, device))
      bind_part(b, e, device, gp_binding_parts(b, copy, edge->number) + replica);
  }
}

gp_status gp_parts_new(gp_binding *b) {
  const gp_plan *plan = b->plan;
  const size_t gathers = (size_t)plan->gather_count, copies = (size_t)plan->copy_count;
  if (!gathers) return GP_OK;
  GP_TRY(gp_alloc_array(copies * gathers * (size_t)plan->replicas, sizeof *b->parts,
                        (void **)&b->parts));
  for (int32_t e = 0; e < plan->step_edge_count; e++)
    if (plan->step_edges[e].value == GP_STEP_GATHER) bind_gather(b, e);
  return GP_OK;
}

void gp_parts_begin(const gp_binding *b) {
  const int32_t count = b->plan->copy_count * b->plan->gather_count * b->plan->replicas;
  for (int32_t i = 0; i < count; i++) b->parts[i].use.turn = (gp_link_turn){0};
}
