/* schedule/runner.c - see runner.h.
 *
 * Cost: linear in the turns. A device that lacks an action is woken by that action alone, so it has
 * two turns for each of its actions at most.
 */
#include "schedule/runner.h"

#include "base/memory.h"

/* ---- devices that wait for an action --------------------------------------------------------- */

/* As long as an action has not run, its place in `order` holds -2 - device for the device that
 * began to wait for it last; `waiter` leads from there to the others. */
static void wait_for(gp_runner *r, int32_t device, int32_t need) {
  int32_t *place = &r->order[need];
  r->at[device].waiter = *place < -1 ? -2 - *place : -1;
  *place = -2 - device;
}

static void finish(gp_runner *r, int32_t action) {
  int32_t *place = &r->order[action], waiter = *place < -1 ? -2 - *place : -1;
  *place = r->first[r->device_count] - r->left;
  while (waiter >= 0) {
    const int32_t device = waiter;
    waiter = r->at[device].waiter;
    r->at[device].waiter = GP_RUNNER_AWAITS_NONE;
    gp_runner_wake(r, device);
  }
}

/* ---- turns --------------------------------------------------------------------------------- */

static void skip_empty(gp_runner *r, gp_runner_place *at) {
  for (; at->next < at->end && r->actions[at->next].op == GP_ACT_IDLE; at->next++) r->left--;
}

static bool is_over(gp_runner *r, int32_t device) {
  if (r->skip_empty) skip_empty(r, &r->at[device]);
  return r->at[device].next == r->at[device].end;
}

/* Joined actions have not run while they are looked at, so one that needs another one of them waits
 * for ever. */
static int32_t lack_of(const gp_runner *r, int32_t device, int32_t begin, int32_t end) {
  for (int32_t a = begin; a < end; a++) {
    const int32_t lack = r->lacks(r->context, device, a);
    if (lack != GP_LACKS_NOTHING) return lack;
  }
  return GP_LACKS_NOTHING;
}

/* The next action of a device, or joined ones, if it may go on; and then all those behind it, as
 * long as it would have the next turn. */
static gp_status take_turn(gp_runner *r, int32_t device) {
  if (r->at[device].next == r->at[device].end) return GP_OK; /* it was woken behind its end */
  for (bool more = true; more;) {
    const int32_t begin = r->at[device].next, end = gp_action_group_end(r->actions, begin);
    const int32_t lack = lack_of(r, device, begin, end);
    if (lack >= 0) wait_for(r, device, lack);
    if (lack == GP_LACKS_SWEEP) gp_runner_wake(r, device);
    if (lack != GP_LACKS_NOTHING) return GP_OK;
    for (int32_t a = begin; a < end; a++, r->left--)
      if (r->order) finish(r, a);
    if (r->ran) GP_TRY(r->ran(r->context, device, begin, end));
    r->at[device].next = end;
    if (is_over(r, device)) return GP_OK;
    more = gp_turns_would_return(&r->turns, device);
  }
  gp_runner_wake(r, device);
  return GP_OK;
}

gp_status gp_runner_run(gp_runner *r, const int32_t *places) {
  r->left = r->first[r->device_count];
  gp_turns_begin(&r->turns, places);
  for (int32_t a = 0; r->order && a < r->left; a++) r->order[a] = -1;
  for (int32_t d = 0; d < r->device_count; d++)
    r->at[d] = (gp_runner_place){r->first[d], r->first[d + 1], GP_RUNNER_AWAITS_NONE};
  for (int32_t d = 0; d < r->device_count; d++)
    if (!is_over(r, d)) gp_runner_wake(r, d);
  for (int32_t d; (d = gp_turns_next(&r->turns)) >= 0;) GP_TRY(take_turn(r, d));
  return GP_OK;
}

/* ---- new and free -------------------------------------------------------------------------- */

gp_status gp_runner_new(gp_runner *r) {
  GP_TRY(gp_alloc_array((size_t)r->device_count, sizeof *r->at, (void **)&r->at));
  gp_status status = gp_turns_new(r->device_count, r->rule, &r->turns);
  if (status) gp_runner_free(r);
  return status;
}

void gp_runner_free(gp_runner *r) {
  gp_free(r->at);
  gp_turns_free(&r->turns);
  r->at = NULL;
}
