/* base/machine/cores.c - core masks.
 *
 * The rest of the runtime uses positions, not the kernel's core numbers: under taskset or in a
 * container the numbers have gaps. A mask has a fixed size well above any machine's, because the C
 * library's own type ends at 1024 cores. */
#include "base/machine/cores.h"

#include <sched.h>
#include <unistd.h>

/* The C library takes masks of any size under the type of its small one. */
static cpu_set_t *mask_of(gp_cores *cores) { return (cpu_set_t *)cores->bits; }

static const cpu_set_t *const_mask_of(const gp_cores *cores) {
  return (const cpu_set_t *)cores->bits;
}

gp_cores gp_cores_allowed(void) {
  gp_cores cores = {0};
  if (sched_getaffinity(getpid(), sizeof cores.bits, mask_of(&cores)) == 0) return cores;
  /* The system does not tell the mask: take as many cores as it counts. */
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  for (size_t i = 0; i == 0 || ((long)i < online && i < GP_CORES_MAX); i++)
    CPU_SET_S(i, sizeof cores.bits, mask_of(&cores));
  return cores;
}

int gp_cores_count(const gp_cores *cores) {
  return CPU_COUNT_S(sizeof cores->bits, const_mask_of(cores));
}

/* Find the kernel's number of the core at a position. Errors: GP_ERANGE. */
static gp_status find_core(const gp_cores *allowed, int position, size_t *core) {
  int seen = 0;
  for (size_t i = 0; i < GP_CORES_MAX; i++)
    if (CPU_ISSET_S(i, sizeof allowed->bits, const_mask_of(allowed)) && seen++ == position) {
      *core = i;
      return GP_OK;
    }
  return gp_fail(GP_ERANGE, "core %d: this process may use cores 0 to %d", position, seen - 1);
}

gp_status gp_cores_pick(const int *positions, int count, gp_cores *cores) {
  gp_cores allowed = gp_cores_allowed(), picked = {0};
  for (int i = 0; i < count; i++) {
    size_t core = 0;
    GP_TRY(find_core(&allowed, positions[i], &core));
    CPU_SET_S(core, sizeof picked.bits, mask_of(&picked));
  }
  *cores = picked;
  return GP_OK;
}

void gp_cores_apply(const gp_cores *cores, pthread_attr_t *attr) {
  pthread_attr_setaffinity_np(attr, sizeof cores->bits, const_mask_of(cores));
}
