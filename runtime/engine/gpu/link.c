/* engine/gpu/link.c - values that cross from the device that made them to one that reads them.
 *
 * Workers agree on slots by words in host memory as ever (run.c): a published word says that the work is
 * enqueued. What the GPUs must wait for is said by events, in the same places. The reader fetches: logical
 * devices of one GPU read in place, GPUs that reach each other copy on the reader's receive stream, all
 * others go through pinned memory of the host, fetched there by a courier of the reader's own.
 */
#include "engine/gpu/wiring.h"

/* Both ends as one device sees them. */
typedef struct hop {
  gp_worker *worker; /* the reader */
  const gp_binding *binding;
  const gp_wiring *wiring;
  gp_link *link;
  int32_t edge, slot, from, to;
  char *source, *target; /* the slot in the maker's memory, and the reader's own */
  size_t bytes;
} hop;

static gp_link *link_of(const gp_binding *binding, int32_t edge, int32_t slot) {
  const gp_wiring *w = binding->wiring;
  return w && w->links[edge] ? &w->links[edge][slot] : NULL;
}

/* Does the device read it where it was made? */
static bool is_in_place(const gp_binding *binding, const gp_link *link, int32_t device) {
  return gp_lane_shares(gp_wiring_lane(binding->wiring, link->maker),
                        gp_wiring_lane(binding->wiring, device));
}

/* When a user of the slot wants nothing of it that lies elsewhere: it has fetched it. With two copies that is
 * not all: it may have made the value itself the last time, and fetched the one before. The end of its
 * last use covers everything before, as its streams are in order. */
static gp_gpu_event *gone_on(const gp_binding *binding, const gp_link *link, int32_t user) {
  return binding->plan->copy_count == 1 ? link->arrived[user] : link->freed[user];
}

/* ---- fetching ------------------------------------------------------------------------------ */

/* Not before the last use of what was in this slot; streams of one device. */
static gp_status wait_until_free(const hop *h) {
  const gp_lane *lane = &h->worker->lane;
  if (!h->link->used[h->to]) return GP_OK;
  return lane->api->wait(lane->gpu, GP_STREAM_RECEIVE, h->link->freed[h->to]);
}

/* The compute stream goes on when the value is there. */
static gp_status note_arrival(const hop *h) {
  const gp_lane *lane = &h->worker->lane;
  GP_TRY(lane->api->record(lane->gpu, GP_STREAM_RECEIVE, h->link->arrived[h->to]));
  return lane->api->wait(lane->gpu, GP_STREAM_COMPUTE, h->link->arrived[h->to]);
}

/* To pinned memory of the host, by a stream on the maker's GPU that is the reader's own. */
static gp_status bring_to_host(const hop *h, const gp_courier *courier, char *to) {
  const gp_gpu_api *api = h->wiring->api;
  GP_TRY(api->wait(courier->gpu, GP_STREAM_COMPUTE, h->link->made[h->from]));
  GP_TRY(api->copy(courier->gpu, GP_STREAM_COMPUTE, to, h->source, h->bytes));
  return api->record(courier->gpu, GP_STREAM_COMPUTE, courier->brought);
}

/* The host works on it at once, so its thread waits. */
static gp_status fetch_to_cpu(const hop *h) {
  const gp_courier *courier = &h->wiring->devices[h->to].courier[h->from];
  GP_TRY(bring_to_host(h, courier, h->target));
  return h->wiring->api->finish(courier->brought);
}

static gp_status fetch_through_host(const hop *h) {
  const gp_lane *lane = &h->worker->lane;
  const gp_courier *courier = &h->wiring->devices[h->to].courier[h->from];
  char *staging = h->wiring->devices[h->to].staging[h->edge] + (size_t)h->slot * h->bytes;
  if (h->link->used[h->to]) /* what was in the staging slot has gone on */
    GP_TRY(lane->api->wait(courier->gpu, GP_STREAM_COMPUTE, gone_on(h->binding, h->link, h->to)));
  GP_TRY(bring_to_host(h, courier, staging));
  GP_TRY(lane->api->wait(lane->gpu, GP_STREAM_RECEIVE, courier->brought));
  GP_TRY(wait_until_free(h));
  GP_TRY(lane->api->copy(lane->gpu, GP_STREAM_RECEIVE, h->target, staging, h->bytes));
  return note_arrival(h);
}

