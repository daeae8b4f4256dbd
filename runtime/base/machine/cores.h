/* base/machine/cores.h - the cores that this process may run on. */
#ifndef GP_BASE_CORES_H
#define GP_BASE_CORES_H

#include <pthread.h>

#include "base/status.h"

enum { GP_CORES_MAX = 4096 };

/* A set of cores by the kernel's numbers. */
typedef struct gp_cores {
  unsigned long bits[GP_CORES_MAX / (8 * sizeof(unsigned long))];
} gp_cores;

/* The affinity mask of the process (that of its first thread: workers are pinned further). */
gp_cores gp_cores_allowed(void);
int gp_cores_count(const gp_cores *cores);
/* Pick the cores at these 0-based positions among the allowed ones. Errors: GP_ERANGE. */
gp_status gp_cores_pick(const int *positions, int count, gp_cores *cores);
/* Let a thread made with attr run on these cores only. */
void gp_cores_apply(const gp_cores *cores, pthread_attr_t *attr);

#endif
