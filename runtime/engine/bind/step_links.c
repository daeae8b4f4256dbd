/* engine/bind/step_links.c - see step_links.h. */
#include "engine/bind/step_links.h"

#include "base/memory.h"
#include "base/tensor.h"
#include "engine/bind/links.h"
#include "engine/bind/votes.h"
#include "engine/state/pipeline.h"

/* ---- where values lie ------------------------------------------------------------------------ */

/* NULL where another rank holds the value. */
static char *start_of(const gp_tensor *value) { return value ? gp_tensor_data(value) : NULL; }

static char *at(char *area, size_t offset) { return area ? area + offset : NULL; }

/* Where the value lies in the maker's memory. */
static char *made_of(const gp_binding *b, const gp_step_edge *edge) {
  const gp_pipeline *p = b->pipeline;
  const gp_arena *a = edge->stage < 0 ? NULL : &p->arenas[edge->stage];
  switch (edge->value) {
  case GP_STEP_PARAM: return start_of(p->values[edge->number]);
  case GP_STEP_VALUES: return a->values[0];
  case GP_STEP_BUFFERS: return a->buffers[0];
  case GP_STEP_GRADS: return a->grads[1];
  case GP_STEP_EXTRAS: return a->extras[1];
  case GP_STEP_TIED: return at(a->extras[0], p->extras[edge->number].offset);
  case GP_STEP_VOTE: return (char *)b->votes[edge->maker];
  default: return (char *)&b->verdict[edge->maker];
  }
}

/* Where a reader that cannot read the maker's memory receives the value. */
static char *room_of(const gp_binding *b, const gp_step_edge *edge, const gp_step_reader *reader) {
  const gp_pipeline *p = b->pipeline;
  const gp_arena *a = edge->stage < 0 ? NULL : &p->arenas[edge->stage];
  switch (edge->value) {
  case GP_STEP_PARAM: return at(b->devices[reader->device].block, reader->area.offset);
  case GP_STEP_VALUES: return a->values[1];
  case GP_STEP_BUFFERS: return a->buffers[1];
  case GP_STEP_GRADS: return a->received_grads;
  case GP_STEP_EXTRAS: return a->received_extras;
  case GP_STEP_VOTE: return (char *)b->votes[edge->maker];
  case GP_STEP_VERDICT: return (char *)&b->verdict[reader->device];
  default: return p->extras[edge->number].received;
  }
}

/* Does the edge carry a vote or the verdict? These lie in host memory. */
static bool is_host(const gp_step_edge *edge) { return edge->stage < 0; }

static char *received_of(const gp_binding *b, const gp_step_edge *edge,
                         const gp_step_reader *reader) {
  const gp_pipeline *p = b->pipeline;
  const int32_t maker = gp_device_lane(p, edge->maker)->rank;
  const bool one_rank = maker == gp_device_lane(p, reader->device)->rank;
  const bool in_place =
      is_host(edge) ? one_rank : gp_plan_shares(b->plan, edge->maker, reader->device);
  return in_place ? made_of(b, edge) : room_of(b, edge, reader);
}

static size_t bytes_of(const gp_binding *b, const gp_step_edge *edge) {
  if (edge->value == GP_STEP_VOTE) return gp_vote_bytes(b, edge->maker);
  return edge->value == GP_STEP_VERDICT ? sizeof(gp_verdict) : edge->bytes;
}

/* ---- links --------------------------------------------------------------------------------- */

static gp_bound_channel *channel_of(const gp_binding *b, int32_t e) {
  return &b->channels[b->plan->edge_count + e];
}

/* Open the links of a step edge. It has one slot and one maker, whatever the copy. */
static gp_status open_edge(gp_binding *b, int32_t e) {
  const gp_step_edge *edge = &b->plan->step_edges[e];
  gp_bound_channel *channel = channel_of(b, e);
  size_t readers = (size_t)edge->reader_count;
  channel->makers[0] = channel->makers[1] = edge->maker;
  channel->made[0] = channel->made[1] = made_of(b, edge);
  GP_TRY(gp_alloc_array(1, sizeof(gp_link_word), (void **)&channel->words));
  GP_TRY(gp_alloc_array(readers, sizeof(gp_bound_link), (void **)&channel->links[0]));
  GP_TRY(gp_links_credit(b, b->plan->edge_count + e, 1));
  for (size_t r = 0; r < readers; r++) {
    const gp_step_reader *reader = &edge->readers[r];
    if (!gp_link_is_here(b, edge->maker, reader->device)) continue;
    gp_link_spec spec = {.from = gp_device_lane(b->pipeline, edge->maker),
                         .to = gp_device_lane(b->pipeline, reader->device),
                         .host = is_host(edge),
                         .slots = 1,
                         .uses = 1,
                         .bytes = bytes_of(b, edge),
                         .made = channel->made[0],
                         .received = received_of(b, edge, reader),
                         .words = channel->words,
                         .pool = b->pool};
    gp_bound_link *made = &channel->links[0][channel->link_count[0]];
    gp_links_address(b, b->plan->edge_count + e, reader->device, &spec);
    GP_TRY(gp_link_open(&spec, &made->link));
    made->reader = reader->device;
    channel->link_count[0]++;
  }
  return GP_OK;
}

gp_status gp_step_links_new(gp_binding *b) {
  for (int32_t e = 0; e < b->plan->step_edge_count; e++) GP_TRY(open_edge(b, e));
  return GP_OK;
}

void gp_step_links_move(gp_binding *b) {
  for (int32_t e = 0; e < b->plan->step_edge_count; e++) {
    const gp_step_edge *edge = &b->plan->step_edges[e];
    gp_bound_channel *channel = channel_of(b, e);
    channel->made[0] = channel->made[1] = made_of(b, edge);
    for (int32_t r = 0; r < edge->reader_count; r++) {
      gp_link *link = gp_links_find(b, b->plan->edge_count + e, 0, edge->readers[r].device);
      if (link) gp_link_move(link, channel->made[0], received_of(b, edge, &edge->readers[r]));
    }
  }
}

/* ---- looking up ------------------------------------------------------------------------------ */

static bool is_meant(const gp_step_edge *edge, gp_step_value value, int32_t number) {
  const bool copies = value >= GP_STEP_VALUES && value <= GP_STEP_EXTRAS;
  return edge->value == value && (copies ? edge->stage : edge->number) == number;
}

char *gp_step_edge_address(const gp_binding *b, int32_t e, int32_t device) {
  if (b->plan->step_edges[e].maker == device) return channel_of(b, e)->made[0];
  const gp_link *link = gp_links_find(b, b->plan->edge_count + e, 0, device);
  return link ? link->received : NULL;
}

char *gp_step_address(const gp_binding *b, gp_step_value value, int32_t number, int32_t device) {
  for (int32_t e = 0; e < b->plan->step_edge_count; e++)
    if (is_meant(&b->plan->step_edges[e], value, number)) return gp_step_edge_address(b, e, device);
  return NULL;
}
