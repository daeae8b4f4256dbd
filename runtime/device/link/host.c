/* device/link/host.c - values that pass through host memory, because the reader cannot reach the
 * maker's device.
 *
 * A courier, which is a lane of the reader's own on the maker's device, brings them to the host. A
 * reader that works in host memory has them copied straight into its slots and asks until they have
 * arrived; any other reader has staging buffers, from which its receive stream copies them on. */
#include "base/memory.h"
#include "device/link/pool.h"
#include "device/link/slots.h"

static bool joins(const gp_lane *from, const gp_lane *to) {
  return from->space != NULL && (!to->space || to->memory->host_alloc);
}

static gp_status open_link(gp_link *link) {
  const gp_link_spec *spec = &link->spec;
  size_t bytes;
  GP_TRY(gp_link_slots_new(link));
  gp_link_slots *own = gp_link_slots_of(link);
  GP_TRY(gp_link_pool_courier(spec->pool, spec->from, spec->to, &own->courier));
  for (int32_t k = 0; k < spec->slots; k++)
    GP_TRY(own->courier->streams->event_new(own->courier, false, &own->slots[k].brought));
  GP_TRY(gp_size_mul((size_t)spec->slots, spec->bytes, &bytes));
  if (!spec->to->space || !bytes) return GP_OK;
  return gp_lane_host_alloc(spec->to, bytes, (void **)&own->staging);
}

static void close_link(gp_link *link) {
  gp_link_slots *own = gp_link_slots_of(link);
  if (own) gp_lane_host_free(link->spec.to, own->staging);
  gp_link_slots_free(link);
}

/* Copy the value to host memory, after the maker's work. */
static gp_status bring(const gp_link *link, gp_link_turn turn, const gp_link_slot *slot, char *to) {
  const gp_lane *courier = gp_link_slots_of(link)->courier;
  const char *from = link->spec.made + (size_t)turn.slot * link->spec.bytes;
  if (slot->is_made) GP_TRY(courier->streams->wait(courier, GP_STREAM_COMPUTE, slot->made));
  if (link->spec.bytes)
    GP_TRY(courier->memory->copy(courier, GP_STREAM_COMPUTE, to, from, link->spec.bytes));
  return courier->streams->record(courier, GP_STREAM_COMPUTE, slot->brought);
}

/* Copy the value in two hops. The courier waits until the last use of the reader's slot is over; by
 * then the staging buffer has been copied on as well. */
static gp_status take_on(const gp_link *link, gp_link_turn turn, const gp_link_slot *slot) {
  const gp_lane *to = link->spec.to, *courier = gp_link_slots_of(link)->courier;
  size_t at = (size_t)turn.slot * link->spec.bytes;
  char *staging = gp_link_slots_of(link)->staging + at;
  if (slot->is_used) GP_TRY(courier->streams->wait(courier, GP_STREAM_COMPUTE, slot->freed));
  GP_TRY(bring(link, turn, slot, staging));
  GP_TRY(to->streams->wait(to, GP_STREAM_RECEIVE, slot->brought));
  if (link->spec.bytes)
    GP_TRY(to->memory->copy(to, GP_STREAM_RECEIVE, link->received + at, staging, link->spec.bytes));
  GP_TRY(to->streams->record(to, GP_STREAM_RECEIVE, slot->arrived));
  return to->streams->wait(to, GP_STREAM_COMPUTE, slot->arrived);
}

/* If a step failed, wait for the copies that were begun: no later event covers them, and they must
 * be over before the slot is released. */
static gp_status or_wait(const gp_link *link, gp_status status) {
  const gp_lane *to = link->spec.to;
  if (!status) return GP_OK;
  gp_lane_sync(gp_link_slots_of(link)->courier);
  to->streams->sync(to, GP_STREAM_RECEIVE);
  return status;
}

/* The copy begins once. A reader that works on the host may use the value only when it has arrived,
 * so it is told whether the copy is done. */
static gp_status receive(gp_link *link, gp_link_turn turn, bool *ready) {
  const gp_lane *courier = gp_link_slots_of(link)->courier;
  gp_link_slot *slot = gp_link_slot_of(link, turn);
  bool begun = slot->received > turn.round, far = link->spec.to->space != NULL;
  slot->received = turn.round + 1;
  *ready = true;
  if (far) return begun ? GP_OK : or_wait(link, take_on(link, turn, slot));
  size_t at = (size_t)turn.slot * link->spec.bytes;
  if (!begun) GP_TRY(or_wait(link, bring(link, turn, slot, link->received + at)));
  return courier->streams->is_done(courier, slot->brought, ready);
}

/* A copy that a courier has begun may outlive a run that was given up. */
static gp_status settle(gp_link *link, gp_link_end end) {
  return end == GP_LINK_READER ? gp_lane_sync(gp_link_slots_of(link)->courier) : GP_OK;
}

const gp_link_ops gp_link_host = {.name = "host",
                                  .joins = joins,
                                  .open = open_link,
                                  .close = close_link,
                                  .begin = gp_link_slots_begin,
                                  .acquire = gp_link_slots_acquire,
                                  .publish = gp_link_slots_publish,
                                  .receive = receive,
                                  .release = gp_link_slots_release,
                                  .settle = settle};
