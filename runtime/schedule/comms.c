/* schedule/comms.c - passes from rows to rows: add sends and receives, merge I and W, keep the
 * computations alone.
 *
 * Source: torch.distributed.pipelining, _add_send_recv and _merge_bw. The order of messages
 * (messages.c) is torch's: a send follows what it sends, and its receive goes at once to the end of
 * what the receiver has. An empty cell takes a turn there, so it moves receives.
 */
#include "schedule/messages.h"
#include "schedule/edges.h"

/* ---- sends and receives -------------------------------------------------------------------- */

static gp_status add(gp_rows *rows, int32_t device, gp_act op, int32_t stage, int32_t micro) {
  gp_action action = {.op = (uint8_t)op, .stage = stage, .micro = micro, .version = -1};
  return gp_rows_add(rows, device, &action);
}

/* Messages that the schedule names are among its actions already. */
static gp_status add_message(const gp_schedule *s, const gp_message *m, gp_rows *rows) {
  const gp_act op = (gp_act)s->actions[m->sender].op;
  if (op == GP_ACT_SEND_F || op == GP_ACT_SEND_B) return GP_OK;
  const int32_t makes = m->cut + m->backward, takes = m->cut + !m->backward;
  GP_TRY(add(rows, m->from, m->backward ? GP_ACT_SEND_B : GP_ACT_SEND_F, makes, m->micro));
  return add(rows, m->to, m->backward ? GP_ACT_RECV_B : GP_ACT_RECV_F, takes, m->micro);
}

/* The messages of joined actions stand behind the last of them. */
static gp_status add_comms(const gp_schedule *s, const gp_messages *messages, gp_rows *rows) {
  int32_t m = 0;
  for (int32_t k = 0; k < s->first[s->device_count]; k++) {
    const int32_t a = messages->action[k];
    const gp_action *x = &s->actions[a];
    if (x->op != GP_ACT_IDLE) GP_TRY(gp_rows_add(rows, gp_action_device(s, a), x));
    if (x->joined) continue;
    for (; m < messages->count; m++) {
      if (gp_schedule_group_end(s, messages->list[m].sender) != a + 1) break;
      GP_TRY(add_message(s, &messages->list[m], rows));
    }
  }
  return GP_OK;
}

gp_status gp_schedule_comms(const gp_schedule *s, gp_rows **rows) {
  gp_messages messages;
  gp_rows *made = NULL;
  GP_TRY(gp_schedule_messages(s, &messages));
  gp_status status = gp_rows_new(s->device_count, &made);
  if (!status) status = add_comms(s, &messages, made);
  gp_messages_free(&messages);
  if (status) return gp_rows_free(made), status;
  *rows = made;
  return GP_OK;
}

/* ---- merging and leaving out ----------------------------------------------------------------- */

/* Returns the next action that is not an empty cell, or the end. */
static int32_t skip_idle(const gp_schedule *s, int32_t a, int32_t end) {
  while (a < end && s->actions[a].op == GP_ACT_IDLE) a++;
  return a;
}

/* Are these the two halves of one backward pass, neither of them in a pair with something else? */
static bool are_halves(const gp_action *i, const gp_action *w) {
  return i->op == GP_ACT_I && w->op == GP_ACT_W && i->stage == w->stage && i->micro == w->micro &&
         !i->joined && !w->joined;
}

static gp_status merge_row(const gp_schedule *s, int32_t device, gp_rows *rows) {
  int32_t end = s->first[device + 1], next;
  for (int32_t a = skip_idle(s, s->first[device], end); a < end; a = next) {
    gp_action action = s->actions[a];
    bool inside = a > s->first[device] && s->actions[a - 1].joined;
    next = skip_idle(s, a + 1, end);
    if (!inside && next < end && are_halves(&action, &s->actions[next])) {
      action.op = GP_ACT_B;
      next = skip_idle(s, next + 1, end);
    }
    GP_TRY(gp_rows_add(rows, device, &action));
  }
  return GP_OK;
}

static gp_status copy_compute(const gp_schedule *s, int32_t device, gp_rows *rows) {
  for (int32_t a = s->first[device]; a < s->first[device + 1]; a++) {
    int op = s->actions[a].op;
    if (op <= GP_ACT_U || op == GP_ACT_IDLE) GP_TRY(gp_rows_add(rows, device, &s->actions[a]));
  }
  return GP_OK;
}

/* Run a pass that looks at one row at a time. */
static gp_status by_rows(const gp_schedule *s,
                         gp_status (*pass)(const gp_schedule *s, int32_t device, gp_rows *rows),
                         gp_rows **rows) {
  gp_rows *made;
  GP_TRY(gp_rows_new(s->device_count, &made));
  for (int32_t d = 0; d < s->device_count; d++) {
    gp_status status = pass(s, d, made);
    if (status) return gp_rows_free(made), status;
  }
  *rows = made;
  return GP_OK;
}

gp_status gp_schedule_merged(const gp_schedule *s, gp_rows **rows) {
  return by_rows(s, merge_row, rows);
}

gp_status gp_schedule_compute(const gp_schedule *s, gp_rows **rows) {
  return by_rows(s, copy_compute, rows);
}
