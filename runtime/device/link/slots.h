/* device/link/slots.h - the events of each slot, for links between queues. */
#ifndef GP_DEVICE_LINK_SLOTS_H
#define GP_DEVICE_LINK_SLOTS_H

#include "device/link/link.h"

/* One end writes each field before it publishes or releases the slot, and the other end reads it
 * afterwards. */
typedef struct gp_link_slot {
  gp_lane_event *made;    /* on the maker's compute stream, after the task that made the value */
  gp_lane_event *arrived; /* on the reader's receive stream, after the value arrived */
  gp_lane_event *freed;   /* on the reader's compute stream, after its last use */
  gp_lane_event *brought; /* on the courier's stream, after the value arrived in host memory */
  bool is_made;           /* made was recorded in this round; else the value was there already */
  bool is_used;           /* freed was recorded in this run */
  uint32_t received;      /* rounds that the reader has received */
} gp_link_slot;

/* The state that these kinds keep in link->self. */
typedef struct gp_link_slots {
  gp_link_slot *slots;
  const gp_lane *courier; /* host.c */
  char *staging;          /* host.c: host memory, slot after slot */
} gp_link_slots;

/* Make the slots, with their first three events. */
gp_status gp_link_slots_new(gp_link *link);
void gp_link_slots_free(gp_link *link);
/* begin, acquire, publish and release for every kind of link that queues order. */
void gp_link_slots_begin(gp_link *link);
gp_status gp_link_slots_acquire(gp_link *link, const gp_lane *lane, gp_link_turn turn, bool *ready);
gp_status gp_link_slots_publish(gp_link *link, gp_link_turn turn);
gp_status gp_link_slots_release(gp_link *link, gp_link_turn turn);

static inline gp_link_slots *gp_link_slots_of(const gp_link *link) { return link->self; }
static inline gp_link_slot *gp_link_slot_of(const gp_link *link, gp_link_turn turn) {
  return &gp_link_slots_of(link)->slots[turn.slot];
}

#endif
