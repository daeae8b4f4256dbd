/* schedule/verify/order.c - find an order in which everything can run, or the actions that wait for
 * each other.
 *
 *   F         needs the F of the stage before; where replicas share the updates of a stage, also
 *             those that made its version of the weights
 *   B or I    its own F, its R if there is one, and the B or I of the stage after
 *   W         its I
 *   U         the gradients of its batch
 *   receive   its send, if the schedule names messages
 *
 * What joins all stages needs every stage's part. A skip connection or a frozen stage needs no more
 * than these, so the topological order found here serves every model. Joined actions start
 * together: what either of them needs must be over before.
 */
#include <stdio.h>
#include <string.h>

#include "schedule/runner.h"
#include "schedule/verify/verify.h"

/* ---- needs --------------------------------------------------------------------------------- */

static bool is_done(const gp_verify *v, int32_t a) { return a < 0 || v->order[a] >= 0; }

/* Returns a gradient of the batch that is not done, or -1: the one that stands last, so that a
 * device that waits for all of them is rarely woken in vain. */
static int32_t missing_gradient(const gp_verify *v, int32_t stage, int32_t batch) {
  int32_t begin, end, missing = -1;
  gp_edges_batch(v->s, batch, &begin, &end);
  for (int32_t i = begin; i < end; i++) {
    int32_t a = gp_edges_weights(&v->edges, stage, i);
    if (!is_done(v, a) && a > missing) missing = a;
  }
  return missing;
}

/* Returns the first stage's part that is not done. `over` counts those that are, so that each is
 * looked at once. */
static int32_t missing_of_all(const gp_verify *v, gp_verify_join *join) {
  int32_t holders = v->s->stage_count * v->s->copy_count;
  while (join->over < holders && is_done(v, join->last[join->over] - 1)) join->over++;
  return join->over < holders ? join->last[join->over] - 1 : -1;
}

/* Returns the number of a reduction among those of its stage's copy. */
static int32_t reduction_number(const gp_verify *v, int32_t a) {
  const gp_schedule *s = v->s;
  size_t row = (size_t)s->actions[a].stage * (size_t)s->copy_count + (size_t)gp_action_copy(s, a);
  int32_t batch = 0;
  while (v->reduce[row * (size_t)v->batch_count + (size_t)batch] != a + 1) batch++;
  return batch;
}

/* Returns an action of the same (stage, micro-batch) that this one needs, or -1. */
static int32_t missing_here(const gp_verify *v, const gp_action *x) {
  int32_t forward = gp_edges_at(&v->edges, GP_ACT_F, x->stage, x->micro), other = -1;
  if (x->op == GP_ACT_W) return gp_edges_at(&v->edges, GP_ACT_I, x->stage, x->micro);
  if (x->op == GP_ACT_SEND_B) return gp_edges_backward(&v->edges, x->stage, x->micro);
  if (x->op == GP_ACT_B || x->op == GP_ACT_I)
    other = gp_edges_at(&v->edges, GP_ACT_R, x->stage, x->micro);
  return is_done(v, forward) ? other : forward;
}

/* Returns an update, of any replica, that the version of an F needs and that is not done, or -1. */
static int32_t missing_update(const gp_verify *v, const gp_action *x) {
  const int32_t copies = v->s->copy_count, batch = x->version - 1;
  if (v->s->replicas <= 1 || !v->update || batch < 0 || batch >= v->batch_count) return -1;
  for (int32_t copy = 0; copy < copies; copy++) {
    const size_t row = (size_t)x->stage * (size_t)copies + (size_t)copy;
    const int32_t update = v->update[row * (size_t)v->batch_count + (size_t)batch] - 1;
    if (!is_done(v, update)) return update;
  }
  return -1;
}

