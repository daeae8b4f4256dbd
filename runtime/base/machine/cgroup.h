/* base/machine/cgroup.h - the limits that a container or a service manager put on this process. */
#ifndef GP_BASE_CGROUP_H
#define GP_BASE_CGROUP_H

#include <stddef.h>

typedef struct gp_cgroup_limits {
  double cores;  /* CPU time per time; 0: no limit */
  size_t memory; /* bytes; 0: no limit */
} gp_cgroup_limits;

/* Read the limits of control groups version 1 and 2, the tightest on the way to the root. root is
 * put before every path ("" except in tests). A limit that cannot be read counts as none. */
gp_cgroup_limits gp_cgroup_read(const char *root);

#endif
