/* schedule/verify/updates.c - is there one update per stage and batch, behind all its gradients and
 * their reduction?
 *
 * A synchronous schedule leaves updates out (the optimizer's step follows) or has one for each
 * stage; an asynchronous one has all of them. Each copy of a stage updates its own weights.
 */
#include "schedule/verify/verify.h"

/* A stage on one of its devices. */
typedef struct holder {
  int32_t stage, copy;
} holder;

static int32_t find(const gp_verify *v, const int32_t *table, holder h, int32_t batch) {
  size_t row = (size_t)h.stage * (size_t)v->s->copy_count + (size_t)h.copy;
  return table ? table[row * (size_t)v->batch_count + (size_t)batch] - 1 : -1;
}

static int32_t device_of(const gp_verify *v, holder h) {
  return v->s->placement[h.stage * v->s->copy_count + h.copy];
}

/* All gradients of the batch that its device makes must come before action a. */
static gp_status check_after(const gp_verify *v, int32_t a, int32_t stage, int32_t batch) {
  int32_t device = a < 0 ? 0 : gp_action_device(v->s, a), begin, end;
  gp_edges_batch(v->s, batch, &begin, &end);
  for (int32_t i = begin; a >= 0 && i < end; i++) {
    int32_t gradient = gp_edges_weights(&v->edges, stage, i);
    char one[GP_ACTION_TEXT];
    if (gradient < a || !gp_action_is_on(v->s, gradient, device)) continue;
    return gp_verify_fail(v, a, "updates", "comes before %s, whose gradient belongs to it",
                          gp_verify_name(v, gradient, one));
  }
  return GP_OK;
}

static gp_status check_batch(const gp_verify *v, holder h, int32_t batch) {
  int32_t update = find(v, v->update, h, batch), reduce = find(v, v->reduce, h, batch);
  int32_t other = find(v, v->reduce, (holder){h.stage, 0}, batch);
  if (v->update && update < 0)
    return gp_verify_fail_device(
        v, device_of(v, h), "updates", "stage %d has no update %d on device %d (%dU%d is missing)",
        (int)h.stage, (int)batch, (int)device_of(v, h), (int)h.stage, (int)batch);
  if ((reduce < 0) != (other < 0))
    return gp_verify_fail_device(v, device_of(v, h), "updates",
                                 "the gradients of stage %d are reduced on some of its devices "
                                 "only (%dREDUCE_GRAD)",
                                 (int)h.stage, (int)h.stage);
  if (update >= 0 && reduce > update)
    return gp_verify_fail(v, update, "updates", "comes before %dREDUCE_GRAD, whose sum it needs",
                          (int)h.stage);
  GP_TRY(check_after(v, reduce, h.stage, batch));
  return check_after(v, update, h.stage, batch);
}

/* ---- what joins all stages ------------------------------------------------------------------- */

/* On the device of a copy, it comes after the gradients, and in the order of the ops. */
static gp_status check_turn(const gp_verify *v, holder h, gp_act op) {
  int32_t row = h.stage * v->s->copy_count + h.copy, a = gp_verify_ending(v, op, row);
  int32_t before[] = {find(v, v->reduce, h, 0), gp_verify_ending(v, GP_ACT_TIE, row),
                      gp_verify_ending(v, GP_ACT_NORM, row), gp_verify_ending(v, GP_ACT_CLIP, row)};
  int32_t update = find(v, v->update, h, 0);
  char one[GP_ACTION_TEXT];
  for (int k = 0; k <= (int)(op - GP_ACT_TIE); k++)
    if (before[k] > a)
      return gp_verify_fail(v, a, "updates", "comes before %s, whose result it needs",
                            gp_verify_name(v, before[k], one));
  if (update >= 0 && update < a)
    return gp_verify_fail(v, update, "updates", "comes before %s, whose result it needs",
                          gp_verify_name(v, a, one));
  return check_after(v, a, h.stage, 0);
}

/* All copies of all stages have a part, or none has. */
static gp_status check_joins(const gp_verify *v, gp_act op) {
  const int32_t *table = v->ending[op - GP_ACT_TIE];
  for (int32_t stage = 0; table && stage < v->s->stage_count; stage++)
    for (int32_t copy = 0; copy < gp_verify_copies(v->s, stage); copy++) {
      holder h = {stage, copy};
      if (table[stage * v->s->copy_count + copy]) {
        GP_TRY(check_turn(v, h, op));
        continue;
      }
      return gp_verify_fail_device(v, device_of(v, h), "updates",
                                   "stage %d has no %s on device %d, other stages have one",
                                   (int)stage, gp_act_name(op), (int)device_of(v, h));
    }
  return GP_OK;
}

