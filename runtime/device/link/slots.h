/* device/link/slots.h - what links between queues know of each slot: events. */
#ifndef GP_DEVICE_LINK_SLOTS_H
#define GP_DEVICE_LINK_SLOTS_H

#include "device/link/link.h"

/* Each field is written by one end before it publishes or releases the slot, and read by the other
 * after. */
typedef struct gp_link_slot {
  gp_lane_event *made;    /* on the maker's compute stream, after the task that made the value */
  gp_lane_event *arrived; /* on the reader's receive stream, after it came */
  gp_lane_event *freed;   /* on the reader's compute stream, after its last use */
  gp_lane_event *brought; /* on a courier's stream, after it came to memory of the host */
  bool is_made;           /* made was recorded in this round; else the value was there already */
  bool is_used;           /* freed was recorded in this run */
  uint32_t received;      /* rounds that the reader has received */
} gp_link_slot;

/* What these kinds keep in link->self. */
typedef struct gp_link_slots {
  gp_link_slot *slots;
  const gp_lane *courier; /* host.c */
  char *staging;          /* host.c: memory of the host, slot after slot */
} gp_link_slots;

/* Slots with the first three events. */
gp_status gp_link_slots_new(gp_link *link);
void gp_link_slots_free(gp_link *link);
/* The link's begin, acquire, publish and release, which are the same wherever queues order them. */
void gp_link_slots_begin(gp_link *link);
gp_status gp_link_slots_acquire(gp_link *link, const gp_lane *lane, gp_link_turn turn, bool *ready);
gp_status gp_link_slots_publish(gp_link *link, gp_link_turn turn);
gp_status gp_link_slots_release(gp_link *link, gp_link_turn turn);

static inline gp_link_slots *gp_link_slots_of(const gp_link *link) { return link->self; }
static inline gp_link_slot *gp_link_slot_of(const gp_link *link, gp_link_turn turn) {
  return &gp_link_slots_of(link)->slots[turn.slot];
}

#endif
