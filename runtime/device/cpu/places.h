/* device/cpu/places.h - which cores the threads of CPU devices are pinned to. */
#ifndef GP_DEVICE_CPU_PLACES_H
#define GP_DEVICE_CPU_PLACES_H

#include "gpipe/device.h"

/* Set first[count] to the first core of each CPU device; its threads take the cores that follow,
 * round robin.
 * "cpu:N" lies behind cpu:0 to cpu:N-1: behind as many threads as those have that are listed, and
 * as many as its own for each that is not. So two processes that use different devices use
 * different cores. Where devices of the list would meet on a core, they take cores one after the
 * other in the order of the list. */
void gp_cpu_places(const gp_device_spec *devices, int32_t count, int cores, int *first);

#endif
