/* device/cpu/places.c - see places.h.
 *
 * "cpu:3" takes the cores that follow those of cpu:0 to cpu:2, whether a script lists these or not.
 * So two scripts on one host that name different devices share no core. If the listed devices have
 * different numbers of cores and this rule would put two of them on one core, they take cores one
 * after the other in the order of the list instead. */
#include "device/cpu/places.h"

#include <string.h>

#include "base/machine/cores.h"
#include "device/gpus.h"

/* N of "cpu:N"; -1 if the device is of another kind. */
static int number_of(const gp_device_spec *device) {
  gp_device_name name;
  if (gp_device_parse(device->name, &name) || name.gpu) return -1;
  return name.spec.ordinal;
}

/* The threads of the listed device cpu:n; `otherwise` if it is not listed. */
static int threads_of(const gp_device_spec *devices, int32_t count, int n, int otherwise) {
  for (int32_t d = 0; d < count; d++)
    if (number_of(&devices[d]) == n) return devices[d].threads;
  return otherwise;
}

static int by_number(const gp_device_spec *devices, int32_t count, int32_t d, int cores) {
  int64_t first = 0;
  for (int n = number_of(&devices[d]) - 1; n >= 0; n--)
    first += threads_of(devices, count, n, devices[d].threads);
  return (int)(first % cores);
}

/* Do two devices share a core? */
static bool they_meet(const gp_device_spec *devices, int32_t count, int cores, const int *first) {
  unsigned char taken[GP_CORES_MAX / 8] = {0};
  for (int32_t d = 0; d < count; d++)
    for (int i = 0; number_of(&devices[d]) >= 0 && i < devices[d].threads; i++) {
      int core = (first[d] + i) % cores;
      unsigned char bit = (unsigned char)(1u << core % 8);
      if (core >= GP_CORES_MAX || taken[core / 8] & bit) return true;
      taken[core / 8] |= bit;
    }
  return false;
}

void gp_cpu_places(const gp_device_spec *devices, int32_t count, int cores, int *first) {
  int next = 0;
  for (int32_t d = 0; d < count; d++) first[d] = by_number(devices, count, d, cores);
  if (!they_meet(devices, count, cores, first)) return;
  for (int32_t d = 0; d < count; d++) {
    first[d] = next % cores;
    if (number_of(&devices[d]) >= 0) next += devices[d].threads;
  }
}
