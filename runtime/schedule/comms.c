/* schedule/comms.c - rows made of rows: sends and receives added, I and W merged, all that was
 * added left out.
 *
 * Source: torch.distributed.pipelining, _add_send_recv and _merge_bw. In sweeps over the devices
 * each takes one action if what it needs has been sent or made; a send follows what it sends, and
 * its receive goes at once to the end of what the receiver has: an empty cell, which takes a sweep,
 * moves receives.
 */
#include "base/memory.h"
#include "schedule/verify/verify.h"

typedef struct sweeper {
  const gp_verify *v;
  gp_rows *rows;
  int32_t *head;   /* per device */
  uint64_t *awake; /* a bit per device that need not be passed over */
} sweeper;

/* ---- sends --------------------------------------------------------------------------------- */

static gp_status add(sweeper *w, int32_t device, gp_act op, int32_t stage, int32_t micro) {
  gp_action action = {.op = (uint8_t)op, .stage = stage, .micro = micro, .version = -1};
  return gp_rows_add(w->rows, device, &action);
}

static void wake(sweeper *w, int32_t device) {
  w->awake[device / 64] |= UINT64_C(1) << device % 64;
}

/* Send what a computation made to the stage that takes it, if that is elsewhere and nobody did
 * yet. */
static gp_status add_message(sweeper *w, int32_t a, bool forward) {
  const gp_schedule *s = w->v->s;
  const gp_action *x = &s->actions[a];
  int32_t to = x->stage + (forward ? 1 : -1), from = gp_action_device(s, a);
  gp_act send = forward ? GP_ACT_SEND_F : GP_ACT_SEND_B;
  if (to < 0 || to == s->stage_count) return GP_OK;
  int32_t taker = gp_edges_at(&w->v->edges, GP_ACT_F, to, x->micro),
          device = gp_action_device(s, taker);
  wake(w, device);
  if (device == from || gp_edges_at(&w->v->edges, send, x->stage, x->micro) >= 0) return GP_OK;
  GP_TRY(add(w, from, send, x->stage, x->micro));
  return add(w, device, forward ? GP_ACT_RECV_F : GP_ACT_RECV_B, to, x->micro);
}

/* Whoever may wait for what it did is looked at again. */
static gp_status add_messages(sweeper *w, int32_t a) {
  const gp_schedule *s = w->v->s;
  const gp_action *x = &s->actions[a];
  if (x->op == GP_ACT_F) return add_message(w, a, true);
  if (x->op == GP_ACT_B || x->op == GP_ACT_I) GP_TRY(add_message(w, a, false));
  if (x->op == GP_ACT_SEND_F)
    wake(w, gp_action_device(s, gp_edges_at(&w->v->edges, GP_ACT_RECV_F, x->stage + 1, x->micro)));
  if (x->op == GP_ACT_SEND_B)
    wake(w, gp_action_device(s, gp_edges_at(&w->v->edges, GP_ACT_RECV_B, x->stage - 1, x->micro)));
  for (int32_t copy = 0; x->op != GP_ACT_IDLE && copy < s->copy_count; copy++)
    wake(w, s->placement[x->stage * s->copy_count + copy]);
  return GP_OK;
}

/* ---- sweeps -------------------------------------------------------------------------------- */

/* The device's next action, or joined ones, if it may go on; *moved: it did. */
/* A stage's last part of what all stages wait for. */
static bool ends_part(const gp_verify *v, int32_t a) {
  const gp_verify_join *joins[] = {v->ending[0] ? v->sums : NULL, v->norms};
  for (int k = 0; k < 2; k++)
    if (joins[k] && v->s->actions[a].op != GP_ACT_IDLE &&
        joins[k]->last[gp_action_holder(v->s, a)] == a + 1)
      return true;
  return false;
}

static void wake_all(sweeper *w) {
  for (int32_t d = 0; d < w->v->s->device_count; d++) wake(w, d);
}

static gp_status take(sweeper *w, int32_t device, bool *moved) {
  const gp_schedule *s = w->v->s;
  int32_t begin = w->head[device], end;
  if (begin == s->first[device + 1]) return GP_OK;
  end = gp_schedule_group_end(s, begin);
  for (int32_t a = begin; a < end; a++)
    if (gp_verify_blocker(w->v, a) >= 0) return GP_OK;
  *moved = true;
  w->head[device] = end;
  wake(w, device);
  for (int32_t a = begin; a < end; a++) {
    w->v->order[a] = 0;
    if (s->actions[a].op != GP_ACT_IDLE) GP_TRY(gp_rows_add(w->rows, device, &s->actions[a]));
    if (ends_part(w->v, a)) wake_all(w);
  }
  for (int32_t a = begin; a < end; a++) GP_TRY(add_messages(w, a));
  return GP_OK;
}

/* Devices in ascending order; those that wait for what nobody has done since are passed over. */
static gp_status sweep(sweeper *w, bool *moved) {
  int32_t devices = w->v->s->device_count;
  for (int32_t word = 0; word <= (devices - 1) / 64; word++)
    for (uint64_t ahead = UINT64_MAX, left; (left = w->awake[word] & ahead);) {
      int32_t bit = __builtin_ctzll(left);
      ahead = bit == 63 ? 0 : UINT64_MAX << (bit + 1);
      w->awake[word] &= ~(UINT64_C(1) << bit);
      GP_TRY(take(w, 64 * word + bit, moved));
    }
  return GP_OK;
}

static gp_status sweep_all(sweeper *w) {
  const gp_schedule *s = w->v->s;
  for (int32_t a = 0; a < s->first[s->device_count]; a++) w->v->order[a] = -1;
  for (int32_t d = 0; d < s->device_count; d++) w->head[d] = s->first[d], wake(w, d);
  for (bool moved = true; moved;) {
    moved = false;
    GP_TRY(sweep(w, &moved));
  }
  return GP_OK;
}

static gp_status add_comms(sweeper *w, gp_verify *v) {
  const gp_schedule *s = v->s;
  size_t total = (size_t)s->first[s->device_count], devices = (size_t)s->device_count;
  GP_TRY(gp_verify_index(v));
  GP_TRY(gp_alloc_array(total + 1, sizeof(int32_t), (void **)&v->order));
  GP_TRY(gp_alloc_array(devices, sizeof(int32_t), (void **)&w->head));
  GP_TRY(gp_alloc_array(devices / 64 + 1, sizeof(uint64_t), (void **)&w->awake));
  GP_TRY(gp_rows_new(s->device_count, &w->rows));
  return sweep_all(w);
}

/* What was verified never comes to a halt: each sweep of the loop moves something until all is
 * taken. */
gp_status gp_schedule_comms(const gp_schedule *s, gp_rows **rows) {
  gp_schedule_fault fault;
  gp_verify v = {.s = s, .fault = &fault};
  sweeper w = {.v = &v};
  gp_status status = add_comms(&w, &v);
  gp_verify_free(&v);
  gp_free(v.order);
  gp_free(w.head);
  gp_free(w.awake);
  if (status) return gp_rows_free(w.rows), status;
  *rows = w.rows;
  return GP_OK;
}

/* ---- merging and leaving out ----------------------------------------------------------------- */

/* The next action that is no empty cell, or the end. */
static int32_t skip_idle(const gp_schedule *s, int32_t a, int32_t end) {
  while (a < end && s->actions[a].op == GP_ACT_IDLE) a++;
  return a;
}

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

/* Row after row, each by itself. */
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
