/* schedule/simulate/link.c - who hands values to whom in a schedule, and when they arrive.
 *
 * The dependencies are the verifier's: F reads the F of the stage before, B (or I) the B (or I) of
 * the stage after. Those within a device hold by the order of its list. Where a schedule names its
 * sends and receives, the value goes through them.
 */
#include "base/memory.h"
#include "schedule/simulate/simulate.h"

/* The action (stage, micro-batch) of a table, or -1. */
static int32_t look(const gp_sim *r, const int32_t *table, int32_t stage, int32_t micro) {
  if (!table || stage < 0 || stage >= r->schedule->stage_count) return -1;
  return table[(size_t)stage * (size_t)r->schedule->micro_count + (size_t)micro] - 1;
}

/* The table that lists actions of this op, or NULL where nothing is looked up. */
static int32_t **table_of(gp_sim *r, int op) {
  switch (op) {
  case GP_ACT_F: return &r->forward;
  case GP_ACT_B:
  case GP_ACT_I: return &r->backward;
  case GP_ACT_R: return &r->again;
  case GP_ACT_SEND_F: return &r->send[0];
  case GP_ACT_RECV_F: return &r->receive[0];
  case GP_ACT_SEND_B: return &r->send[1];
  case GP_ACT_RECV_B: return &r->receive[1];
  default: return NULL;
  }
}

/* Enter action a into the table, which is made when something is entered first. */
static gp_status list(const gp_schedule *s, int32_t a, int32_t **table) {
  const gp_action *x = &s->actions[a];
  size_t cells = (size_t)s->stage_count * (size_t)s->micro_count;
  if (!*table) GP_TRY(gp_alloc_array(cells, sizeof **table, (void **)table));
  (*table)[(size_t)x->stage * (size_t)s->micro_count + (size_t)x->micro] = a + 1;
  return GP_OK;
}

/* Of every action, where the stage alone does not say it: it has two devices. */
static gp_status list_devices(gp_sim *r) {
  const gp_schedule *s = r->schedule;
  size_t total = (size_t)s->first[s->device_count];
  GP_TRY(gp_alloc_array(total, sizeof *r->device, (void **)&r->device));
  for (int32_t d = 0; d < s->device_count; d++)
    for (int32_t a = s->first[d]; a < s->first[d + 1]; a++) r->device[a] = d;
  return GP_OK;
}

gp_status gp_sim_index(gp_sim *run) {
  const gp_schedule *s = run->schedule;
  if (s->copy_count > 1) GP_TRY(list_devices(run));
  for (int32_t a = 0; a < s->first[s->device_count]; a++) {
    int op = s->actions[a].op;
    int32_t **table = table_of(run, op);
    if (table) GP_TRY(list(s, a, table));
    if (s->copy_count > 1 && (op == GP_ACT_B || op == GP_ACT_W)) GP_TRY(list(s, a, &run->weights));
  }
  return GP_OK;
}

/* With one device per stage the placement says it. */
int32_t gp_sim_device(const gp_sim *run, int32_t action) {
  const gp_schedule *s = run->schedule;
  return run->device ? run->device[action] : s->placement[s->actions[action].stage];
}

/* The last action on the other device of this stage that adds to what an update or a reduction on
 * this one reads, or -1: there is no other, or its batch is not known (a reduction in an endless
 * stream). */
static int32_t other_gradient(const gp_sim *r, int32_t action) {
  const gp_schedule *s = r->schedule;
  const gp_action *x = &s->actions[action];
  int32_t device = gp_sim_device(r, action), last = -1;
  int32_t begin = x->op == GP_ACT_U ? x->micro * s->batch : 0;
  int32_t end = s->batch ? begin + s->batch : s->micro_count;
  if (s->copy_count == 1 || (s->batch && x->op != GP_ACT_U)) return -1;
  for (int32_t i = begin; i < end && i < s->micro_count; i++) {
    int32_t w = look(r, r->weights, x->stage, i);
    if (w > last && gp_sim_device(r, w) != device) last = w;
  }
  return last;
}

