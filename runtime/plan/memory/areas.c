/* plan/memory/areas.c - what a plan needs of a device's memory, by what it is for. */
#include <stdlib.h>

#include "base/memory.h"
#include "plan/channels.h"
#include "plan/edge/step_edges.h"
#include "plan/memory/work.h"

/* Does a reader of the step edge have its room on the device? Parts of gathers lie in the host's
 * memory. */
static bool is_on(const gp_plan *plan, const gp_step_edge *edge, int32_t device) {
  return edge->value != GP_STEP_GATHER || gp_plan_on_host(plan, device);
}

/* Add up the areas of edges on a device. */
static size_t edges_of(const gp_plan *plan, int32_t device) {
  size_t bytes = 0;
  for (int32_t c = 0; c < gp_plan_value_channels(plan); c++) {
    const gp_channel *channel = &plan->channels[c];
    if (channel->home == device)
      bytes += channel->made.bytes - (size_t)abs(channel->overlap) * channel->bytes;
    for (int32_t f = 0; f < channel->fetch_count; f++)
      if (channel->fetches[f].device == device) bytes += channel->fetches[f].area.bytes;
  }
  for (int32_t e = 0; e < plan->step_edge_count; e++)
    for (int32_t r = 0; r < plan->step_edges[e].reader_count; r++)
      if (plan->step_edges[e].readers[r].device == device &&
          is_on(plan, &plan->step_edges[e], device))
        bytes += plan->step_edges[e].readers[r].area.bytes;
  return bytes;
}

static void add_stages(const gp_plan *plan, int32_t device, size_t *bytes) {
  for (int32_t h = 0; h < plan->stage_count * plan->copy_count; h++) {
    if (plan->placement[h] != device) continue;
    for (int k = 0; k < 2; k++) {
      bytes[GP_PLAN_PREPARED] += plan->invariant[2 * h + k].bytes;
      bytes[GP_PLAN_CONSTANTS] += plan->constants[2 * h + k].bytes;
      bytes[GP_PLAN_STATES] += plan->states[2 * h + k].bytes;
    }
    bytes[GP_PLAN_PARTIALS] += plan->partials[h].bytes;
    bytes[GP_PLAN_EDGES] += plan->records[h].bytes; /* what S reads, in place or sent */
    if (gp_plan_on_host(plan, device)) bytes[GP_PLAN_EDGES] += plan->sent[h].bytes;
    bytes[GP_PLAN_VERSIONS] += plan->versions[h].stash.bytes;
  }
}

/* What F has saved, on the device. */
static size_t saved_of(const size_t alive[GP_SLOT_KINDS + 1]) {
  return gp_parts_sum(&alive[GP_SLOT_DROPPED]) + gp_parts_sum(&alive[GP_SLOT_KEPT]) +
         gp_parts_sum(&alive[GP_SLOT_AWAY]) + gp_parts_sum(&alive[GP_SLOT_FETCHED]);
}

static size_t recomputed_of(const size_t alive[GP_SLOT_KINDS + 1]) {
  return gp_parts_sum(&alive[GP_SLOT_RECOMPUTED]);
}

void gp_plan_areas(const gp_plan *plan, int device, size_t bytes[GP_PLAN_AREA_COUNT],
                   size_t *shared) {
  const gp_plan_device *own = &plan->devices[device];
  for (int area = 0; area < GP_PLAN_AREA_COUNT; area++) bytes[area] = 0;
  *shared = plan->shares ? own->work.bytes : 0;
  bytes[GP_PLAN_SAVED] = saved_of(own->alive);
  bytes[GP_PLAN_RECOMPUTED] = recomputed_of(own->alive);
  bytes[GP_PLAN_CARRIED] = own->alive[GP_SLOT_CARRIED];
  bytes[GP_PLAN_TRANSIENT] = own->alive[GP_SLOT_KINDS];
  bytes[GP_PLAN_EDGES] = edges_of(plan, device);
  bytes[GP_PLAN_STAGING] = own->staging.area.bytes;
  bytes[GP_PLAN_WORKSPACE] = own->scratch.bytes;
  add_stages(plan, device, bytes);
  bytes[GP_PLAN_WASTE] = own->work.bytes - gp_plan_least_work(plan, device);
  size_t sum = 0;
  for (int area = 0; area < GP_PLAN_AREA_COUNT; area++) sum += bytes[area];
  bytes[GP_PLAN_PADDING] = gp_plan_total(plan, device) - sum;
}

gp_status gp_plan_alive(const gp_plan *plan, int device, size_t (*moments)[4]) {
  const size_t tasks = (size_t)gp_plan_task_count(plan, device);
  size_t(*kinds)[GP_SLOT_KINDS + 1];
  if (!tasks || !gp_plan_has(plan, device)) return GP_OK;
  GP_TRY(gp_alloc_array(tasks, sizeof *kinds, (void **)&kinds));
  gp_status status = gp_plan_moments(plan, device, kinds);
  for (size_t t = 0; !status && t < tasks; t++) {
    moments[t][0] = saved_of(kinds[t]);
    moments[t][1] = recomputed_of(kinds[t]);
    moments[t][2] = kinds[t][GP_SLOT_CARRIED];
    moments[t][3] = kinds[t][GP_SLOT_KINDS];
  }
  gp_free(kinds);
  return status;
}
