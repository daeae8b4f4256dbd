/* device/cpu/places.h - which cores the threads of CPU devices are pinned to. */
#ifndef GP_DEVICE_CPU_PLACES_H
#define GP_DEVICE_CPU_PLACES_H

#include "gpipe/device.h"

/* Set first[count] to the first core of each CPU device; its threads take the cores that follow,
 * round robin.
 *
 * "cpu:N" follows cpu:0 to cpu:N-1: a listed device counts with its own threads, one that is not
 * listed with as many threads as cpu:N has. So two processes that use different devices use
 * different cores. If devices of the list would share a core, they take cores one after the other
 * in the order of the list instead. */
void gp_cpu_places(const gp_device_spec *devices, int32_t count, int cores, int *first);

#endif
