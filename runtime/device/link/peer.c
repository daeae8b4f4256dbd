/* device/link/peer.c - values that the reader's queue copies from where they were made: between
 * GPUs that reach each other, and from pinned host memory.
 *
 * The reader's receive stream copies a value after the maker's work and after the last use of the
 * slot's old value; the compute stream goes on when the new value is there. */
#include "device/link/slots.h"

static bool joins(const gp_lane *from, const gp_lane *to) { return to->memory->reaches(to, from); }

static gp_status fetch(const gp_link *link, gp_link_turn turn, const gp_link_slot *slot) {
  const gp_lane *to = link->spec.to;
  size_t bytes = link->spec.bytes, at = (size_t)turn.slot * bytes;
  if (slot->is_used) GP_TRY(to->streams->wait(to, GP_STREAM_RECEIVE, slot->freed));
  if (slot->is_made) GP_TRY(to->streams->wait(to, GP_STREAM_RECEIVE, slot->made));
  if (bytes)
    GP_TRY(to->memory->fetch(to, GP_STREAM_RECEIVE, link->received + at, link->spec.from,
                             link->spec.made + at, bytes));
  GP_TRY(to->streams->record(to, GP_STREAM_RECEIVE, slot->arrived));
  return to->streams->wait(to, GP_STREAM_COMPUTE, slot->arrived);
}

/* Stages of one device that read the same value fetch it once. If fetch fails, no later event
 * covers its copy, so wait: the copy must be over before the slot is released. */
static gp_status receive(gp_link *link, gp_link_turn turn, bool *ready) {
  const gp_lane *to = link->spec.to;
  gp_link_slot *slot = gp_link_slot_of(link, turn);
  *ready = true;
  if (slot->received > turn.round) return GP_OK;
  slot->received = turn.round + 1;
  gp_status status = fetch(link, turn, slot);
  if (status) to->streams->sync(to, GP_STREAM_RECEIVE);
  return status;
}

const gp_link_ops gp_link_peer = {.name = "peer",
                                  .joins = joins,
                                  .open = gp_link_slots_new,
                                  .close = gp_link_slots_free,
                                  .begin = gp_link_slots_begin,
                                  .acquire = gp_link_slots_acquire,
                                  .publish = gp_link_slots_publish,
                                  .receive = receive,
                                  .release = gp_link_slots_release};
