/* engine/bind/host_area.c - see host_area.h. */
#include "engine/bind/host_area.h"

#include "base/memory.h"
#include "engine/state/pipeline.h"
#include "engine/worker/worker.h"
#include "plan/offload.h"

static gp_status fill(gp_host_area *area, const gp_lane *lane, size_t bytes, int32_t events) {
  GP_TRY(gp_alloc_array((size_t)events + 1, sizeof *area->copied, (void **)&area->copied));
  for (int32_t i = 0; i < events; i++)
    GP_TRY(lane->streams->event_new(lane, false, &area->copied[i]));
  GP_TRY(lane->streams->event_new(lane, false, &area->begun));
  return gp_lane_host_alloc(lane, bytes, (void **)&area->memory);
}

gp_status gp_host_area_new(gp_binding *b, int32_t d) {
  const gp_plan_device *own = &b->plan->devices[d];
  if (!own->host_bytes || !gp_device_is_here(b->pipeline, d)) return GP_OK;
  GP_TRY(gp_alloc(sizeof *b->devices[d].host, (void **)&b->devices[d].host));
  GP_TRY(fill(b->devices[d].host, gp_device_lane(b->pipeline, d), own->host_bytes,
              2 * own->offload_count));
  b->pipeline->workers[d].on_host += own->host_bytes;
  return GP_OK;
}

void gp_host_area_free(gp_binding *b, int32_t d) {
  const gp_plan_device *own = &b->plan->devices[d];
  gp_host_area *area = b->devices[d].host;
  if (!area) return;
  const gp_lane *lane = gp_device_lane(b->pipeline, d);
  for (int32_t i = 0; area->copied && i < 2 * own->offload_count; i++)
    lane->streams->event_free(lane, area->copied[i]);
  lane->streams->event_free(lane, area->begun);
  if (area->memory) b->pipeline->workers[d].on_host -= own->host_bytes;
  gp_lane_host_free(lane, area->memory);
  gp_free(area->copied);
  gp_free(area);
  b->devices[d].host = NULL;
}
