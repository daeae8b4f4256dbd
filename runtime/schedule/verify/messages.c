/* schedule/verify/messages.c - are the sends and receives that a schedule names complete pairs?
 *
 * They are matched by cut and micro-batch, so messages that overtake each other are no fault. In
 * one direction over a cut, a schedule names all messages that cross devices, or none (then
 * lowering adds them).
 */
#include "schedule/verify/verify.h"

/* One direction over the edge between stage `from` and the next stage `to`. */
typedef struct edge {
  gp_act send, receive;
  int32_t from, to;
} edge;

/* Are both ends of this micro-batch on one device? */
static bool is_local(const gp_verify *v, const edge *e, int32_t micro) {
  return gp_action_device(v->s, gp_edges_at(&v->edges, GP_ACT_F, e->from, micro)) ==
         gp_action_device(v->s, gp_edges_at(&v->edges, GP_ACT_F, e->to, micro));
}

static gp_status check_local(const gp_verify *v, const edge *e, int32_t a) {
  if (a < 0) return GP_OK;
  return gp_verify_fail(v, a, "pairing", "is not needed: stages %d and %d are both on this device",
                        (int)e->from, (int)e->to);
}

static gp_status check_pair(const gp_verify *v, const edge *e, int32_t micro) {
  int32_t send = gp_edges_at(&v->edges, e->send, e->from, micro),
          receive = gp_edges_at(&v->edges, e->receive, e->to, micro);
  if (is_local(v, e, micro)) return check_local(v, e, send >= 0 ? send : receive);
  if (send >= 0 && receive >= 0) return GP_OK;
  if (send >= 0)
    return gp_verify_fail(v, send, "pairing", "is never received: %d%s%d is missing", (int)e->to,
                          gp_act_name(e->receive), (int)micro);
  if (receive >= 0)
    return gp_verify_fail(v, receive, "pairing", "is never sent: %d%s%d is missing", (int)e->from,
                          gp_act_name(e->send), (int)micro);
  return gp_verify_fail_device(
      v, gp_action_device(v->s, gp_edges_at(&v->edges, GP_ACT_F, e->from, micro)), "pairing",
      "%d%s%d is missing: other micro-batches are sent from stage %d to "
      "%d, expected all of them, or none",
      (int)e->from, gp_act_name(e->send), (int)micro, (int)e->from, (int)e->to);
}

static bool is_used(const gp_verify *v, const edge *e) {
  for (int32_t micro = 0; micro < v->s->micro_count; micro++)
    if (gp_edges_at(&v->edges, e->send, e->from, micro) >= 0 ||
        gp_edges_at(&v->edges, e->receive, e->to, micro) >= 0)
      return true;
  return false;
}

static gp_status check_edge(const gp_verify *v, const edge *e) {
  if ((!v->edges.at[e->send] && !v->edges.at[e->receive]) || !is_used(v, e)) return GP_OK;
  for (int32_t micro = 0; micro < v->s->micro_count; micro++) GP_TRY(check_pair(v, e, micro));
  return GP_OK;
}

/* Refuse an action at an end of the pipeline, where no other stage could send or receive. */
static gp_status check_end(const gp_verify *v, gp_act op, int32_t stage, const char *what) {
  for (int32_t micro = 0; v->edges.at[op] && micro < v->s->micro_count; micro++) {
    int32_t a = gp_edges_at(&v->edges, op, stage, micro);
    if (a >= 0) return gp_verify_fail(v, a, "pairing", "has no other end: %s", what);
  }
  return GP_OK;
}

gp_status gp_verify_messages(const gp_verify *v) {
  int32_t last = v->s->stage_count - 1;
  GP_TRY(check_end(v, GP_ACT_RECV_F, 0, "no stage is before the first"));
  GP_TRY(check_end(v, GP_ACT_SEND_B, 0, "no stage is before the first"));
  GP_TRY(check_end(v, GP_ACT_SEND_F, last, "no stage is behind the last"));
  GP_TRY(check_end(v, GP_ACT_RECV_B, last, "no stage is behind the last"));
  for (int32_t stage = 0; stage < last; stage++) {
    if (v->forward_only) {
      GP_TRY(check_end(v, GP_ACT_SEND_B, stage + 1, "there are no backward passes"));
      GP_TRY(check_end(v, GP_ACT_RECV_B, stage, "there are no backward passes"));
    }
    GP_TRY(check_edge(v, &(edge){GP_ACT_SEND_F, GP_ACT_RECV_F, stage, stage + 1}));
    GP_TRY(check_edge(v, &(edge){GP_ACT_SEND_B, GP_ACT_RECV_B, stage + 1, stage}));
  }
  return GP_OK;
}
