/* schedule/verify/capacity.c - the smallest capacity of channels with which a schedule ends, and
 * with which it is as fast as with any.
 *
 * The simulator's run (simulate/run.c) with unit costs tells whether a schedule ends. Larger
 * channels never hurt, so both capacities are found by halving; a channel with room for every
 * micro-batch never blocks. Deadlocks are described here and not in the simulator, because the
 * verifier can show the grid.
 */
#include <stdio.h>

#include "base/memory.h"
#include "schedule/simulate/simulate.h"
#include "schedule/verify/verify.h"

/* ---- what went wrong ----------------------------------------------------------------------- */

/* Returns the device that a stuck device waits for. */
static int32_t peer_of(const gp_sim *run, int32_t device) {
  const gp_sim_cursor *c = &run->cursors[device];
  return gp_action_device(run->schedule, c->ran ? gp_sim_reader(run, c->part) : c->waits);
}

/* Say in words what the device waits for. */
static void describe(const gp_verify *v, const gp_sim *run, int32_t device, char *text,
                     size_t size) {
  const gp_sim_cursor *c = &run->cursors[device];
  int32_t peer = peer_of(run, device);
  char one[GP_ACTION_TEXT];
  if (c->ran)
    snprintf(text, size, "cannot send to device %d (%s)", (int)peer,
             run->capacity ? "the channel is full" : "it is not receiving");
  else
    snprintf(text, size, "waits for %s of device %d", gp_verify_name(v, c->waits, one), (int)peer);
}

/* Every stuck device waits for another stuck one: follow them into the circle. */
static gp_status report(const gp_verify *v, const gp_sim *run, int32_t device) {
  char text[420] = "", one[GP_ACTION_TEXT], wait[96];
  for (int32_t i = 0; i < v->s->device_count; i++) device = peer_of(run, device);
  describe(v, run, device, wait, sizeof wait);
  size_t used = (size_t)snprintf(text, sizeof text, "%s", wait);
  int32_t d = peer_of(run, device);
  for (; d != device && used + 150 < sizeof text; d = peer_of(run, d)) {
    describe(v, run, d, wait, sizeof wait);
    used += (size_t)snprintf(text + used, sizeof text - used, "; device %d at %s %s", (int)d,
                             gp_verify_name(v, run->cursors[d].part, one), wait);
  }
  return gp_verify_fail(v, run->cursors[device].part, "capacity",
                        "%s%s: a deadlock with channels of capacity %d", text,
                        d == device ? "" : "; ...", (int)run->capacity);
}

/* ---- the run ------------------------------------------------------------------------------- */

static gp_status settle(const gp_verify *v, const gp_sim *run, bool tell, int32_t *makespan) {
  *makespan = 0;
  for (int32_t d = 0; d < v->s->device_count; d++) {
    if (gp_sim_is_stuck(run, d)) {
      *makespan = -1;
      return tell ? report(v, run, d) : GP_OK;
    }
    if (run->cursors[d].ready > *makespan) *makespan = (int32_t)run->cursors[d].ready;
  }
  return GP_OK;
}

/* A backward pass in one piece takes as long as its halves. */
gp_status gp_verify_channels(const gp_verify *v, int32_t capacity, bool tell, int32_t *makespan) {
  gp_costs costs = {.stage_count = v->s->stage_count, .joined = 1, .capacity = capacity};
  gp_sim run = {.schedule = v->s, .edges = &v->edges, .costs = &costs, .messages_only = true};
  double *ones;
  GP_TRY(gp_alloc_array((size_t)v->s->stage_count, sizeof *ones, (void **)&ones));
  for (int32_t stage = 0; stage < v->s->stage_count; stage++) ones[stage] = 1;
  costs.act[GP_ACT_F] = costs.act[GP_ACT_I] = costs.act[GP_ACT_W] = costs.act[GP_ACT_R] = ones;
  gp_status status = gp_sim_run(&run);
  if (!status) status = settle(v, &run, tell, makespan);
  gp_sim_close(&run);
  gp_free(ones);
  return status;
}

/* ---- the search ---------------------------------------------------------------------------- */

/* Does the schedule end with this capacity, and within the time (-1: any time)? */
static gp_status is_enough(const gp_verify *v, int32_t capacity, int32_t within, bool *enough) {
  int32_t makespan;
  GP_TRY(gp_verify_channels(v, capacity, false, &makespan));
  *enough = makespan >= 0 && (within < 0 || makespan <= within);
  return GP_OK;
}

/* Find the smallest capacity in low .. high that is enough; high is. Growing steps from below come
 * first, because most schedules need one or two. */
static gp_status search(const gp_verify *v, int32_t low, int32_t high, int32_t within,
                        int32_t *found) {
  bool enough = false;
  for (int32_t step = 1; low < high && !enough; step *= 2) {
    int32_t probe = high - low < step ? high - 1 : low + step - 1;
    GP_TRY(is_enough(v, probe, within, &enough));
    *(enough ? &high : &low) = enough ? probe : probe + 1;
  }
  while (low < high) {
    int32_t probe = low + (high - low) / 2;
    GP_TRY(is_enough(v, probe, within, &enough));
    *(enough ? &high : &low) = enough ? probe : probe + 1;
  }
  *found = high;
  return GP_OK;
}

static gp_status find_both(const gp_verify *v, int32_t *works, int32_t *full_speed) {
  int32_t most = v->s->micro_count, fastest;
  GP_TRY(gp_verify_channels(v, most, true, &fastest));
  GP_TRY(search(v, 0, most, -1, works));
  return search(v, *works, most, fastest, full_speed);
}

gp_status gp_schedule_capacity(const gp_schedule *s, int *works, int *full_speed) {
  gp_schedule_fault fault;
  gp_verify v = {.s = s, .fault = &fault, .order = s->order};
  int32_t found[2] = {0, 0};
  gp_status status = gp_verify_index(&v);
  if (!status) status = find_both(&v, &found[0], &found[1]);
  gp_verify_free(&v);
  *works = found[0];
  *full_speed = found[1];
  return status;
}
