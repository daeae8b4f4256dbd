/* engine/bind/step_links.c - see step_links.h. */
#include "engine/bind/step_links.h"

#include "base/memory.h"
#include "base/tensor.h"
#include "engine/bind/links.h"
#include "engine/bind/parts.h"
#include "engine/bind/votes.h"
#include "engine/memory/arena.h"
#include "engine/state/pipeline.h"
#include "plan/gathers.h"

/* ---- where values lie ------------------------------------------------------------------------ */

/* NULL where another rank holds the value. */
static char *start_of(const gp_tensor *value) { return value ? gp_tensor_data(value) : NULL; }

static char *at(char *area, size_t offset) { return area ? area + offset : NULL; }

/* Every rank has room for the checks of all copies, as each device makes or receives them. */
static char *check_of(const gp_binding *b, const gp_step_edge *edge, int32_t device) {
  const int32_t holders = b->plan->stage_count * b->plan->copy_count;
  const int32_t holder = gp_plan_holder(b->plan, edge->stage, edge->copy);
  return (char *)&b->checks[(size_t)device * (size_t)holders + (size_t)holder];
}

/* Where the value lies in the maker's memory. */
static char *made_of(const gp_binding *b, const gp_step_edge *edge) {
  const gp_pipeline *p = b->pipeline;
  const gp_arena *a = edge->stage < 0 ? NULL : &p->arenas[edge->stage];
  switch (edge->value) {
  case GP_STEP_PARAM:
    return edge->half ? at(a->halves, edge->offset) : start_of(p->values[edge->number]);
  case GP_STEP_VALUES: return at(a->copies[edge->copy].values, edge->offset);
  case GP_STEP_BUFFERS: return a->copies[edge->copy].buffers;
  case GP_STEP_BROUGHT: return NULL; /* it has no bytes */
  case GP_STEP_GRADS: return at(a->copies[edge->copy].grads, edge->offset);
  case GP_STEP_EXTRAS: return a->copies[edge->copy].extras;
  case GP_STEP_RECORDS: return b->records[gp_plan_holder(b->plan, edge->stage, edge->copy)];
  case GP_STEP_CHECK: return check_of(b, edge, edge->maker);
  case GP_STEP_GATHER:
    return at(b->sent[gp_plan_holder(b->plan, edge->stage, edge->copy)],
              b->plan->gathers[edge->number].offset);
  case GP_STEP_TIED: {
    const gp_extra_slot *extra = &p->extras[edge->number];
    return at(a->copies[p->layout.at[extra->param].owner].extras, extra->offset);
  }
  case GP_STEP_VOTE: return (char *)b->votes[edge->maker];
  default: return (char *)&b->verdict[edge->maker];
  }
}

/* The part of a copy among those that the reading copy receives, one behind the other. */
static char *part_of(const gp_binding *b, const gp_step_edge *edge, char *received) {
  const size_t part = gp_arena_part(b->pipeline, edge->stage, edge->to, edge->copy);
  return at(received, part * edge->bytes);
}

/* The same for a bucket of such a part. */
static char *bucket_of(const gp_binding *b, const gp_step_edge *edge, char *received) {
  const gp_pipeline *p = b->pipeline;
  const gp_layout_slice *own = &p->layout.slices[edge->stage * p->copy_count + edge->to];
  const size_t part = gp_arena_part(p, edge->stage, edge->to, edge->copy);
  return at(received, part * own->grads + (edge->offset - own->begin));
}

/* The copy of the edge's stage on a reading device. */
static const gp_arena_copy *copy_on(const gp_binding *b, const gp_step_edge *edge, int32_t device) {
  const int32_t copy = gp_plan_copy_on(b->plan, edge->stage, device);
  return &b->pipeline->arenas[edge->stage].copies[copy];
}

/* Where a reader that cannot read the maker's memory receives the value. */
static char *room_of(const gp_binding *b, const gp_step_edge *edge, const gp_step_reader *reader) {
  const gp_pipeline *p = b->pipeline;
  switch (edge->value) {
  case GP_STEP_PARAM:
  case GP_STEP_RECORDS: return at(b->devices[reader->device].block, reader->area.offset);
  case GP_STEP_GATHER: return gp_exchange_at(b, reader->device, &reader->area);
  case GP_STEP_VALUES:
    if (reader->area.bytes) return at(b->devices[reader->device].block, reader->area.offset);
    return at(copy_on(b, edge, reader->device)->values, edge->offset);
  case GP_STEP_BUFFERS: return copy_on(b, edge, reader->device)->buffers;
  case GP_STEP_GRADS: return bucket_of(b, edge, copy_on(b, edge, reader->device)->received_grads);
  case GP_STEP_EXTRAS: return part_of(b, edge, copy_on(b, edge, reader->device)->received_extras);
  case GP_STEP_CHECK: return check_of(b, edge, reader->device);
  case GP_STEP_VOTE: return (char *)b->votes[edge->maker];
  case GP_STEP_VERDICT: return (char *)&b->verdict[reader->device];
  default: return p->extras[edge->number].received;
  }
}

