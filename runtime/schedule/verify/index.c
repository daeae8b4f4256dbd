/* schedule/verify/index.c - find where each action stands, and check that it may stand there.
 *
 * Every later check relies on this pass: numbers are in range, an action is on a device of its
 * stage, and none appears twice. Lists come from scripts and files, so no number is used as an
 * index before it was checked.
 */
#include "base/memory.h"
#include "schedule/verify/verify.h"

static bool is_compute(gp_act op) { return op <= GP_ACT_W; }

/* Check 1: the op is known, and has a micro-batch if it needs one. Only plans have C to DECIDE. */
static gp_status check_op(const gp_verify *v, int32_t a) {
  const gp_action *x = &v->s->actions[a];
  if ((x->op >= GP_ACT_C && x->op <= GP_ACT_DECIDE) || x->op >= GP_ACT_IDLE)
    return gp_verify_fail(
        v, a, "op",
        "is not an action of a schedule, expected F, B, I, W, R, U, SEND_F, RECV_F, SEND_B, "
        "RECV_B, REDUCE_GRAD, REDUCE_TIED, NORM, CLIP, UNSHARD or RESHARD");
  if (gp_act_has_micro((gp_act)x->op) && x->micro < 0)
    return gp_verify_fail(v, a, "op", "has no micro-batch, expected \"0F0\"");
  if (x->op != GP_ACT_U && x->micro >= v->s->micro_count)
    return gp_verify_fail(v, a, "complete", "is of micro-batch %d, the schedule is for %d (from 0)",
                          (int)x->micro, (int)v->s->micro_count);
  return GP_OK;
}

/* A pair overlaps two computations: no messages, endings or empty cells. */
static gp_status check_joined(const gp_verify *v, int32_t a, int32_t end) {
  const gp_action *x = &v->s->actions[a];
  if (a + 1 == end) return gp_verify_fail(v, a, "op", "is joined with an action that is not there");
  for (int32_t i = a; i < a + 2; i++)
    if (!is_compute((gp_act)x[i - a].op))
      return gp_verify_fail(v, i, "op", "cannot be part of a pair: expected F, B, I or W");
  return GP_OK;
}

/* A replica runs its own micro-batches, on its own devices. */
static gp_status check_replica(const gp_verify *v, int32_t a, int32_t copy) {
  const gp_schedule *s = v->s;
  const gp_action *x = &s->actions[a];
  const int32_t own = copy / (s->copy_count / s->replicas);
  if (!gp_act_has_micro((gp_act)x->op) || x->op == GP_ACT_U) return GP_OK;
  if (gp_schedule_replica_of(s, x->micro) == own) return GP_OK;
  return gp_verify_fail(
      v, a, "placement", "is on a device of replica %d, which runs micro-batches from %d to %d%s",
      (int)own, (int)(own * s->replica_micros), (int)((own + 1) * s->replica_micros - 1),
      s->batch ? " of every batch" : "");
}

static gp_status check_device(const gp_verify *v, int32_t a, int32_t device) {
  const gp_schedule *s = v->s;
  const gp_action *x = &s->actions[a];
  const int32_t *at = &s->placement[x->stage * s->copy_count];
  const int32_t copy = gp_schedule_copy_on(s, x->stage, device);
  if (copy < s->copy_count) return s->replicas > 1 ? check_replica(v, a, copy) : GP_OK;
  if (s->copy_count == 1)
    return gp_verify_fail(v, a, "placement", "is not on the device of its stage: stage %d is on %d",
                          (int)x->stage, (int)at[0]);
  return gp_verify_fail(v, a, "placement",
                        s->copy_count == 2
                            ? "is not on a device of its stage: stage %d is on %d and %d"
                            : "is not on a device of its stage: stage %d is on %d, ... and %d",
                        (int)x->stage, (int)at[0], (int)at[s->copy_count - 1]);
}

/* ---- tables -------------------------------------------------------------------------------- */

/* The place of an action in a table of updates. */
static size_t batch_cell(const gp_verify *v, int32_t a, int32_t batch) {
  size_t holder =
      (size_t)v->s->actions[a].stage * (size_t)v->s->copy_count + (size_t)gp_action_copy(v->s, a);
  return holder * (size_t)v->batch_count + (size_t)batch;
}

static size_t holder_count(const gp_verify *v) {
  return (size_t)v->s->stage_count * (size_t)v->s->copy_count;
}

/* Make a table with the first update or reduction: most schedules have none. */
static gp_status make_batch_table(const gp_verify *v, int32_t **table) {
  size_t count;
  if (*table) return GP_OK;
  GP_TRY(gp_size_mul(holder_count(v), (size_t)v->batch_count, &count));
  return gp_alloc_array(count, sizeof(int32_t), (void **)table);
}

/* Each copy of a stage updates its own weights, once per batch. */
static gp_status note_update(gp_verify *v, int32_t a) {
  int32_t k = v->s->actions[a].micro;
  if (k >= v->batch_count)
    return gp_verify_fail(v, a, "updates",
                          "is an update too many: expected %d for each stage, from 0",
                          (int)v->batch_count);
  GP_TRY(make_batch_table(v, &v->update));
  int32_t *seen = &v->update[batch_cell(v, a, k)];
  if (*seen) return gp_verify_fail(v, a, "updates", "appears twice");
  *seen = a + 1;
  return GP_OK;
}

