/* engine/bind/links.c - the links of a plan's edges: one for each (channel, making device, reading
 * device).
 *
 * The maker's device is a reader too, whether its stages use the values or not: its own last use
 * counts like those of others.
 */
#include "base/memory.h"
#include "device/link/ranks/credits.h"
#include "device/link/pool.h"
#include "engine/bind/links.h"
#include "engine/bind/step_links.h"
#include "engine/state/pipeline.h"

/* A linear search: an edge has few readers. */
gp_link *gp_links_find(const gp_binding *b, int32_t c, int32_t device) {
  const gp_bound_channel *channel = &b->channels[c];
  for (int32_t i = 0; i < channel->link_count; i++)
    if (channel->links[i].reader == device) return channel->links[i].link;
  return NULL;
}

/* ---- making -------------------------------------------------------------------------------- */

/* Does a copy of a stage on the device take the channel's values? */
static bool is_read_on(const gp_plan *plan, int32_t c, int32_t stage, int32_t device) {
  for (int32_t copy = 0; copy < plan->copy_count; copy++)
    if (plan->placement[gp_plan_holder(plan, stage, copy)] == device &&
        gp_plan_channel_leads_to(plan, c, stage, copy))
      return true;
  return false;
}

/* Count the channel's stages that lie on the device, the making stage among them. */
static uint32_t uses_of(const gp_plan *plan, int32_t c, int32_t device) {
  const gp_edge *edge = gp_plan_edge(plan, gp_plan_channel_edge(plan, c));
  uint32_t uses = gp_plan_channel_maker(plan, c) == device;
  for (int32_t i = 0; i < edge->to_count; i++) uses += is_read_on(plan, c, edge->to[i], device);
  return uses;
}

/* Open the link to a device, unless it is open. There is room for all readers; link_count goes up
 * last, so that it counts open links only. */
static gp_status add_link(gp_binding *b, int32_t c, int32_t device) {
  const gp_channel *from = &b->plan->channels[c];
  gp_bound_channel *channel = &b->channels[c];
  int32_t maker = channel->maker;
  bool in_place = gp_plan_shares(b->plan, maker, device);
  if (gp_links_find(b, c, device) || !gp_link_is_here(b, maker, device)) return GP_OK;
  gp_link_spec spec = {.from = gp_device_lane(b->pipeline, maker),
                       .to = gp_device_lane(b->pipeline, device),
                       .slots = from->slots,
                       .uses = uses_of(b->plan, c, device),
                       .bytes = from->bytes,
                       .made = channel->made,
                       .received = in_place ? channel->made : channel->fetched[device],
                       .may_own = true,
                       .stays = true,
                       .words = channel->words,
                       .pool = b->pool};
  gp_links_address(b, c, device, &spec);
  gp_bound_link *made = &channel->links[channel->link_count];
  GP_TRY(gp_link_open(&spec, &made->link));
  made->reader = device;
  channel->link_count++;
  return GP_OK;
}

static gp_status link_channel(gp_binding *b, int32_t c) {
  const gp_plan *plan = b->plan;
  const gp_edge *edge = gp_plan_edge(plan, gp_plan_channel_edge(plan, c));
  gp_bound_channel *channel = &b->channels[c];
  const size_t readers = (size_t)edge->to_count * (size_t)gp_plan_twins(plan);
  GP_TRY(gp_links_credit(b, c));
  GP_TRY(gp_alloc_array(readers + 1, sizeof(gp_bound_link), (void **)&channel->links));
  GP_TRY(add_link(b, c, channel->maker));
  for (int32_t copy = 0; copy < plan->copy_count; copy++)
    for (int32_t i = 0; i < edge->to_count; i++)
      if (gp_plan_channel_leads_to(plan, c, edge->to[i], copy))
        GP_TRY(add_link(b, c, plan->placement[gp_plan_holder(plan, edge->to[i], copy)]));
  return GP_OK;
}

/* ---- each device's ends ---------------------------------------------------------------------- */

static bool wants_care(const gp_link *link) { return link->ops->poll || link->ops->settle; }

/* Count an end that needs its worker's care, or, once there is room for it, note it. */
static void note_end(gp_binding *b, int32_t d, gp_bound_end end, bool count) {
  gp_bound_device *device = &b->devices[d];
  device->quiet |= end.link->quiet;
  if (!wants_care(end.link) || !gp_device_is_here(b->pipeline, d)) return;
  if (!count) device->ends[device->end_count] = end;
  device->end_count++;
}

static void note_ends(gp_binding *b, bool count) {
  for (int32_t c = 0; c < gp_plan_channel_count(b->plan); c++)
    for (int32_t i = 0; i < b->channels[c].link_count; i++) {
      const gp_bound_link *one = &b->channels[c].links[i];
      note_end(b, b->channels[c].maker, (gp_bound_end){one->link, GP_LINK_MAKER}, count);
      note_end(b, one->reader, (gp_bound_end){one->link, GP_LINK_READER}, count);
    }
}

