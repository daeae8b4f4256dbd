/* device/link/ranks/ways.h - which ways a value may take from a device of one process to one of
 * another.
 *
 * Both ends answer alike: what they ask is the same on both sides. */
#ifndef GP_DEVICE_LINK_WAYS_H
#define GP_DEVICE_LINK_WAYS_H

#include "device/link/link.h"

/* Does the value pass through the queue of the lane, which is one end of the link? */
bool gp_way_is_queued(const gp_link_spec *spec, const gp_lane *lane);
/* Can both processes reach the same memory? */
bool gp_way_is_near(const gp_link_spec *spec);
/* May a value that a queue makes or reads go through such memory? Not values that are small enough
 * to be part of their message. */
bool gp_way_is_shared(const gp_link_spec *spec);
/* May it go by a wire (wire.h)? Between GPUs of two hosts, or of any two with GPIPE_NCCL=1;
 * GPIPE_NCCL=0: no. */
bool gp_way_is_wired(const gp_link_spec *spec);

#endif
