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

static void ring_reader(void *worker) { gp_worker_ring(worker); }

/* Any copy may make the next value of a slot, or wait for the last credits at the end of a run. */
static void ring_makers(void *context) {
  const gp_binding *b = ((gp_bound_makers *)context)->binding;
  const gp_bound_channel *channel = ((gp_bound_makers *)context)->channel;
  for (int32_t copy = 0; copy < gp_plan_twins(b->plan); copy++)
    if (gp_device_is_here(b->pipeline, channel->makers[copy]))
      gp_worker_ring(&b->pipeline->workers[channel->makers[copy]]);
}

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
  const int32_t rank = rank_of(b, b->channels[c].makers[0]), twins = gp_plan_twins(plan);
  if (step) {
    for (int32_t r = 0; r < step->reader_count; r++)
      if (rank_of(b, step->readers[r].device) != rank) return true;
    return false;
  }
  const gp_edge *edge = gp_plan_edge(plan, gp_plan_channel_edge(plan, c));
  const int32_t first = gp_plan_channel_replica(plan, c) * twins;
  for (int32_t k = 0; k <= edge->to_count; k++)
    for (int32_t copy = first; copy < first + twins; copy++) {
      const int32_t stage = k ? edge->to[k - 1] : edge->from;
      if (rank_of(b, plan->placement[gp_plan_holder(plan, stage, copy)]) != rank) return true;
    }
  return false;
}

static void add_maker(gp_credits_spec *spec, int32_t rank) {
  for (int32_t i = 0; i < spec->maker_count; i++)
    if (spec->makers[i] == rank) return;
  spec->makers[spec->maker_count++] = rank;
}

gp_status gp_links_credit(gp_binding *b, int32_t c, int32_t copies) {
  gp_bound_channel *channel = &b->channels[c];
  if (!b->pipeline->spread || !is_shared(b, c)) return GP_OK;
  gp_credits_spec spec = {.port = b->ports + (uint64_t)c,
                          .words = channel->words,
                          .slots = step_edge_of(b->plan, c) ? 1 : b->plan->channels[c].slots,
                          .copies = copies,
                          .pool = b->pool,
                          .context = &channel->ringing};
  channel->ringing = (gp_bound_makers){b, channel};
  for (int32_t copy = 0; copy < copies; copy++) {
    if (gp_device_is_here(b->pipeline, channel->makers[copy]))
      spec.ring = ring_makers;
    else
      add_maker(&spec, rank_of(b, channel->makers[copy]));
  }
  return gp_credits_open(&spec, &channel->credits);
}

/* Ports of credits come first, then one for each channel, copy and reader. */
void gp_links_address(gp_binding *b, int32_t c, int32_t reader, gp_link_spec *spec) {
  const gp_plan *plan = b->plan;
  const uint64_t link = ((uint64_t)c * 2 + (uint64_t)spec->copy) * (uint64_t)plan->device_count;
  spec->port = b->ports + (uint64_t)gp_plan_channel_count(plan) + link + (uint64_t)reader;
  spec->credits = b->channels[c].credits;
  spec->ring = ring_reader;
  spec->context = &b->pipeline->workers[reader];
  if (!b->pipeline->spread) return;
  spec->bells = b->pipeline->spread->bells;
  spec->bell_count = plan->device_count;
  spec->from_bell = b->channels[c].makers[spec->copy];
  spec->to_bell = reader;
}