static gp_status list_ends(gp_binding *b) {
  note_ends(b, true);
  for (int32_t d = 0; d < b->plan->device_count; d++) {
    gp_bound_device *device = &b->devices[d];
    GP_TRY(gp_alloc_array((size_t)device->end_count + 1, sizeof(gp_bound_end),
                          (void **)&device->ends));
    device->end_count = 0;
  }
  note_ends(b, false);
  return GP_OK;
}

/* ---- each task's edges ----------------------------------------------------------------------- */

/* Are all links of the edge plain? A slot is acquired from all of them, so that one link that has
 * to be called decides for the edge. */
static bool is_plain(const gp_bound_channel *channel) {
  for (int32_t i = 0; i < channel->link_count; i++)
    if (!channel->links[i].link->plain) return false;
  return true;
}

/* Look up once what an action would look up. In a stream the micro-batch changes, and with it the
 * slot; the rest stays. */
static gp_bound_use bind_use(const gp_binding *b, const gp_task *task, int32_t edge,
                             int32_t device) {
  const gp_plan *plan = b->plan;
  const bool once = edge >= plan->edge_count;
  const int32_t c = gp_plan_channel_at(plan, edge, task->micro);
  const gp_channel *from = once ? NULL : &plan->channels[c];
  gp_bound_use use = {
      .channel = &b->channels[c],
      .link = gp_links_find(b, c, device),
      .turn = gp_binding_task_turn(plan, task, edge, task->micro),
      .parties = (uint32_t)(once ? gp_plan_step_edge(plan, edge)->reader_count : from->parties),
      .plain = is_plain(&b->channels[c])};
  if (use.link && use.link->received)
    use.address = use.link->received + (once ? 0 : (size_t)use.turn.slot * from->bytes);
  return use;
}

static gp_status list_uses(gp_binding *b) {
  const gp_plan *plan = b->plan;
  size_t count = 0;
  for (int32_t t = 0; t < plan->first[plan->device_count]; t++)
    count += (size_t)plan->tasks[t].use_count;
  GP_TRY(gp_alloc_array(count + 1, sizeof(gp_bound_use), (void **)&b->uses));
  for (int32_t d = 0; d < plan->device_count; d++)
    for (int32_t t = plan->first[d]; t < plan->first[d + 1]; t++) {
      const gp_task *task = &plan->tasks[t];
      if (!gp_device_is_here(b->pipeline, d)) continue;
      for (int32_t u = 0; u < task->use_count; u++)
        b->uses[task->uses + u - plan->uses] = bind_use(b, task, task->uses[u].edge, d);
    }
  return GP_OK;
}

void gp_links_move(gp_binding *b) {
  const gp_plan *plan = b->plan;
  gp_step_links_move(b);
  for (int32_t d = 0; d < plan->device_count; d++)
    for (int32_t t = plan->first[d]; t < plan->first[d + 1]; t++)
      for (int32_t u = 0; u < plan->tasks[t].use_count; u++) {
        const gp_edge_use *use = &plan->tasks[t].uses[u];
        if (use->edge >= plan->edge_count && gp_device_is_here(b->pipeline, d))
          b->uses[use - plan->uses] = bind_use(b, &plan->tasks[t], use->edge, d);
      }
}

gp_status gp_links_new(gp_binding *b) {
  GP_TRY(gp_link_pool_new(&b->pool));
  for (int32_t c = 0; c < gp_plan_value_channels(b->plan); c++)
    if (b->plan->channels[c].slots) GP_TRY(link_channel(b, c));
  GP_TRY(gp_step_links_new(b));
  GP_TRY(list_ends(b));
  return list_uses(b);
}

void gp_links_free(gp_binding *b) {
  for (int32_t c = 0; b->channels && c < gp_plan_channel_count(b->plan); c++) {
    for (int32_t i = 0; i < b->channels[c].link_count; i++)
      gp_link_close(b->channels[c].links[i].link);
    gp_free(b->channels[c].links);
  }
  for (int32_t c = 0; b->channels && c < gp_plan_channel_count(b->plan); c++)
    gp_credits_close(b->channels[c].credits);
  for (int32_t d = 0; b->devices && d < b->plan->device_count; d++) gp_free(b->devices[d].ends);
  gp_link_pool_free(b->pool);
  gp_free(b->uses);
}

/* Forget the last uses of a step edge, whose maker has no link to itself: where it carries parts of
 * gathers, the maker waits for them. */
static void forget_uses(const gp_binding *b, int32_t c) {
  const int32_t e = c - gp_plan_value_channels(b->plan);
  if (e < 0) return;
  const int32_t slots = gp_step_slots(b->plan, &b->plan->step_edges[e]);
  for (int32_t i = 0; i < slots; i++) atomic_store(&b->channels[c].words[i].released, 0);
}

void gp_links_begin(const gp_binding *b) {
  for (int32_t c = 0; c < gp_plan_channel_count(b->plan); c++) forget_uses(b, c);
  for (int32_t c = 0; c < gp_plan_channel_count(b->plan); c++)
    for (int32_t i = 0; i < b->channels[c].link_count; i++)
      gp_link_begin(b->channels[c].links[i].link);
  for (int32_t c = 0; c < gp_plan_channel_count(b->plan); c++)
    if (b->channels[c].credits) gp_credits_begin(b->channels[c].credits);
}
