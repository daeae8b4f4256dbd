/* engine/memory/take.c - see take.h. */
#include "engine/memory/take.h"

#include <string.h>

#include "engine/worker/worker.h"

/* One lane that copies from host memory decides for all lanes that work there, because each of them
 * may be the other end of such a copy. */
bool gp_pipeline_pins(const gp_pipeline *p, const gp_lane *lane) {
  return p->pinning && !lane->space;
}

/* Count bytes for the lane's device. The lane tells which device it is, because two of them may
 * work in one memory space. */
static void count(const gp_pipeline *p, const gp_lane *lane, size_t bytes, bool more) {
  for (int32_t d = 0; d < p->device_count; d++)
    if (&p->workers[d].lane == lane) gp_worker_count(&p->workers[d], bytes, more);
}

gp_status gp_pipeline_take(const gp_pipeline *p, const gp_lane *lane, size_t bytes, void **memory) {
  bool pins = gp_pipeline_pins(p, lane);
  if (gp_lane_is_far(lane)) return *memory = NULL, GP_OK; /* another rank takes it */
  GP_TRY(pins ? p->pinning->host_alloc(bytes, memory) : gp_lane_alloc(lane, bytes, memory));
  if (pins) memset(*memory, 0, bytes);
  count(p, lane, bytes, true);
  return GP_OK;
}

void gp_pipeline_give(const gp_pipeline *p, const gp_lane *lane, void *memory, size_t bytes) {
  if (memory) count(p, lane, bytes, false);
  if (gp_pipeline_pins(p, lane))
    p->pinning->host_free(memory);
  else
    gp_lane_free(lane, memory, bytes);
}