/* From a CPU device's slot, or over the bus between GPUs. */
static gp_status fetch_directly(const hop *h) {
  const gp_lane *lane = &h->worker->lane, *from = gp_wiring_lane(h->wiring, h->from);
  GP_TRY(wait_until_free(h));
  if (gp_lane_is_gpu(from)) {
    GP_TRY(lane->api->wait(lane->gpu, GP_STREAM_RECEIVE, h->link->made[h->from]));
    GP_TRY(lane->api->copy_peer(lane->gpu, GP_STREAM_RECEIVE, h->target, from->gpu, h->source,
                                h->bytes));
  } else {
    GP_TRY(lane->api->copy(lane->gpu, GP_STREAM_RECEIVE, h->target, h->source, h->bytes));
  }
  return note_arrival(h);
}

static gp_status fetch(const hop *h) {
  const gp_lane *from = gp_wiring_lane(h->wiring, h->from), *to = &h->worker->lane;
  if (!gp_lane_is_gpu(to)) return fetch_to_cpu(h);
  if (!gp_lane_is_gpu(from) || to->api->reaches(to->gpu, from->gpu)) return fetch_directly(h);
  return fetch_through_host(h);
}

/* By another logical device of this GPU; between CPU devices the published word has said it. */
static gp_status wait_until_made(const gp_worker *worker, const gp_link *link) {
  const gp_lane *lane = &worker->lane;
  if (!gp_lane_is_gpu(lane)) return GP_OK;
  return lane->api->wait(lane->gpu, GP_STREAM_COMPUTE, link->made[link->maker]);
}

/* Stages of one device that read the same value fetch it once. */
gp_status gp_link_receive(gp_worker *worker, const gp_binding *binding, int32_t edge, int32_t slot,
                          int32_t copy) {
  gp_link *link = link_of(binding, edge, slot);
  int32_t to = worker->device;
  if (!link || link->maker == to || link->maker < 0 || link->has[to]) return GP_OK;
  if (is_in_place(binding, link, to)) return wait_until_made(worker, link);
  size_t bytes = binding->plan->channels[edge].bytes, at = (size_t)slot * bytes;
  hop h = {.worker = worker,
           .binding = binding,
           .wiring = binding->wiring,
           .link = link,
           .edge = edge,
           .slot = slot,
           .from = link->maker,
           .to = to,
           .source = gp_binding_slots(binding, edge, copy, link->maker) + at,
           .target = gp_binding_slots(binding, edge, copy, to) + at,
           .bytes = bytes};
  GP_TRY(fetch(&h));
  link->has[to] = true;
  return GP_OK;
}

/* ---- the other three ----------------------------------------------------------------------- */

gp_status gp_link_publish(gp_worker *worker, const gp_binding *binding, int32_t edge,
                          int32_t slot) {
  gp_link *link = link_of(binding, edge, slot);
  const gp_lane *lane = &worker->lane;
  if (!link) return GP_OK;
  link->maker = worker->device;
  for (int32_t d = 0; d < binding->plan->device_count; d++) link->has[d] = false;
  if (!gp_lane_is_gpu(lane)) return GP_OK;
  gp_status status = lane->api->record(lane->gpu, GP_STREAM_COMPUTE, link->made[worker->device]);
  if (status) link->maker = -1; /* nobody may wait for an event that was never recorded */
  return status;
}

gp_status gp_link_release(gp_worker *worker, const gp_binding *binding, int32_t edge,
                          int32_t slot) {
  gp_link *link = link_of(binding, edge, slot);
  const gp_lane *lane = &worker->lane;
  int32_t device = worker->device;
  if (!link || !gp_lane_is_gpu(lane)) return GP_OK;
  link->used[device] = false;
  if (link->maker < 0 || !(link->has[device] || is_in_place(binding, link, device))) return GP_OK;
  GP_TRY(lane->api->record(lane->gpu, GP_STREAM_COMPUTE, link->freed[device]));
  link->used[device] = true;
  return GP_OK;
}

/* Has a device done with the maker's memory? What it fetched is its own affair. */
static gp_status wait_for_user(gp_worker *worker, const gp_binding *binding, const gp_link *link,
                               int32_t user) {
  const gp_lane *mine = &worker->lane, *its = gp_wiring_lane(binding->wiring, user);
  gp_gpu_event *event =
      gp_lane_shares(mine, its) ? link->freed[user] : gone_on(binding, link, user);
  if (!gp_lane_is_gpu(mine)) return its->api->finish(event);
  return mine->api->wait(mine->gpu, GP_STREAM_COMPUTE, event);
}

gp_status gp_link_acquire(gp_worker *worker, const gp_binding *binding, int32_t edge,
                          int32_t slot) {
  const gp_link *link = link_of(binding, edge, slot);
  for (int32_t d = 0; link && d < binding->plan->device_count; d++)
    if (link->used[d] && d != worker->device) GP_TRY(wait_for_user(worker, binding, link, d));
  return GP_OK;
}
