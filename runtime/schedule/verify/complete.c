/* schedule/verify/complete.c - every (stage, micro-batch) has its F and its backward pass, together
 * on one device. */
#include "schedule/verify/verify.h"

/* Returns what a (stage, micro-batch) lacks, or NULL. */
static const char *lacking(const gp_verify *v, int32_t stage, int32_t micro) {
  bool b = gp_edges_at(&v->edges, GP_ACT_B, stage, micro) >= 0,
       in = gp_edges_at(&v->edges, GP_ACT_I, stage, micro) >= 0,
       w = gp_edges_at(&v->edges, GP_ACT_W, stage, micro) >= 0;
  if (gp_edges_at(&v->edges, GP_ACT_F, stage, micro) < 0) return "F is missing";
  if (v->forward_only || (b && !in && !w) || (!b && in && w)) return NULL;
  if (!b && !in && !w) return "its backward pass is missing";
  return b ? "its backward pass is both B and I or W" : "its backward pass is I or W alone";
}

/* The stage has several devices. What F left on one of them is not on the other one. */
static gp_status check_together(const gp_verify *v, int32_t stage, int32_t micro) {
  int32_t forward = gp_edges_at(&v->edges, GP_ACT_F, stage, micro);
  int32_t device = gp_action_device(v->s, forward);
  for (int op = 0; op < GP_ACT_IDLE; op++) {
    int32_t a = gp_edges_at(&v->edges, (gp_act)op, stage, micro);
    char one[GP_ACTION_TEXT];
    if (a < 0 || gp_action_is_on(v->s, a, device)) continue;
    return gp_verify_fail(v, a, "placement",
                          "is on another device than %s (device %d): all actions of a stage and "
                          "micro-batch run on one of the stage's devices",
                          gp_verify_name(v, forward, one), (int)device);
  }
  return GP_OK;
}

/* R makes again what a backward pass needs, so there must be one. */
static gp_status check_recomputation(const gp_verify *v, int32_t stage, int32_t micro) {
  int32_t a = gp_edges_at(&v->edges, GP_ACT_R, stage, micro);
  if (a < 0 || !v->forward_only) return GP_OK;
  return gp_verify_fail(v, a, "complete", "recomputes for a backward pass that is not there");
}

/* Cost: a look-up per op and (stage, micro-batch). The size check of the index keeps their number
 * within that of the actions. */
gp_status gp_verify_complete(const gp_verify *v) {
  const gp_schedule *s = v->s;
  for (int32_t stage = 0; stage < s->stage_count; stage++)
    for (int32_t micro = 0; micro < s->micro_count; micro++) {
      const char *what = lacking(v, stage, micro);
      if (what)
        return gp_verify_fail_device(v, s->placement[stage * s->copy_count], "complete",
                                     "stage %d, micro-batch %d: %s", (int)stage, (int)micro, what);
      if (v->edges.at[GP_ACT_R]) GP_TRY(check_recomputation(v, stage, micro));
      if (s->copy_count > 1) GP_TRY(check_together(v, stage, micro));
    }
  return GP_OK;
}
