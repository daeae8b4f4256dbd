/* engine/bind/host_area.h - the host's memory in which what a device has saved waits for its
 * backward pass (plan/offload.h), and the events of the copies. */
#ifndef GP_ENGINE_HOST_AREA_H
#define GP_ENGINE_HOST_AREA_H

#include "engine/state/binding.h"

struct gp_host_area {
  char *memory;
  gp_lane_event *begun;   /* what the compute stream had to do when a copy began */
  gp_lane_event **copied; /* per offload of the device: it is on the host; then: it is back */
};

/* Allocate the area of a device, if its plan needs one. */
gp_status gp_host_area_new(gp_binding *binding, int32_t device);
void gp_host_area_free(gp_binding *binding, int32_t device);

/* The event of the copy of an offload; back: to the device. */
static inline gp_lane_event *gp_host_area_copied(const gp_binding *b, int32_t device,
                                                 int32_t offload, bool back) {
  const int32_t number = offload - b->plan->devices[device].first_offload;
  return b->devices[device].host->copied[2 * number + back];
}

#endif
