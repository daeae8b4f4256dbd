/* schedule/lowered.c - what lowering makes of a verified schedule, as a schedule of its own.
 *
 * Lowering puts no action ahead of one that it needs, and what it adds stands behind what that
 * needs. So the result need not be verified, which would take longer than the lowering. Only where
 * weight gradients cannot be added in ascending order some are left out; then the checks say so.
 */
#include <string.h>

#include "base/memory.h"
#include "schedule/passes.h"

static bool is_same(const gp_action *x, const gp_action *y) {
  return x->op == y->op && x->stage == y->stage && x->micro == y->micro &&
         x->version == y->version && x->joined == y->joined;
}

/* Has lowering changed nothing? */
static bool is_unchanged(const gp_schedule *s, const gp_lowered *lowered) {
  const int32_t count = s->first[s->device_count];
  bool same = lowered->first[s->device_count] == count;
  for (int32_t a = 0; same && a < count; a++) same = is_same(&s->actions[a], &lowered->actions[a]);
  return same;
}

/* Count the actions that make gradients of weights. */
static int32_t count_weights(const gp_action *actions, int32_t count) {
  int32_t found = 0;
  for (int32_t a = 0; a < count; a++)
    found += actions[a].op == GP_ACT_B || actions[a].op == GP_ACT_W;
  return found;
}

/* Reductions of a stream carry the number of their update, which a plan needs and texts have not:
 * the n-th one of a stage is that of update n. */
static void drop_numbers(gp_action *actions, int32_t count) {
  for (int32_t a = 0; a < count; a++)
    if (!gp_act_has_micro((gp_act)actions[a].op)) actions[a].micro = -1;
}

/* Take the lists out of `lowered`. */
static gp_status make(const gp_schedule *s, gp_lowered *lowered, gp_schedule **made) {
  const int32_t count = lowered->first[s->device_count];
  gp_schedule *own;
  GP_TRY(gp_schedule_like(s, &own));
  own->actions = lowered->actions;
  own->first = lowered->first;
  lowered->actions = NULL;
  lowered->first = NULL;
  drop_numbers(own->actions, count);
  *made = own;
  if (count_weights(own->actions, count) == count_weights(s->actions, s->first[s->device_count]))
    return GP_OK;
  return gp_schedule_check(own);
}

gp_status gp_schedule_lowered(const gp_schedule *schedule, const gp_lower_options *options,
                              gp_schedule **made) {
  gp_lowered lowered;
  gp_schedule *own = NULL;
  GP_TRY(gp_schedule_lower_actions(schedule, options, &lowered));
  gp_status status = GP_OK;
  if (!is_unchanged(schedule, &lowered)) status = make(schedule, &lowered, &own);
  gp_lowered_free(&lowered);
  if (status)
    gp_schedule_free(own);
  else
    *made = own;
  return status;
}
