/* schedule/verify/versions.c - does an asynchronous schedule compute with weights that exist?
 *
 * Update k of a stage turns version k into version k + 1; version 0 is what training starts with.
 * Forward and backward pass of a (stage, micro-batch) use the same version, and it must exist by
 * then.
 * Source: PipeDream (weight stashing, vertical sync), PipeDream-2BW.
 */
#include "base/memory.h"
#include "schedule/verify/verify.h"

static gp_status check_update(const gp_verify *v, int32_t a, int32_t *newest) {
  const gp_action *x = &v->s->actions[a];
  if (x->micro != *newest)
    return gp_verify_fail(v, a, "updates", "is out of turn: the next update of stage %d is %dU%d",
                          (int)x->stage, (int)x->stage, (int)*newest);
  if (x->version >= 0 && x->version != x->micro + 1)
    return gp_verify_fail(v, a, "versions", "makes version %d, not %d", (int)x->micro + 1,
                          (int)x->version);
  ++*newest;
  return GP_OK;
}

/* Check the version that an F, B, I, W or R reads. */
static gp_status check_use(const gp_verify *v, int32_t a, int32_t newest) {
  const gp_action *x = &v->s->actions[a];
  int32_t forward = gp_edges_at(&v->edges, GP_ACT_F, x->stage, x->micro);
  char one[GP_ACTION_TEXT];
  if (x->version < 0 && x->op == GP_ACT_R) return GP_OK;
  if (x->version < 0)
    return gp_verify_fail(v, a, "versions",
                          "does not say which weights: expected \"%s@0\" or later",
                          gp_verify_name(v, a, one));
  if (x->version > newest)
    return gp_verify_fail(v, a, "versions",
                          "uses weights that are not there yet: version %d of stage %d is made by "
                          "%dU%d; the newest here is %d",
                          (int)x->version, (int)x->stage, (int)x->stage, (int)x->version - 1,
                          (int)newest);
  if (x->version != v->s->actions[forward].version)
    return gp_verify_fail(
        v, a, "versions",
        "uses other weights than its forward pass %s: the gradient would be wrong",
        gp_verify_name(v, forward, one));
  return GP_OK;
}

static gp_status check_row(const gp_verify *v, int32_t device, int32_t *newest) {
  const gp_schedule *s = v->s;
  for (int32_t a = s->first[device]; a < s->first[device + 1]; a++) {
    const gp_action *x = &s->actions[a];
    if (x->op == GP_ACT_U) {
      GP_TRY(check_update(v, a, &newest[gp_action_holder(s, a)]));
    } else if (x->op <= GP_ACT_R) {
      GP_TRY(check_use(v, a, newest[gp_action_holder(s, a)]));
    }
  }
  return GP_OK;
}

/* One update ends a synchronous step, so there is no second version to choose. */
static gp_status check_synchronous(const gp_verify *v) {
  for (int32_t a = 0; a < v->s->first[v->s->device_count]; a++) {
    const gp_action *x = &v->s->actions[a];
    bool good = x->version < 0 || x->version == (x->op == GP_ACT_U ? 1 : 0);
    if (good || x->op == GP_ACT_IDLE) continue;
    return gp_verify_fail(
        v, a, "versions",
        "names a version, but a synchronous step uses version 0 and makes 1 (batch = "
        "micro-batches per update makes a schedule asynchronous)");
  }
  return GP_OK;
}

gp_status gp_verify_versions(const gp_verify *v) {
  int32_t *newest;
  size_t holders = (size_t)v->s->stage_count * (size_t)v->s->copy_count;
  if (!v->s->batch) return check_synchronous(v);
  GP_TRY(gp_alloc_array(holders, sizeof *newest, (void **)&newest));
  gp_status status = GP_OK;
  for (int32_t d = 0; !status && d < v->s->device_count; d++) status = check_row(v, d, newest);
  gp_free(newest);
  return status;
}
