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
  const gp_plan *plan;
  const gp_wiring *wiring;
  gp_link *link;
  int32_t edge, slot, from, to;
} hop;

static gp_link *link_of(const gp_plan *plan, int32_t edge, int32_t slot) {
  const gp_wiring *w = plan->wiring;
  return w && w->links[edge] ? &w->links[edge][slot] : NULL;
}

static char *slot_of(const hop *h, int32_t device) {
  const gp_channel *channel = &h->plan->channels[h->edge];
  return channel->memory[device] + (size_t)h->slot * channel->bytes;
}

/* ---- fetching ------------------------------------------------------------------------------ */

/* Not before the last use of what was in this slot; streams of one device. */
static gp_status wait_until_free(const hop *h, int32_t stage_index) {
  const gp_lane *lane = &h->worker->lane;
  if (h->link->taker[stage_index] != h->to) return GP_OK;
  return lane->api->wait(lane->gpu, GP_STREAM_RECEIVE, h->link->freed[h->to]);
}

/* The compute stream goes on when the value is there. */
static gp_status note_arrival(const hop *h) {
  const gp_lane *lane = &h->worker->lane;
  GP_TRY(lane->api->record(lane->gpu, GP_STREAM_RECEIVE, h->link->arrived[h->to]));
  return lane->api->wait(lane->gpu, GP_STREAM_COMPUTE, h->link->arrived[h->to]);
}

/* To pinned memory of the host, by a stream on the maker's GPU that is the reader's own. */
static gp_status bring_to_host(const hop *h, char *to, gp_gpu_event *event) {
  const gp_gpu_api *api = h->wiring->api;
  gp_gpu *courier = h->wiring->devices[h->to].courier[h->from];
  GP_TRY(api->wait(courier, GP_STREAM_COMPUTE, h->link->made[h->from]));
  GP_TRY(api->copy(courier, GP_STREAM_COMPUTE, to, slot_of(h, h->from),
                   h->plan->channels[h->edge].bytes));
  return api->record(courier, GP_STREAM_COMPUTE, event);
}

/* The host works on it at once, so its thread waits. */
static gp_status fetch_to_cpu(const hop *h) {
  GP_TRY(bring_to_host(h, slot_of(h, h->to), h->link->arrived[h->to]));
  return h->wiring->api->finish(h->link->arrived[h->to]);
}

static gp_status fetch_through_host(const hop *h, int32_t stage_index) {
  const gp_lane *lane = &h->worker->lane;
  const gp_channel *channel = &h->plan->channels[h->edge];
  char *staging = h->wiring->devices[h->to].staging[h->edge] + (size_t)h->slot * channel->bytes;
  gp_gpu *courier = h->wiring->devices[h->to].courier[h->from];
  if (h->link->taker[stage_index] == h->to) /* what was in the staging slot has gone on */
    GP_TRY(lane->api->wait(courier, GP_STREAM_COMPUTE, h->link->arrived[h->to]));
  GP_TRY(bring_to_host(h, staging, h->link->sent[h->to]));
  GP_TRY(lane->api->wait(lane->gpu, GP_STREAM_RECEIVE, h->link->sent[h->to]));
  GP_TRY(wait_until_free(h, stage_index));
  GP_TRY(lane->api->copy(lane->gpu, GP_STREAM_RECEIVE, slot_of(h, h->to), staging, channel->bytes));
  return note_arrival(h);
}

/* From a CPU device's slot, or over the bus between GPUs. */
static gp_status fetch_directly(const hop *h, int32_t stage_index) {
  const gp_lane *lane = &h->worker->lane, *from = gp_wiring_lane(h->wiring, h->from);
  size_t bytes = h->plan->channels[h->edge].bytes;
  GP_TRY(wait_until_free(h, stage_index));
  if (gp_lane_is_gpu(from)) {
    GP_TRY(lane->api->wait(lane->gpu, GP_STREAM_RECEIVE, h->link->made[h->from]));
    GP_TRY(lane->api->copy_peer(lane->gpu, GP_STREAM_RECEIVE, slot_of(h, h->to), from->gpu,
                                slot_of(h, h->from), bytes));
  } else {
    GP_TRY(lane->api->copy(lane->gpu, GP_STREAM_RECEIVE, slot_of(h, h->to), slot_of(h, h->from),
                           bytes));
  }
  return note_arrival(h);
}

