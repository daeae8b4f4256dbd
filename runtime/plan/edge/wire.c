/* plan/edge/wire.c - slots for values that are on a way between processes.
 *
 * A maker that waits for free slots has one again when the reader's last use has come back to it
 * (device/link/ranks/credits.h). Between processes there may be a network, where the value takes
 * its time to get there and the credit takes its time to come back. Meanwhile the value's slot is
 * taken, so with a few slots the maker stands still for most of each round trip. */
#include "plan/channels.h"
#include "plan/make.h"

/* What is on its way needs so many bytes of slots: those that pass in one round trip, which are
 * 2 MiB for 1 Gbit/s and 16 ms, or for 10 Gbit/s and 1.6 ms. Small values get fewer: a round trip
 * takes no more than so many actions that make one, unless actions are tiny. */
enum { WIRE_BYTES = 2097152, WIRE_SLOTS = 16 };

/* Does a value of the channel go to a device of another process? */
static bool crosses(const gp_plan *plan, int32_t channel) {
  const gp_edge *e = gp_plan_edge(plan, gp_plan_channel_edge(plan, channel));
  const int32_t maker = gp_plan_channel_maker(plan, channel);
  for (int32_t i = 0; i < e->to_count * plan->copy_count; i++) {
    const int32_t stage = e->to[i / plan->copy_count], copy = i % plan->copy_count;
    const int32_t reader = plan->placement[gp_plan_holder(plan, stage, copy)];
    if (plan->devices[maker].spec.rank != plan->devices[reader].spec.rank &&
        gp_plan_channel_leads_to(plan, channel, stage, copy))
      return true;
  }
  return false;
}

gp_status gp_plan_wire_slots(const gp_plan *plan, int32_t channel, int32_t *slots) {
  size_t larger = 0, bytes;
  *slots = 0;
  if (!crosses(plan, channel)) return GP_OK;
  for (int k = 0; k < 2; k++) {
    GP_TRY(gp_plan_edge_bytes(plan, gp_plan_channel_edge(plan, channel), k, &bytes));
    if (bytes > larger) larger = bytes;
  }
  const size_t most = larger ? WIRE_BYTES / larger : WIRE_SLOTS;
  *slots = most < WIRE_SLOTS ? (int32_t)most : WIRE_SLOTS;
  return GP_OK;
}
