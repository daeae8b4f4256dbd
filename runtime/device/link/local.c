/* device/link/local.c - values that are read where they were made: both lanes work in one memory.
 *
 * This joins CPU devices, logical devices of one GPU, a device with itself, and any two for values
 * that the workers themselves write to host memory. Between lanes that finish their work before
 * they return, the words say everything; queues wait for each other's events. */
#include "device/link/slots.h"

static bool joins(const gp_lane *from, const gp_lane *to) { return gp_lane_shares(from, to); }

/* A queue is in order with itself; what is written at once needs only the word. */
static gp_status open_link(gp_link *link) {
  const gp_lane *from = link->spec.from, *to = link->spec.to;
  link->plain = from == to || link->spec.host || (from->facts->at_once && to->facts->at_once);
  return gp_link_slots_new(link);
}

/* Wait for the event once, for all stages of the reader. */
static gp_status receive(gp_link *link, gp_link_turn turn, bool *ready) {
  const gp_lane *to = link->spec.to;
  gp_link_slot *slot = gp_link_slot_of(link, turn);
  *ready = true;
  if (!slot->made || !slot->is_made || slot->received > turn.round) return GP_OK;
  slot->received = turn.round + 1;
  return to->streams->wait(to, GP_STREAM_COMPUTE, slot->made);
}

const gp_link_ops gp_link_local = {.name = "local",
                                   .joins = joins,
                                   .open = open_link,
                                   .close = gp_link_slots_free,
                                   .begin = gp_link_slots_begin,
                                   .acquire = gp_link_slots_acquire,
                                   .publish = gp_link_slots_publish,
                                   .receive = receive,
                                   .release = gp_link_slots_release};