int gp_sim_join_of(const gp_sim *run, int op) {
  if (op == GP_ACT_TIE) return GP_SIM_SUMS;
  bool joined = op == GP_ACT_U || op == GP_ACT_CLIP;
  return joined && run->joins[GP_SIM_NORMS].last >= 0 ? GP_SIM_NORMS : -1;
}

/* Norms where there are such; gradients where a barrier was asked for. */
bool gp_sim_is_joined(const gp_sim *run, int join, int op) {
  bool gradient = op == GP_ACT_B || op == GP_ACT_W;
  if (join == GP_SIM_SUMS) return gradient || op == GP_ACT_REDUCE;
  return run->norms ? op == GP_ACT_NORM : gradient && run->costs->barrier;
}

/* The last of all stages' parts, or what the stage's other device makes. */
static int32_t joined_source(const gp_sim *r, int32_t action) {
  int join = gp_sim_join_of(r, r->schedule->actions[action].op);
  return join >= 0 ? r->joins[join].last : other_gradient(r, action);
}

int32_t gp_sim_source(const gp_sim *run, int32_t action) {
  const gp_action *x = &run->schedule->actions[action];
  switch (x->op) {
  case GP_ACT_F:
    if (look(run, run->receive[0], x->stage, x->micro) >= 0) return -1;
    return look(run, run->forward, x->stage - 1, x->micro);
  case GP_ACT_B:
  case GP_ACT_I:
    if (look(run, run->receive[1], x->stage, x->micro) >= 0) return -1;
    return look(run, run->backward, x->stage + 1, x->micro);
  case GP_ACT_RECV_F: return look(run, run->send[0], x->stage - 1, x->micro);
  case GP_ACT_RECV_B: return look(run, run->send[1], x->stage + 1, x->micro);
  case GP_ACT_U:
  case GP_ACT_TIE:
  case GP_ACT_CLIP: return joined_source(run, action);
  case GP_ACT_NORM:
  case GP_ACT_REDUCE: return other_gradient(run, action);
  default: return -1;
  }
}

bool gp_sim_is_message(const gp_sim *run, int32_t action) {
  return !gp_act_ends((gp_act)run->schedule->actions[action].op);
}

/* The action that reads, on whatever device; through a receive where the schedule names one. */
static int32_t reader(const gp_sim *r, const gp_action *x) {
  switch (x->op) {
  case GP_ACT_F:
    if (look(r, r->receive[0], x->stage + 1, x->micro) >= 0) return -1;
    return look(r, r->forward, x->stage + 1, x->micro);
  case GP_ACT_B:
  case GP_ACT_I:
    if (look(r, r->receive[1], x->stage - 1, x->micro) >= 0) return -1;
    return look(r, r->backward, x->stage - 1, x->micro);
  case GP_ACT_SEND_F: return look(r, r->receive[0], x->stage + 1, x->micro);
  case GP_ACT_SEND_B: return look(r, r->receive[1], x->stage - 1, x->micro);
  default: return -1;
  }
}

int32_t gp_sim_reader(const gp_sim *run, int32_t action) {
  int32_t to = reader(run, &run->schedule->actions[action]);
  if (to < 0 || gp_sim_device(run, to) == gp_sim_device(run, action)) return -1;
  return to;
}

double gp_sim_delay(const gp_sim *run, int32_t action) {
  const gp_action *x = &run->schedule->actions[action];
  bool forward = x->op == GP_ACT_F || x->op == GP_ACT_SEND_F;
  const double *hop = run->costs->hop[forward ? 0 : 1];
  return hop ? hop[forward ? x->stage : x->stage - 1] : 0;
}

double gp_sim_arrival(const gp_sim *run, int32_t action, int32_t reader) {
  double finish = run->result->finish[action];
  int join = gp_sim_join_of(run, run->schedule->actions[reader].op);
  if (join >= 0 && run->joins[join].left > 0) return -1;
  if (finish < 0 || gp_sim_device(run, action) == gp_sim_device(run, reader)) return finish;
  if (!gp_sim_is_message(run, reader)) return finish;
  return run->messages ? run->messages[action].arrival : finish + gp_sim_delay(run, action);
}
