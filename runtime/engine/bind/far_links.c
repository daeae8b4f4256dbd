/* engine/bind/far_links.c - what the links of a channel need if they lead to other ranks: numbers
 * of ports, credits, and what wakes the workers here.
 *
 * Every rank binds the same plan, so it gives the same link the same number. */
#include "base/memory.h"
#include "device/link/ranks/credits.h"
#include "engine/bind/links.h"
#include "engine/state/pipeline.h"
#include "engine/worker/worker.h"
#include "plan/edge/step_edges.h"
#include "ranks/ranks.h"

bool gp_link_is_here(const gp_binding *b, int32_t maker, int32_t reader) {
  return gp_device_is_here(b->pipeline, maker) || gp_device_is_here(b->pipeline, reader);
}

/* ---- waking ---------------------------------------------------------------------------------- */

static void ring(void *worker) { gp_worker_ring(worker); }

/* ---- credits --------------------------------------------------------------------------------- */

static int32_t rank_of(const gp_binding *b, int32_t device) {
  return gp_device_lane(b->pipeline, device)->rank;
}

/* The step edge of a channel; NULL for a channel of the model's edges. */
static const gp_step_edge *step_edge_of(const gp_plan *plan, int32_t c) {
  const int32_t values = gp_plan_value_channels(plan);
  return c < values ? NULL : &plan->step_edges[c - values];
}

/* Does the channel join ranks? */
static bool is_shared(const gp_binding *b, int32_t c) {
  const gp_plan *plan = b->plan;
  const gp_step_edge *step = step_edge_of(plan, c);
  const int32_t rank = rank_of(b, b->channels[c].maker);
  if (step) {
    for (int32_t r = 0; r < step->reader_count; r++)
      if (rank_of(b, step->readers[r].device) != rank) return true;
    return false;
  }
  const gp_edge *edge = gp_plan_edge(plan, gp_plan_channel_edge(plan, c));
  for (int32_t copy = 0; copy < plan->copy_count; copy++)
    for (int32_t r = 0; r < edge->to_count; r++)
      if (gp_plan_channel_leads_to(plan, c, edge->to[r], copy) &&
          rank_of(b, plan->placement[gp_plan_holder(plan, edge->to[r], copy)]) != rank)
        return true;
  return false;
}

gp_status gp_links_credit(gp_binding *b, int32_t c) {
  gp_bound_channel *channel = &b->channels[c];
  const gp_step_edge *step = step_edge_of(b->plan, c);
  if (!b->pipeline->spread || !is_shared(b, c)) return GP_OK;
  gp_credits_spec spec = {.port = b->ports + (uint64_t)c,
                          .words = channel->words,
                          .slots = step ? gp_step_slots(b->plan, step) : b->plan->channels[c].slots,
                          .maker = rank_of(b, channel->maker),
                          .pool = b->pool,
                          .context = &b->pipeline->workers[channel->maker]};
  if (gp_device_is_here(b->pipeline, channel->maker)) spec.ring = ring;
  return gp_credits_open(&spec, &channel->credits);
}

/* Ports of credits come first, then one for each channel and reader. */
void gp_links_address(gp_binding *b, int32_t c, int32_t reader, gp_link_spec *spec) {
  const gp_plan *plan = b->plan;
  const uint64_t link = (uint64_t)c * (uint64_t)plan->device_count;
  spec->port = b->ports + (uint64_t)gp_plan_channel_count(plan) + link + (uint64_t)reader;
  spec->credits = b->channels[c].credits;
  spec->ring = ring;
  spec->context = &b->pipeline->workers[reader];
  if (!b->pipeline->spread) return;
  spec->bells = b->pipeline->spread->bells;
  spec->bell_count = plan->device_count;
  spec->from_bell = b->channels[c].maker;
  spec->to_bell = reader;
}
