/* device/lane.c - see lane.h: the kinds of lanes, and what is the same for all.
 *
 * This file and link/link.c are the only places that know which kinds there are. A lane works on
 * its memory space or, without one, on host memory: that alone decides which lanes read what. */
#include "device/lane.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "device/cpu/places.h"
#include "device/gpus.h"

/* The kinds, by the beginning of their devices' names. */
static const struct {
  const char *prefix;
  gp_status (*open)(const char *name, const gp_lane_options *options, gp_lane *lane);
} kinds[] = {{"cpu", gp_lane_open_cpu}, {"cuda", gp_lane_open_gpu}};

/* ---- open and close ------------------------------------------------------------------------ */

gp_status gp_lane_open(const char *name, const gp_lane_options *options, gp_lane *lane) {
  gp_device_name parsed;
  snprintf(lane->name, sizeof lane->name, "%s", name);
  GP_TRY(gp_device_parse(name, &parsed));
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (strncmp(name, kinds[i].prefix, strlen(kinds[i].prefix)) == 0)
      return kinds[i].open(name, options, lane);
  return gp_fail(GP_EINVAL, "nothing drives a device '%s'", name);
}

void gp_lane_close(gp_lane *lane) {
  if (lane->facts) lane->close(lane);
  lane->facts = NULL;
}

void gp_lane_places(const gp_device_spec *devices, int32_t count, int cores, int *first) {
  gp_cpu_places(devices, count, cores, first);
}

/* ---- memory -------------------------------------------------------------------------------- */

gp_status gp_lane_alloc(const gp_lane *lane, size_t bytes, void **memory) {
  if (gp_lane_is_far(lane)) return *memory = NULL, GP_OK;
  return lane->space ? lane->space->alloc(lane->space, bytes, memory) : gp_alloc(bytes, memory);
}

void gp_lane_free(const gp_lane *lane, void *memory, size_t bytes) {
  if (!memory) return;
  if (lane->space)
    lane->space->free(lane->space, memory, bytes);
  else
    gp_free(memory);
}

gp_status gp_lane_host_alloc(const gp_lane *lane, size_t bytes, void **memory) {
  const gp_lane_memory *kind = lane->memory;
  return kind->host_alloc ? kind->host_alloc(bytes, memory) : gp_alloc(bytes, memory);
}

void gp_lane_host_free(const gp_lane *lane, void *memory) {
  if (!memory) return;
  if (lane->memory->host_free)
    lane->memory->host_free(memory);
  else
    gp_free(memory);
}

gp_status gp_lane_copy(const gp_lane *lane, void *to, const void *from, size_t bytes) {
  return lane->memory->copy(lane, GP_STREAM_COMPUTE, to, from, bytes);
}

gp_status gp_lane_fill(const gp_lane *lane, void *to, int byte, size_t bytes) {
  return bytes ? lane->memory->fill(lane, GP_STREAM_COMPUTE, to, byte, bytes) : GP_OK;
}

gp_status gp_lane_sync(const gp_lane *lane) { return lane->streams->sync(lane, GP_STREAM_COMPUTE); }

gp_status gp_lane_capture(const gp_lane *lane, gp_status (*enqueue)(void *context), void *context,
                          gp_lane_graph **graph) {
  const gp_lane_graphs *graphs = lane->graphs;
  *graph = NULL;
  gp_status status = graphs->begin(lane);
  if (status == GP_EUNSUPPORTED) return GP_OK;
  GP_TRY(status);
  status = enqueue(context);
  GP_TRY(graphs->end(lane, graph));
  if (!*graph || !status) return GP_OK;
  graphs->free(*graph); /* the work stopped half-way */
  *graph = NULL;
  return status;
}

gp_status gp_lane_add(const gp_lane *lane, gp_dtype dtype, int64_t n, void *to, const void *from) {
  return lane->sums->add(lane, dtype, n, to, from);
}
