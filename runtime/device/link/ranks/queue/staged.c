/* device/link/ranks/queue/staged.c - see staged.h.
 *
 * A maker sends a slot's next value only after the credit for the last use of this one. A reader
 * with a queue gives credits when its queue has got there (credits.c), so by then neither the
 * staging buffer nor the slot is in use. Each end tells its own queue so by an event that is over
 * already: it costs about a microsecond, and whoever checks the order of a device's work sees it
 * without the messages. */
#include "device/link/ranks/queue/staged.h"

#include <stdio.h>

#include "base/memory.h"
#include "device/link/pool.h"

typedef struct slot {
  gp_lane_event *freed; /* the reader's: on its compute stream, after the last use; the maker's: on
                         * its send stream, after the value was copied */
  bool is_used;         /* freed was recorded in this run */
  uint32_t brought;     /* rounds whose value was brought to the device */
} slot;

struct gp_staged_end {
  const gp_link *link; /* borrowed */
  const gp_lane *lane; /* borrowed: of this end */
  gp_outbox *outbox;   /* borrowed: of the lane */
  char *staging;
  bool is_own;         /* the staging buffer was allocated here; else it is pinned shared memory */
  char *into;          /* the maker's: the reader's memory, pinned; NULL: not, or not yet */
  bool was_tried;      /* it was tried to pin it */
  char *device;        /* the maker's: slot 0 in the memory of the reader's GPU, opened; or NULL */
  bool was_asked;      /* it was tried to open it */
  gp_lane_offer offer; /* by which it was opened */
  gp_lane_event *arrived; /* the reader's: on its receive stream */
  slot *slots;
};

static size_t place_of(const gp_staged_end *end, int32_t k) {
  return (size_t)k * end->link->spec.bytes;
}

/* ---- life ------------------------------------------------------------------------------------ */

static gp_status new_end(const gp_link *link, const gp_lane *lane, gp_staged_end **end) {
  GP_TRY(gp_alloc(sizeof **end, (void **)end));
  (*end)->link = link;
  (*end)->lane = lane;
  return gp_link_pool_outbox(link->spec.pool, lane, &(*end)->outbox);
}

static gp_status make_slots(gp_staged_end *end) {
  const gp_lane *lane = end->lane;
  const size_t count = (size_t)end->link->spec.slots;
  GP_TRY(gp_alloc_array(count, sizeof *end->slots, (void **)&end->slots));
  for (size_t k = 0; k < count; k++)
    GP_TRY(lane->streams->event_new(lane, false, &end->slots[k].freed));
  return GP_OK;
}

static gp_status take_staging(gp_staged_end *end) {
  size_t bytes;
  GP_TRY(gp_size_mul((size_t)end->link->spec.slots, end->link->spec.bytes, &bytes));
  end->is_own = true;
  return bytes ? gp_lane_host_alloc(end->lane, bytes, (void **)&end->staging) : GP_OK;
}

void gp_staged_free(gp_staged_end *end) {
  if (!end) return;
  const gp_lane *lane = end->lane;
  if (end->is_own) gp_lane_host_free(lane, end->staging);
  if (end->staging && !end->is_own) lane->memory->host_unpin(end->staging);
  if (end->into) lane->memory->host_unpin(end->into);
  for (int32_t k = 0; end->slots && k < end->link->spec.slots; k++)
    lane->streams->event_free(lane, end->slots[k].freed);
  if (end->device) lane->sharing->close(lane, &end->offer, end->device);
  lane->streams->event_free(lane, end->arrived);
  gp_free(end->slots);
  gp_free(end);
}

gp_status gp_staged_look(const gp_staged_end *end) { return gp_outbox_look(end->outbox); }

/* ---- the maker ------------------------------------------------------------------------------- */

gp_status gp_staged_maker_new(const gp_link *link, gp_staged_end **end) {
  GP_TRY(new_end(link, link->spec.from, end));
  GP_TRY(make_slots(*end));
  GP_TRY(take_staging(*end));
  return gp_outbox_reserve((*end)->outbox, (size_t)link->spec.slots);
}

bool gp_staged_writes(gp_staged_end *end, char *into) {
  if (!into || end->was_tried) return end->into != NULL;
  end->was_tried = true;
  const size_t bytes = (size_t)end->link->spec.slots * end->link->spec.bytes;
  if (!end->lane->memory->host_pin(into, bytes)) end->into = into;
  return end->into != NULL;
}

char *gp_staged_device(gp_staged_end *end, const gp_lane_offer *offer, const char *refused,
                       int32_t k) {
  const gp_lane *lane = end->lane;
  char name[80];
  void *opened = NULL;
  if (end->was_asked) return end->device;
  end->was_asked = true;
  snprintf(name, sizeof name, "%s to %s", lane->name, end->link->spec.to->name);
  const gp_lane_window window = {
      .name = name, .refused = refused, .at = place_of(end, k), .bytes = end->link->spec.bytes};
  end->offer = *offer;
  if (!lane->sharing->open(lane, offer, &window, &opened)) end->device = opened;
  return end->device;
}

