/* device/lane.c - see lane.h. */
#include "device/lane.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"

enum { PIECE = 16384 }; /* elements that one thread adds at a time */

/* ---- open and close ------------------------------------------------------------------------ */

gp_status gp_lane_open(const char *name, gp_lane *lane) {
  gp_device_name parsed;
  snprintf(lane->name, sizeof lane->name, "%s", name);
  GP_TRY(gp_device_parse(name, &parsed));
  if (!parsed.gpu) return GP_OK;
  GP_TRY(gp_gpus_space(parsed.spec.ordinal, &lane->space));
  GP_TRY(gp_gpus_api(&lane->api));
  return lane->api->open(&parsed.spec, &lane->gpu);
}

void gp_lane_close(gp_lane *lane) {
  gp_team_free(lane->team);
  lane->team = NULL;
  if (lane->gpu) lane->api->close(lane->gpu);
  lane->gpu = NULL;
}

/* ---- memory -------------------------------------------------------------------------------- */

gp_status gp_lane_alloc(const gp_lane *lane, size_t bytes, void **memory) {
  return lane->space ? lane->space->alloc(lane->space, bytes, memory) : gp_alloc(bytes, memory);
}

void gp_lane_free(const gp_lane *lane, void *memory, size_t bytes) {
  if (!memory) return;
  if (lane->space)
    lane->space->free(lane->space, memory, bytes);
  else
    gp_free(memory);
}

gp_status gp_lane_copy(const gp_lane *lane, void *to, const void *from, size_t bytes) {
  if (lane->gpu) return lane->api->copy(lane->gpu, GP_STREAM_COMPUTE, to, from, bytes);
  if (bytes) memcpy(to, from, bytes);
  return GP_OK;
}

gp_status gp_lane_fill(const gp_lane *lane, void *to, int byte, size_t bytes) {
  if (!bytes) return GP_OK;
  if (lane->gpu) return lane->api->fill(lane->gpu, GP_STREAM_COMPUTE, to, byte, bytes);
  memset(to, byte, bytes);
  return GP_OK;
}

/* What the CPU takes from a GPU is waited for: it works on at once. */
gp_status gp_lane_take(const gp_lane *lane, void *to, const gp_lane *other, const void *from,
                       size_t bytes) {
  if (gp_lane_shares(lane, other) || !other->gpu) return gp_lane_copy(lane, to, from, bytes);
  if (!lane->gpu) return other->space->read(other->space, to, from, bytes);
  return lane->api->copy_peer(lane->gpu, GP_STREAM_COMPUTE, to, other->gpu, from, bytes);
}

gp_status gp_lane_sync(const gp_lane *lane) {
  return lane->gpu ? lane->api->sync(lane->gpu, GP_STREAM_COMPUTE) : GP_OK;
}

/* ---- sums ---------------------------------------------------------------------------------- */

/* n elements of one type to be added, from one memory to another. */
typedef struct sum {
  gp_dtype dtype;
  int64_t n;
  void *to;
  const void *from;
} sum;

static gp_status add_piece(void *context, int64_t index, int thread) {
  const sum *s = context;
  int64_t first = index * PIECE, last = first + PIECE < s->n ? first + PIECE : s->n;
  float *to32 = s->to;
  double *to64 = s->to;
  const float *from32 = s->from;
  const double *from64 = s->from;
  (void)thread;
  for (int64_t i = first; s->dtype == GP_F32 && i < last; i++) to32[i] += from32[i];
  for (int64_t i = first; s->dtype != GP_F32 && i < last; i++) to64[i] += from64[i];
  return GP_OK;
}

/* Element by element: the bits do not depend on who adds which. */
gp_status gp_lane_add(const gp_lane *lane, gp_dtype dtype, int64_t n, void *to, const void *from) {
  sum s = {dtype, n, to, from};
  if (lane->gpu) return lane->api->add(lane->gpu, dtype, n, to, from);
  return gp_team_run(lane->team, (n + PIECE - 1) / PIECE, add_piece, &s);
}
