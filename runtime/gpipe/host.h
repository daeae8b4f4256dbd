/* gpipe/host.h - how a device reaches the host's memory, in which values may wait. See gpipe.h for
 * what holds everywhere. */
#ifndef GP_PUBLIC_HOST_H
#define GP_PUBLIC_HOST_H

#include "gpipe/status.h"

typedef struct gp_host_link {
  double bandwidth; /* bytes per second, each way; 0: not known, so AUTO sends nothing there */
  double latency;   /* seconds of each copy */
  size_t bytes;     /* of the host's memory that the device may take; 0: no limit */
} gp_host_link;

#endif