/* Reductions carry no number: the n-th of a stage on its device is that of batch n. */
static gp_status note_reduce(gp_verify *v, int32_t a) {
  GP_TRY(make_batch_table(v, &v->reduce));
  if (!v->reduced) GP_TRY(gp_alloc_array(holder_count(v), sizeof(int32_t), (void **)&v->reduced));
  int32_t *count = &v->reduced[batch_cell(v, a, 0) / (size_t)v->batch_count];
  if (*count == v->batch_count)
    return gp_verify_fail(v, a, "updates", "appears more often than the stage has updates (%d)",
                          (int)v->batch_count);
  v->reduce[batch_cell(v, a, (*count)++)] = a + 1;
  return GP_OK;
}

/* Each copy of a stage has one at most, and only in a synchronous schedule. */
static gp_status note_ending(gp_verify *v, int32_t a) {
  int32_t **table = &v->ending[v->s->actions[a].op - GP_ACT_TIE];
  if (v->s->batch)
    return gp_verify_fail(v, a, "updates",
                          "joins the gradients of all stages, which are updated at different times "
                          "in an asynchronous schedule");
  if (!*table) GP_TRY(gp_alloc_array(holder_count(v), sizeof(int32_t), (void **)table));
  int32_t *seen = &(*table)[gp_action_holder(v->s, a)];
  if (*seen) return gp_verify_fail(v, a, "updates", "appears twice");
  *seen = a + 1;
  return GP_OK;
}

/* Rows are read in order, so the last action stays noted. */
static gp_status note_last(const gp_verify *v, int32_t a, gp_verify_join **join) {
  if (!*join) GP_TRY(gp_alloc(sizeof **join, (void **)join));
  if (!(*join)->last)
    GP_TRY(gp_alloc_array(holder_count(v), sizeof(int32_t), (void **)&(*join)->last));
  (*join)->last[gp_action_holder(v->s, a)] = a + 1;
  return GP_OK;
}

/* Enter an action into the tables of its kind. */
static gp_status note(gp_verify *v, int32_t a) {
  const gp_action *x = &v->s->actions[a];
  gp_verify_join **joins[] = {[GP_JOIN_SUMS] = &v->sums, [GP_JOIN_NORMS] = &v->norms};
  char one[GP_ACTION_TEXT];
  int32_t before;
  for (int k = 0; k < GP_JOIN_COUNT; k++)
    if (gp_join_counts((gp_join)k, (gp_act)x->op)) GP_TRY(note_last(v, a, joins[k]));
  if (x->op == GP_ACT_U) return note_update(v, a);
  if (x->op == GP_ACT_REDUCE) return note_reduce(v, a);
  if (gp_act_ends((gp_act)x->op)) return note_ending(v, a);
  if (!gp_act_has_micro((gp_act)x->op)) return GP_OK;
  GP_TRY(gp_edges_enter(&v->edges, a, &before));
  if (before < 0) return GP_OK;
  if (gp_action_is_on(v->s, before, gp_action_device(v->s, a)))
    return gp_verify_fail(v, a, "unique", "appears twice");
  return gp_verify_fail(v, a, "unique", "appears twice: %s is on device %d too",
                        gp_verify_name(v, a, one), (int)gp_action_device(v->s, before));
}

/* ---- the pass ------------------------------------------------------------------------------ */

/* Every (stage, micro-batch) has an F at least. If there are fewer actions, a number was mistyped,
 * and no table is made for it. */
static gp_status check_size(const gp_verify *v) {
  const gp_schedule *s = v->s;
  int64_t cells = (int64_t)s->stage_count * s->micro_count;
  int32_t total = s->first[s->device_count];
  if (cells <= total || cells < 1 << 20) return GP_OK;
  return gp_verify_fail_device(v, 0, "complete",
                               "%d stages and %d micro-batches, but only %d actions",
                               (int)s->stage_count, (int)s->micro_count, (int)total);
}

static gp_status index_row(gp_verify *v, int32_t device) {
  const gp_schedule *s = v->s;
  int32_t end = s->first[device + 1];
  for (int32_t a = s->first[device]; a < end; a++) {
    const gp_action *x = &s->actions[a];
    if (x->joined) GP_TRY(check_joined(v, a, end));
    if (x->op == GP_ACT_IDLE) continue;
    GP_TRY(check_op(v, a));
    GP_TRY(check_device(v, a, device));
    GP_TRY(note(v, a));
  }
  return GP_OK;
}

gp_status gp_verify_index(gp_verify *v) {
  const gp_schedule *s = v->s;
  GP_TRY(check_size(v));
  v->edges.s = s;
  v->batch_count = s->batch ? (s->micro_count + s->batch - 1) / s->batch : 1;
  for (int32_t d = 0; d < s->device_count; d++) GP_TRY(index_row(v, d));
  v->forward_only = !v->edges.at[GP_ACT_B] && !v->edges.at[GP_ACT_I] && !v->edges.at[GP_ACT_W];
  return GP_OK;
}

static void free_join(gp_verify_join *join) {
  if (join) gp_free(join->last);
  gp_free(join);
}

void gp_verify_free(gp_verify *v) {
  free_join(v->sums);
  free_join(v->norms);
  for (int k = 0; k < 3; k++) gp_free(v->ending[k]);
  gp_edges_free(&v->edges);
  gp_free(v->update);
  gp_free(v->reduce);
  gp_free(v->reduced);
}
