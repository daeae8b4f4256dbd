/* engine/binding.h - a plan joined with a pipeline: the memory that it wants, and what workers know of its slots.
 *
 * Made before the first run of a plan and given back with it; runs allocate nothing. Addresses are those of
 * the plan's areas; NULL where it wants nothing.
 */
#ifndef GP_ENGINE_BINDING_H
#define GP_ENGINE_BINDING_H

#include <stdatomic.h>

#include "plan/plan.h"

/* What the workers know of one slot; reset before each run. */
typedef struct gp_slot_state {
  _Atomic uint32_t published; /* rounds whose value lies in the slot */
  _Atomic uint32_t released;  /* last uses so far */
} gp_slot_state;

typedef struct gp_bound_channel {
  char *made[2];         /* per copy of the making stage */
  char **fetched;        /* per device; NULL where it reads in place, or nothing */
  gp_slot_state *states; /* per slot */
} gp_bound_channel;

typedef struct gp_bound_device {
  char *block; /* the memory that all of the plan's areas on the device lie in */
  char *temp, *scratch, *desk;
} gp_bound_device;

typedef struct gp_binding {
  gp_pipeline *pipeline;
  gp_plan *plan; /* owned */
  gp_bound_device *devices;
  gp_bound_channel *channels; /* per edge */
  char **kept;                /* per (stage, copy): slots of values that outlive an action */
  char **stash;               /* per stage: older versions of the weights */
  char **invariant, **guests; /* per (stage, copy) and shape */
  uint64_t prepared;          /* weights of which P's results are there (prepared.c); 0: none */
  struct gp_wiring *wiring;   /* events, pinned memory and graphs of GPUs; NULL without */
} gp_binding;

/* Take all the memory that runs of the plan need. Ownership: the plan is taken where it succeeds. */
gp_status gp_bind(gp_pipeline *pipeline, gp_plan *plan, gp_binding **binding);
/* Give it back, and free the plan. */
void gp_unbind(gp_binding *binding);

/* The slots in which a device reads, or makes, the values of an edge in micro-batches of a copy. */
static inline char *gp_binding_slots(const gp_binding *b, int32_t edge, int32_t copy,
                                     int32_t device) {
  bool in_place = gp_plan_shares(b->plan, gp_plan_maker(b->plan, edge, copy), device);
  return in_place ? b->channels[edge].made[copy] : b->channels[edge].fetched[device];
}

#endif