/* Does the edge carry a vote, the verdict, a check, or a part of a gather? These lie in host
 * memory. */
static bool is_host(const gp_step_edge *edge) {
  return edge->stage < 0 || edge->value == GP_STEP_GATHER || edge->value == GP_STEP_CHECK;
}

static char *received_of(const gp_binding *b, const gp_step_edge *edge,
                         const gp_step_reader *reader) {
  const gp_pipeline *p = b->pipeline;
  const int32_t maker = gp_device_lane(p, edge->maker)->rank;
  const bool one_rank = maker == gp_device_lane(p, reader->device)->rank;
  const bool in_place =
      is_host(edge) ? one_rank : gp_plan_shares(b->plan, edge->maker, reader->device);
  return in_place ? made_of(b, edge) : room_of(b, edge, reader);
}

/* Extra accumulators may have become more since the plan was made; it sends those that it knows. */
static size_t bytes_of(const gp_binding *b, const gp_step_edge *edge, size_t reader) {
  if (edge->value == GP_STEP_VOTE) return gp_vote_bytes(b, edge->maker);
  if (edge->value == GP_STEP_VERDICT) return sizeof(gp_verdict);
  return edge->readers[reader].follows ? 0 : edge->bytes;
}

/* ---- links --------------------------------------------------------------------------------- */

static int32_t number_of(const gp_plan *plan, int32_t e) {
  return gp_plan_value_channels(plan) + e;
}

static gp_bound_channel *channel_of(const gp_binding *b, int32_t e) {
  return &b->channels[number_of(b->plan, e)];
}

/* Open the links of a step edge. */
static gp_status open_edge(gp_binding *b, int32_t e) {
  const gp_step_edge *edge = &b->plan->step_edges[e];
  gp_bound_channel *channel = channel_of(b, e);
  const size_t readers = (size_t)edge->reader_count;
  const int32_t slots = gp_step_slots(b->plan, edge);
  channel->maker = edge->maker;
  channel->made = made_of(b, edge);
  GP_TRY(gp_alloc_array((size_t)slots, sizeof(gp_link_word), (void **)&channel->words));
  GP_TRY(gp_alloc_array(readers, sizeof(gp_bound_link), (void **)&channel->links));
  GP_TRY(gp_links_credit(b, number_of(b->plan, e)));
  for (size_t r = 0; r < readers; r++) {
    const gp_step_reader *reader = &edge->readers[r];
    if (!gp_link_is_here(b, edge->maker, reader->device)) continue;
    gp_link_spec spec = {.from = gp_device_lane(b->pipeline, edge->maker),
                         .to = gp_device_lane(b->pipeline, reader->device),
                         .host = is_host(edge),
                         .slots = slots,
                         .uses = 1,
                         .bytes = bytes_of(b, edge, r),
                         .made = channel->made,
                         .received = received_of(b, edge, reader),
                         .stays = edge->value != GP_STEP_EXTRAS, /* they may grow */
                         .words = channel->words,
                         .pool = b->pool};
    gp_bound_link *made = &channel->links[channel->link_count];
    gp_links_address(b, number_of(b->plan, e), reader->device, &spec);
    GP_TRY(gp_link_open(&spec, &made->link));
    made->reader = reader->device;
    channel->link_count++;
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
    channel->made = made_of(b, edge);
    for (int32_t r = 0; r < edge->reader_count; r++) {
      gp_link *link = gp_links_find(b, number_of(b->plan, e), edge->readers[r].device);
      if (link) gp_link_move(link, channel->made, received_of(b, edge, &edge->readers[r]));
    }
  }
}

/* ---- looking up ------------------------------------------------------------------------------ */

char *gp_step_edge_address(const gp_binding *b, int32_t e, int32_t device) {
  if (b->plan->step_edges[e].maker == device) return channel_of(b, e)->made;
  const gp_link *link = gp_links_find(b, number_of(b->plan, e), device);
  return link ? link->received : NULL;
}

char *gp_step_address(const gp_binding *b, gp_step_value value, int32_t number, int32_t device) {
  const gp_step_edge *edges = b->plan->step_edges;
  for (int32_t e = 0; e < b->plan->step_edge_count; e++)
    if (edges[e].value == value && edges[e].number == number)
      return gp_step_edge_address(b, e, device);
  return NULL;
}

char *gp_step_copy_address(const gp_binding *b, gp_step_value value, const gp_step_between *w) {
  const int32_t device = b->plan->placement[gp_plan_holder(b->plan, w->stage, w->to)];
  for (int32_t e = 0; e < b->plan->step_edge_count; e++) {
    const gp_step_edge *edge = &b->plan->step_edges[e];
    if (edge->value == value && edge->stage == w->stage && edge->copy == w->from &&
        edge->to == w->to)
      return gp_step_edge_address(b, e, device);
  }
  return NULL;
}
