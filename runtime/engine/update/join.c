/* engine/update/join.c - devices that wait for each other's gradients without their hosts.
 *
 * Where the stages join (sums of two copies, tied weights) a device reads what others have made. If
 * all of them have queues, each records an event when it comes to the barrier, and the streams wait
 * for the others' events: the host goes on, and enqueues what follows while the GPU still works.
 * Before anything is decided (clipping, updates) the host waits all the same, as it has to see the
 * faults; so whoever writes next to what was read here does it after that wait, or in the next run.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/pipeline.h"
#include "engine/update/update.h"

/* GPIPE_JOIN_EVENTS=0: the host waits everywhere, to compare. */
static bool is_wanted(void) {
  const char *wish = getenv("GPIPE_JOIN_EVENTS");
  return !wish || strcmp(wish, "0") != 0;
}

static bool comes_to_barriers(const gp_plan *plan, int32_t device) {
  for (int32_t t = plan->first[device]; t < plan->first[device + 1]; t++)
    if (plan->tasks[t].barrier) return true;
  return false;
}

gp_status gp_join_new(gp_binding *b) {
  const gp_plan *plan = b->plan;
  for (int32_t d = 0; d < plan->device_count; d++)
    if (b->pipeline->workers[d].lane.ops->at_once || !is_wanted()) return GP_OK;
  b->joined = !gp_plan_streams(plan); /* a stream has no end of a run to wait for */
  for (int32_t d = 0; plan->barrier_parties > 1 && b->joined && d < plan->device_count; d++) {
    const gp_lane *lane = &b->pipeline->workers[d].lane;
    for (int turn = 0; turn < 2 && comes_to_barriers(plan, d); turn++)
      GP_TRY(lane->ops->event_new(lane, false, &b->devices[d].made[turn]));
  }
  return GP_OK;
}

void gp_join_free(gp_binding *b) {
  for (int32_t d = 0; b->devices && d < b->plan->device_count; d++) {
    const gp_lane *lane = &b->pipeline->workers[d].lane;
    for (int turn = 0; turn < 2; turn++)
      if (b->devices[d].made[turn]) lane->ops->event_free(lane, b->devices[d].made[turn]);
  }
}

gp_status gp_join_arrive(const gp_worker *worker) {
  const gp_lane *lane = &worker->lane;
  const gp_bound_device *device = &worker->pipeline->run.binding->devices[worker->device];
  gp_lane_event *made = device->made[worker->barriers & 1];
  return made ? lane->ops->record(lane, GP_STREAM_COMPUTE, made) : GP_OK;
}

gp_status gp_join_follow(const gp_worker *worker) {
  const gp_lane *lane = &worker->lane;
  const gp_binding *b = worker->pipeline->run.binding;
  const int turn = (worker->barriers - 1) & 1; /* the barrier is counted already */
  for (int32_t d = 0; d < b->plan->device_count; d++)
    if (d != worker->device && b->devices[d].made[turn])
      GP_TRY(lane->ops->wait(lane, GP_STREAM_COMPUTE, b->devices[d].made[turn]));
  return GP_OK;
}
