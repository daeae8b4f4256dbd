/* engine/bind/side.c - see side.h.
 *
 * A device runs one program at a time, so that all of its programs share the events of the one that
 * wants most. */
#include "engine/bind/side.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "engine/pipeline.h"

static int32_t events_of(const gp_plan *plan, int32_t d) {
  int32_t most = 0;
  for (int32_t t = plan->first[d]; t < plan->first[d + 1]; t++) {
    const gp_program *program = plan->tasks[t].program;
    if (program && program->event_count > most) most = program->event_count;
  }
  return most;
}

static gp_status make_events(gp_binding *b, int32_t d) {
  const gp_lane *lane = gp_device_lane(b->pipeline, d);
  gp_bound_device *device = &b->devices[d];
  int32_t count = events_of(b->plan, d);
  if (!b->plan->devices[d].side || !count) return GP_OK;
  GP_TRY(gp_alloc_array((size_t)count, sizeof(gp_lane_event *), (void **)&device->side_events));
  for (; device->side_event_count < count; device->side_event_count++)
    GP_TRY(lane->ops->inner_event_new(lane, &device->side_events[device->side_event_count]));
  return GP_OK;
}

gp_status gp_side_new(gp_binding *b) {
  for (int32_t d = 0; d < b->plan->device_count; d++) GP_TRY(make_events(b, d));
  return GP_OK;
}

void gp_side_free(gp_binding *b) {
  for (int32_t d = 0; b->devices && d < b->plan->device_count; d++) {
    const gp_lane *lane = gp_device_lane(b->pipeline, d);
    gp_bound_device *device = &b->devices[d];
    for (int32_t i = 0; i < device->side_event_count; i++)
      lane->ops->event_free(lane, device->side_events[i]);
    gp_free(device->side_events);
    device->side_events = NULL;
    device->side_event_count = 0;
  }
}

bool gp_side_wanted(void) {
  const char *wish = getenv("GPIPE_SIDE_STREAM");
  return wish && strcmp(wish, "1") == 0;
}