static bool joins(const gp_verify *v) { return v->ending[0] || v->ending[1] || v->ending[2]; }

/* ---- all of it ----------------------------------------------------------------------------- */

static gp_status check_whole(const gp_verify *v) {
  const gp_schedule *s = v->s;
  if ((v->update || v->reduce || joins(v)) && v->forward_only)
    return gp_verify_fail_device(
        v, s->placement[0], "updates",
        "updates or reductions, but no backward passes that make gradients");
  if (!s->batch) return GP_OK;
  if (s->micro_count % s->batch)
    return gp_verify_fail_device(v, s->placement[0], "updates",
                                 "%d micro-batches in batches of %d: expected whole batches",
                                 (int)s->micro_count, (int)s->batch);
  if (v->update || v->forward_only) return GP_OK;
  return gp_verify_fail_device(v, s->placement[0], "updates",
                               "an asynchronous schedule without updates, expected 0U0, 0U1, ...");
}

gp_status gp_verify_updates(const gp_verify *v) {
  GP_TRY(check_whole(v));
  if (gp_verify_ending(v, GP_ACT_CLIP, 0) >= 0 && !v->norms)
    return gp_verify_fail(v, gp_verify_ending(v, GP_ACT_CLIP, 0), "updates",
                          "scales gradients by a norm that no action takes (0NORM is missing)");
  for (int op = GP_ACT_TIE; op <= GP_ACT_CLIP; op++) GP_TRY(check_joins(v, (gp_act)op));
  if (!v->update && !v->reduce) return GP_OK;
  for (int32_t stage = 0; stage < v->s->stage_count; stage++)
    for (int32_t copy = 0; copy < gp_verify_copies(v->s, stage); copy++)
      for (int32_t k = 0; k < v->batch_count; k++) GP_TRY(check_batch(v, (holder){stage, copy}, k));
  return GP_OK;
}

/* ---- shards -------------------------------------------------------------------------------- */

/* Update *open by action a: is the stage gathered (1), sharded (0), or is nothing known (-1)? */
static gp_status follow_shard(const gp_verify *v, int32_t a, int8_t *open) {
  int op = v->s->actions[a].op;
  if (op == GP_ACT_UNSHARD && *open == 1)
    return gp_verify_fail(v, a, "order", "gathers parameters that are gathered already");
  if (op == GP_ACT_RESHARD && *open != 1)
    return gp_verify_fail(v, a, "order", "drops parameters that were not gathered");
  if (op <= GP_ACT_R && *open == 0)
    return gp_verify_fail(v, a, "order",
                          "needs the parameters of its stage, which are sharded here");
  if (op == GP_ACT_UNSHARD) *open = 1;
  if (op == GP_ACT_RESHARD) *open = 0;
  return GP_OK;
}

/* Check one stage on one device. Nothing may run before its first UNSHARD. */
static gp_status check_shard(const gp_verify *v, int32_t device, int32_t stage) {
  const gp_schedule *s = v->s;
  int8_t open = -1;
  for (int32_t a = s->first[device]; open < 0 && a < s->first[device + 1]; a++)
    if (s->actions[a].stage == stage && s->actions[a].op == GP_ACT_UNSHARD) open = 0;
  for (int32_t a = s->first[device]; a < s->first[device + 1]; a++)
    if (s->actions[a].stage == stage) GP_TRY(follow_shard(v, a, &open));
  return GP_OK;
}

static bool has_shards(const gp_schedule *s) {
  for (int32_t a = 0; a < s->first[s->device_count]; a++)
    if (s->actions[a].op == GP_ACT_UNSHARD || s->actions[a].op == GP_ACT_RESHARD) return true;
  return false;
}

/* Cost: a pass over the device's list per stage, in schedules that shard. */
gp_status gp_verify_shards(const gp_verify *v) {
  if (!has_shards(v->s)) return GP_OK;
  for (int32_t stage = 0; stage < v->s->stage_count; stage++)
    for (int32_t copy = 0; copy < gp_verify_copies(v->s, stage); copy++)
      GP_TRY(check_shard(v, v->s->placement[stage * v->s->copy_count + copy], stage));
  return GP_OK;
}