/* Which of the stages that read the edge this is; the maker's own comes after them. */
static int32_t index_of(const gp_plan *plan, int32_t edge, int32_t stage) {
  const gp_edge *e = gp_plan_edge(plan, edge);
  int32_t i = 0;
  while (i < e->to_count && e->to[i] != stage) i++;
  return i;
}

gp_status gp_link_receive(gp_worker *worker, const gp_plan *plan, int32_t edge, int32_t slot,
                          int32_t stage) {
  gp_link *link = link_of(plan, edge, slot);
  if (!link || link->maker == worker->device || link->maker < 0) return GP_OK;
  hop h = {worker, plan, plan->wiring, link, edge, slot, link->maker, worker->device};
  const gp_lane *from = gp_wiring_lane(plan->wiring, h.from), *to = &worker->lane;
  int32_t index = index_of(plan, edge, stage);
  if (!gp_lane_is_gpu(to)) return gp_lane_is_gpu(from) ? fetch_to_cpu(&h) : GP_OK;
  if (gp_lane_shares(from, to))
    return to->api->wait(to->gpu, GP_STREAM_COMPUTE, link->made[h.from]);
  if (!gp_lane_is_gpu(from) || to->api->reaches(to->gpu, from->gpu))
    return fetch_directly(&h, index);
  return fetch_through_host(&h, index);
}

/* ---- the other three ----------------------------------------------------------------------- */

gp_status gp_link_publish(gp_worker *worker, const gp_plan *plan, int32_t edge, int32_t slot) {
  gp_link *link = link_of(plan, edge, slot);
  const gp_lane *lane = &worker->lane;
  if (!link) return GP_OK;
  link->maker = worker->device;
  if (!gp_lane_is_gpu(lane)) return GP_OK;
  gp_status status = lane->api->record(lane->gpu, GP_STREAM_COMPUTE, link->made[worker->device]);
  if (status) link->maker = -1; /* nobody may wait for an event that was never recorded */
  return status;
}

gp_status gp_link_release(gp_worker *worker, const gp_plan *plan, int32_t edge, int32_t slot,
                          int32_t stage) {
  gp_link *link = link_of(plan, edge, slot);
  const gp_lane *lane = &worker->lane;
  if (!link) return GP_OK;
  int32_t *taker = &link->taker[index_of(plan, edge, stage)];
  *taker = link->maker < 0 ? -1 : worker->device;
  if (!gp_lane_is_gpu(lane)) return GP_OK;
  gp_status status = lane->api->record(lane->gpu, GP_STREAM_COMPUTE, link->freed[worker->device]);
  if (status) *taker = -1;
  return status;
}

/* Has the device that had it last done with the maker's memory? Its own copy is its own affair. */
static gp_status wait_for_taker(gp_worker *worker, const gp_plan *plan, const gp_link *link,
                                int32_t taker) {
  const gp_lane *mine = &worker->lane, *its = gp_wiring_lane(plan->wiring, taker);
  if (taker == worker->device || !gp_lane_is_gpu(its)) return GP_OK;
  gp_gpu_event *event = gp_lane_shares(mine, its) ? link->freed[taker] : link->arrived[taker];
  if (!gp_lane_is_gpu(mine)) return its->api->finish(event);
  if (!gp_lane_shares(mine, its) && !its->api->reaches(its->gpu, mine->gpu))
    event = link->sent[taker];
  return mine->api->wait(mine->gpu, GP_STREAM_COMPUTE, event);
}

gp_status gp_link_acquire(gp_worker *worker, const gp_plan *plan, int32_t edge, int32_t slot) {
  const gp_link *link = link_of(plan, edge, slot);
  if (!link) return GP_OK;
  int32_t readers = gp_plan_edge(plan, edge)->to_count, before = link->taker[readers];
  for (int32_t i = 0; i < readers; i++)
    if (link->taker[i] >= 0) GP_TRY(wait_for_taker(worker, plan, link, link->taker[i]));
  if (before < 0 || !gp_lane_shares(&worker->lane, gp_wiring_lane(plan->wiring, before)))
    return GP_OK;
  return wait_for_taker(worker, plan, link, before); /* the other device of the maker's stage */
}
