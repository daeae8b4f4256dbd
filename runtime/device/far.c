/* device/far.c - a device of another rank: see gp_lane_open_far.
 *
 * Plans are made for all devices of a pipeline, and each rank binds its own. Code that walks over
 * all devices need not ask whose they are: there is no memory here, and calls that move bytes do
 * nothing. No worker drives such a lane, so there is no table for ops. */
#include <stdio.h>

#include "device/gpus.h"
#include "device/lane.h"

static bool reaches(const gp_lane *lane, const gp_lane *other) {
  return gp_lane_shares(lane, other);
}

static gp_status free_bytes(const gp_lane *lane, size_t *bytes) {
  (void)lane;
  *bytes = SIZE_MAX;
  return GP_OK;
}

static gp_status copy(const gp_lane *lane, gp_stream stream, void *to, const void *from,
                      size_t bytes) {
  (void)lane, (void)stream, (void)to, (void)from, (void)bytes;
  return GP_OK;
}

static gp_status fetch(const gp_lane *lane, gp_stream stream, void *to, const gp_lane *other,
                       const void *from, size_t bytes) {
  (void)other;
  return copy(lane, stream, to, from, bytes);
}

static gp_status fill(const gp_lane *lane, gp_stream stream, void *to, int byte, size_t bytes) {
  (void)lane, (void)stream, (void)to, (void)byte, (void)bytes;
  return GP_OK;
}

static gp_status sync(const gp_lane *lane, gp_stream stream) {
  (void)lane, (void)stream;
  return GP_OK;
}

static void set_precision(const gp_lane *lane, bool tf32) { (void)lane, (void)tf32; }

static gp_status add(const gp_lane *lane, gp_dtype dtype, int64_t n, void *to, const void *from) {
  (void)lane, (void)dtype, (void)n, (void)to, (void)from;
  return GP_OK;
}

static gp_status sweep(const gp_lane *lane, const gp_lane_sweep *all) {
  (void)lane, (void)all;
  return GP_OK;
}

static gp_status update(const gp_lane *lane, const gp_lane_update *all) {
  (void)lane, (void)all;
  return GP_OK;
}

static bool path(const gp_lane *lane, int i, gp_work_path *found) {
  (void)lane, (void)i, (void)found;
  return false;
}

static void close_lane(gp_lane *lane) { (void)lane; }

/* Those of every CPU device (cpu/lane.c) and of every GPU (gpu/lane.c): plans have to be the same
 * on all ranks. */
static const gp_lane_facts cpu = {.packs_weights = true, .at_once = true},
                           gpu = {.sums_parts = true, .writes_halves = true};
static const gp_lane_memory memory = {
    .reaches = reaches, .free_bytes = free_bytes, .copy = copy, .fetch = fetch, .fill = fill};
static const gp_lane_streams streams = {.sync = sync};
static const gp_lane_work work = {.set_precision = set_precision};
static const gp_lane_sums sums = {.add = add, .squares = sweep, .scale = sweep, .update = update};
static const gp_lane_reports reports = {.path = path};

/* Stand for the memory of a rank's GPUs: which of its devices share one is all that is asked. */
static gp_space *space_of(const gp_device_name *name) {
  enum { MOST_GPUS = 64 };
  static gp_space spaces[MOST_GPUS];
  return name->gpu ? &spaces[name->spec.ordinal % MOST_GPUS] : NULL;
}

gp_status gp_lane_open_far(const char *name, int32_t rank, gp_lane *lane) {
  gp_device_name parsed;
  GP_TRY(gp_device_parse(name, &parsed));
  snprintf(lane->name, sizeof lane->name, "%d/%.20s", (int)rank, name);
  lane->rank = rank;
  lane->facts = parsed.gpu ? &gpu : &cpu;
  lane->space = space_of(&parsed);
  lane->memory = &memory;
  lane->streams = &streams;
  lane->work = &work;
  lane->sums = &sums;
  lane->reports = &reports;
  lane->close = close_lane;
  return GP_OK;
}

bool gp_lane_is_far(const gp_lane *lane) { return lane->memory == &memory; }