int32_t gp_verify_blocker(const gp_verify *v, int32_t a) {
  const gp_action *x = &v->s->actions[a];
  int32_t need = -1;
  gp_act receive = x->op == GP_ACT_F ? GP_ACT_RECV_F : GP_ACT_RECV_B;
  switch ((gp_act)x->op) {
  case GP_ACT_TIE: need = missing_of_all(v, v->sums); break;
  case GP_ACT_NORM: need = missing_gradient(v, x->stage, 0); break;
  case GP_ACT_CLIP: need = missing_of_all(v, v->norms); break;
  case GP_ACT_U:
    need = v->norms ? missing_of_all(v, v->norms) : missing_gradient(v, x->stage, x->micro);
    break;
  case GP_ACT_REDUCE: need = missing_gradient(v, x->stage, reduction_number(v, a)); break;
  case GP_ACT_UNSHARD:
  case GP_ACT_RESHARD:
  case GP_ACT_IDLE: break;
  case GP_ACT_RECV_F:
  case GP_ACT_RECV_B: need = gp_edges_source(&v->edges, a); break;
  case GP_ACT_F:
  case GP_ACT_B:
  case GP_ACT_I:
    if (x->op != GP_ACT_F) need = missing_here(v, x);
    if (is_done(v, need)) need = gp_edges_at(&v->edges, receive, x->stage, x->micro);
    if (need < 0) need = gp_edges_source(&v->edges, a);
    if (x->op == GP_ACT_F && is_done(v, need)) need = missing_update(v, x);
    break;
  default: need = missing_here(v, x);
  }
  return is_done(v, need) ? -1 : need;
}

/* ---- what went wrong ----------------------------------------------------------------------- */

typedef struct search {
  const gp_verify *v;
  gp_runner runner;
} search;

/* Returns the action at which a device is stuck; *need receives what it waits for. */
static int32_t stuck_at(const search *q, int32_t device, int32_t *need) {
  int32_t a = q->runner.at[device].next;
  while ((*need = gp_verify_blocker(q->v, a)) < 0) a++;
  return a;
}

static gp_status report_own(const search *q, int32_t a, int32_t need) {
  char one[GP_ACTION_TEXT];
  const int32_t next = q->runner.at[gp_action_device(q->v->s, a)].next;
  bool together = need < gp_schedule_group_end(q->v->s, next);
  gp_verify_name(q->v, need, one);
  if (together && need != a)
    return gp_verify_fail(q->v, a, "order", "waits for %s, which runs together with it", one);
  return gp_verify_fail(q->v, a, "order", "waits for %s, which comes after it", one);
}

/* Every stuck device waits for an action of a stuck device: follow them into the circle and print
 * it once around. */
static gp_status report(const search *q, int32_t device) {
  const gp_verify *v = q->v;
  char text[400] = "waits for ", one[GP_ACTION_TEXT], two[GP_ACTION_TEXT];
  int32_t need, d;
  for (int32_t i = 0; i < v->s->device_count; i++) {
    stuck_at(q, device, &need);
    device = gp_action_device(v->s, need);
  }
  int32_t a = stuck_at(q, device, &need);
  if (gp_action_device(v->s, need) == device) return report_own(q, a, need);
  d = device;
  do {
    size_t used = strlen(text);
    stuck_at(q, d, &need);
    d = gp_action_device(v->s, need);
    int32_t behind = d == device ? a : stuck_at(q, d, &(int32_t){0});
    gp_verify_name(v, need, one);
    snprintf(text + used, sizeof text - used, behind == need ? "%s" : "%s behind %s", one,
             gp_verify_name(v, behind, two));
    used = strlen(text);
    if (d != device) snprintf(text + used, sizeof text - used, ", which waits for ");
  } while (d != device && strlen(text) + 80 < sizeof text);
  return gp_verify_fail(v, a, "cycle", "%s%s", text, d == device ? ": a cycle" : "...: a cycle");
}

/* ---- the check ----------------------------------------------------------------------------- */

static int32_t lacks(void *context, int32_t device, int32_t action) {
  (void)device;
  return gp_verify_blocker(((search *)context)->v, action);
}

static gp_status find_order(search *q) {
  const gp_schedule *s = q->v->s;
  GP_TRY(gp_runner_run(&q->runner, NULL));
  for (int32_t d = 0; d < s->device_count; d++)
    if (q->runner.at[d].next < s->first[d + 1]) return report(q, d);
  return GP_OK;
}

/* Cost: linear, as each action is looked at when its device gets to it and when what it waited for
 * is over. */
gp_status gp_verify_order(const gp_verify *v) {
  search q = {.v = v};
  q.runner = (gp_runner){.actions = v->s->actions,
                         .first = v->s->first,
                         .device_count = v->s->device_count,
                         .rule = GP_TURNS_QUEUE,
                         .order = v->order,
                         .context = &q,
                         .lacks = lacks};
  GP_TRY(gp_runner_new(&q.runner));
  gp_status status = find_order(&q);
  gp_runner_free(&q.runner);
  return status;
}
