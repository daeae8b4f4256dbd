/* device/link/slots.c - see slots.h.
 *
 * A slot's word says that the maker's worker has reached a point; an event says that its queue has.
 * Only a queue can wait for an event without blocking its worker, so a lane that works at once asks
 * for it again and again (quiet). Between two lanes that work at once there are no events, and the
 * words say everything. */
#include "device/link/slots.h"

#include "base/memory.h"

/* Make the slot's events. Within one lane the queue keeps the order, and what the host writes is
 * there at once: neither needs any. */
static gp_status make_events(const gp_link_spec *spec, gp_link_slot *slot) {
  if (spec->from == spec->to || spec->host) return GP_OK;
  GP_TRY(spec->from->streams->event_new(spec->from, false, &slot->made));
  GP_TRY(spec->to->streams->event_new(spec->to, false, &slot->arrived));
  return spec->to->streams->event_new(spec->to, false, &slot->freed);
}

gp_status gp_link_slots_new(gp_link *link) {
  gp_link_slots *own;
  size_t count = (size_t)link->spec.slots;
  const gp_link_spec *spec = &link->spec;
  link->quiet = !spec->host && spec->from->facts->at_once != spec->to->facts->at_once;
  GP_TRY(gp_alloc(sizeof *own, &link->self));
  own = link->self;
  GP_TRY(gp_alloc_array(count, sizeof(gp_link_slot), (void **)&own->slots));
  for (size_t k = 0; k < count; k++) GP_TRY(make_events(&link->spec, &own->slots[k]));
  return GP_OK;
}

void gp_link_slots_free(gp_link *link) {
  const gp_lane *from = link->spec.from, *to = link->spec.to;
  gp_link_slots *own = gp_link_slots_of(link);
  for (int32_t k = 0; own && own->slots && k < link->spec.slots; k++) {
    from->streams->event_free(from, own->slots[k].made);
    to->streams->event_free(to, own->slots[k].arrived);
    to->streams->event_free(to, own->slots[k].freed);
    if (own->courier) own->courier->streams->event_free(own->courier, own->slots[k].brought);
  }
  if (own) gp_free(own->slots);
  gp_free(own);
}

void gp_link_slots_begin(gp_link *link) {
  for (int32_t k = 0; k < link->spec.slots; k++) {
    gp_link_slot *slot = &gp_link_slots_of(link)->slots[k];
    slot->is_made = slot->is_used = false;
    slot->received = 0;
  }
}

/* The engine has seen that all last uses are released; if the reader has a queue, that only means
 * that they are enqueued. A lane without a queue works at once, so it asks until they are over. */
gp_status gp_link_slots_acquire(gp_link *link, const gp_lane *lane, gp_link_turn turn,
                                bool *ready) {
  const gp_lane *reader = link->spec.to;
  gp_link_slot *slot = gp_link_slot_of(link, turn);
  *ready = true;
  if (!slot->is_used || !slot->freed || lane == reader) return GP_OK;
  if (lane->facts->at_once) return reader->streams->is_done(reader, slot->freed, ready);
  return lane->streams->wait(lane, GP_STREAM_COMPUTE, slot->freed);
}

/* Record an event. If that fails, wait for the stream instead, so that no lane needs the event. */
static gp_status record(const gp_lane *lane, gp_lane_event *event) {
  gp_status status = event ? lane->streams->record(lane, GP_STREAM_COMPUTE, event) : GP_OK;
  if (status) lane->streams->sync(lane, GP_STREAM_COMPUTE);
  return status;
}

gp_status gp_link_slots_publish(gp_link *link, gp_link_turn turn) {
  gp_link_slot *slot = gp_link_slot_of(link, turn);
  gp_status status = record(link->spec.from, slot->made);
  slot->is_made = !status;
  return status;
}

/* If this record fails, an older one stays valid: `record` has waited for what it does not
 * cover. */
gp_status gp_link_slots_release(gp_link *link, gp_link_turn turn) {
  gp_link_slot *slot = gp_link_slot_of(link, turn);
  gp_status status = record(link->spec.to, slot->freed);
  if (!status) slot->is_used = true;
  gp_link_note_released(link, turn.slot);
  return status;
}