/* Copy the value on the send stream, after the maker's work. */
static gp_status copy_out(gp_staged_end *end, int32_t k, char *to) {
  const gp_lane *lane = end->lane;
  const size_t at = place_of(end, k);
  GP_TRY(gp_outbox_follow(end->outbox));
  if (!end->link->spec.bytes) return GP_OK;
  GP_TRY(lane->memory->copy(lane, GP_STREAM_SEND, to + at, end->link->spec.made + at,
                            end->link->spec.bytes));
  GP_TRY(lane->streams->record(lane, GP_STREAM_SEND, end->slots[k].freed));
  end->slots[k].is_used = true;
  return GP_OK;
}

gp_status gp_staged_send(gp_staged_end *end, gp_link_turn turn, const gp_rank_message *message,
                         char *into) {
  char *to = into ? into : end->staging;
  const gp_outbox_item item = {.rank = end->link->spec.to->rank,
                               .message = *message,
                               .payload = to ? to + place_of(end, turn.slot) : NULL};
  const gp_status copied = copy_out(end, turn.slot, to);
  const gp_status posted = gp_outbox_post(end->outbox, &item);
  return copied ? copied : posted;
}

gp_status gp_staged_follow(const gp_staged_end *end, const gp_lane *lane, int32_t k) {
  const slot *own = &end->slots[k];
  if (!own->is_used || lane->facts->at_once) return GP_OK;
  return lane->streams->wait(lane, GP_STREAM_COMPUTE, own->freed);
}

/* ---- the reader ------------------------------------------------------------------------------ */

/* Use the shared memory, or pinned memory of the end's own. */
static gp_status choose_staging(gp_staged_end *end, const gp_shared *shared) {
  const size_t bytes = (size_t)end->link->spec.slots * end->link->spec.bytes;
  if (!shared || end->lane->memory->host_pin(gp_shared_data(shared), bytes))
    return take_staging(end);
  end->staging = gp_shared_data(shared);
  return GP_OK;
}

gp_status gp_staged_reader_new(const gp_link *link, const gp_shared *shared, gp_staged_end **end) {
  const gp_lane *lane = link->spec.to;
  GP_TRY(new_end(link, lane, end));
  GP_TRY(make_slots(*end));
  GP_TRY(lane->streams->event_new(lane, false, &(*end)->arrived));
  return choose_staging(*end, shared);
}

char *gp_staged_room(const gp_staged_end *end) { return end->staging; }

void gp_staged_begin(gp_staged_end *end) {
  for (int32_t k = 0; end->slots && k < end->link->spec.slots; k++) {
    end->slots[k].is_used = false;
    end->slots[k].brought = 0;
  }
}

static gp_status copy_in(const gp_staged_end *end, int32_t k) {
  const gp_lane *lane = end->lane;
  const size_t at = place_of(end, k), bytes = end->link->spec.bytes;
  const slot *own = &end->slots[k];
  if (!bytes) return GP_OK;
  if (own->is_used) GP_TRY(lane->streams->wait(lane, GP_STREAM_RECEIVE, own->freed));
  GP_TRY(lane->memory->copy(lane, GP_STREAM_RECEIVE, end->link->received + at, end->staging + at,
                            bytes));
  GP_TRY(lane->streams->record(lane, GP_STREAM_RECEIVE, end->arrived));
  return lane->streams->wait(lane, GP_STREAM_COMPUTE, end->arrived);
}

/* If something fails, wait for the copy: no event covers it, and it must be over before the slot is
 * released. */
gp_status gp_staged_bring(gp_staged_end *end, gp_link_turn turn) {
  slot *own = &end->slots[turn.slot];
  if (own->brought > turn.round) return GP_OK;
  own->brought = turn.round + 1;
  const gp_status status = copy_in(end, turn.slot);
  if (status) (void)end->lane->streams->sync(end->lane, GP_STREAM_RECEIVE);
  return status;
}

gp_status gp_staged_use(gp_staged_end *end, int32_t k) {
  const gp_lane *lane = end->lane;
  const gp_status status = lane->streams->record(lane, GP_STREAM_COMPUTE, end->slots[k].freed);
  if (status) (void)lane->streams->sync(lane, GP_STREAM_COMPUTE);
  if (!status) end->slots[k].is_used = true;
  return status;
}

gp_status gp_staged_acquire(const gp_staged_end *end, const gp_lane *lane, int32_t k, bool *ready) {
  const slot *own = &end->slots[k];
  *ready = true;
  if (!own->is_used || lane == end->lane) return GP_OK;
  if (lane->facts->at_once) return end->lane->streams->is_done(end->lane, own->freed, ready);
  return lane->streams->wait(lane, GP_STREAM_COMPUTE, own->freed);
}
