/* schedule/simulate/meets.c - what replicas of a stream wait for before and after each update.
 *
 * The gradients of a mini-batch are sent when the last action has added to them, so a reduction (or
 * an update, in rows without reductions) waits until those of all replicas have arrived. New values
 * are sent behind the update, and are under way while a replica goes on with the version before:
 * the first forward pass of the new version waits for them, or the next reduction, whichever comes
 * first in the list (plan/lower.c). Both leave a device one after another, so gradients wait for
 * the values before them. In a synchronous schedule updates end a step, and link.c says what they
 * wait for.
 */
#include "base/memory.h"
#include "schedule/simulate/simulate.h"

/* ---- meetings ------------------------------------------------------------------------------ */

static size_t row_of(const gp_sim *r, int32_t stage, int32_t batch) {
  return (size_t)stage * (size_t)r->batch_count + (size_t)batch;
}

static gp_sim_meet *meet_at(const gp_sim *r, gp_sim_part part, int32_t stage, int32_t batch) {
  const size_t rows = (size_t)r->schedule->stage_count * (size_t)r->batch_count;
  return &r->meets[part * rows + row_of(r, stage, batch)];
}

static bool is_gradient(const gp_action *x) { return x->op == GP_ACT_B || x->op == GP_ACT_W; }

/* How many actions of this copy are still to add to the gradients of the mini-batch. */
static int32_t *adding(const gp_sim *r, int32_t action) {
  const gp_schedule *s = r->schedule;
  const gp_action *x = &s->actions[action];
  return &r->adding[row_of(r, x->stage, x->micro / s->batch) * (size_t)s->copy_count +
                    (size_t)gp_action_copy(s, action)];
}

static gp_sim_meet *meet_of(const gp_sim *r, int32_t action) {
  const gp_action *x = &r->schedule->actions[action];
  if (x->op == GP_ACT_U) return meet_at(r, GP_MEET_VALUES, x->stage, x->micro);
  return meet_at(r, GP_MEET_SUMS, x->stage, x->micro / r->schedule->batch);
}

/* Count the copies that take part in each meeting. */
static void count_parts(const gp_sim *r) {
  const gp_schedule *s = r->schedule;
  for (int32_t a = 0; a < s->first[s->device_count]; a++) {
    const gp_action *x = &s->actions[a];
    if (x->op == GP_ACT_U || (is_gradient(x) && (*adding(r, a))++ == 0)) meet_of(r, a)->left++;
  }
}

gp_status gp_sim_open_meets(gp_sim *r) {
  const gp_schedule *s = r->schedule;
  if (!s->batch || s->copy_count < 2 || r->messages_only) return GP_OK;
  r->batch_count = (s->micro_count + s->batch - 1) / s->batch;
  const size_t rows = (size_t)s->stage_count * (size_t)r->batch_count,
               copies = (size_t)s->copy_count, devices = (size_t)s->device_count;
  GP_TRY(gp_alloc_array(GP_MEET_COUNT * rows, sizeof *r->meets, (void **)&r->meets));
  GP_TRY(gp_alloc_array(rows * copies, sizeof *r->adding, (void **)&r->adding));
  GP_TRY(gp_alloc_array(devices, sizeof *r->exits, (void **)&r->exits));
  for (size_t i = 0; i < GP_MEET_COUNT * rows; i++)
    r->meets[i].last = r->meets[i].other = (gp_sim_wait){-1, -1};
  count_parts(r);
  return GP_OK;
}

void gp_sim_close_meets(gp_sim *r) {
  gp_free(r->meets);
  gp_free(r->adding);
  gp_free(r->exits);
}

/* ---- what leaves a device ------------------------------------------------------------------ */

/* Send what the action made to the other replicas. */
static gp_sim_wait send(gp_sim *r, gp_sim_part part, int32_t action) {
  const double *seconds = part == GP_MEET_SUMS ? r->costs->sums : r->costs->values;
  const double busy = seconds ? seconds[r->schedule->actions[action].stage] : 0;
  const double factor = r->costs->noise ? gp_sim_travel_factor(r, action) : 1;
  double *exit = &r->exits[gp_action_device(r->schedule, action)];
  if (r->result->finish[action] > *exit) *exit = r->result->finish[action];
  *exit += busy * factor;
  return (gp_sim_wait){action, *exit + r->costs->exchange};
}

/* Keep what arrives last, and what arrives last of another copy than that. */
static void keep_latest(const gp_schedule *s, gp_sim_meet *meet, gp_sim_wait sent) {
  const bool first = meet->last.from < 0;
  const bool same = !first && gp_action_copy(s, meet->last.from) == gp_action_copy(s, sent.from);
  if (first || sent.arrival > meet->last.arrival) {
    if (!first && !same) meet->other = meet->last;
    meet->last = sent;
  } else if (!same && sent.arrival > meet->other.arrival) {
    meet->other = sent;
  }
}

void gp_sim_note_met(gp_sim *r, int32_t action) {
  const gp_schedule *s = r->schedule;
  const gp_action *x = &s->actions[action];
  const bool updates = x->op == GP_ACT_U;
  if (!updates && !(is_gradient(x) && --*adding(r, action) == 0)) return;
  gp_sim_meet *meet = meet_of(r, action);
  keep_latest(s, meet, send(r, updates ? GP_MEET_VALUES : GP_MEET_SUMS, action));
  if (--meet->left) return;
  const int32_t *at = &s->placement[s->copy_count * x->stage];
  for (int32_t i = 0; i < s->copy_count; i++) gp_turns_wake(&r->turns, at[i]);
}

/* ---- what an action waits for -------------------------------------------------------------- */

/* The number of the update that a reduction stands before. */
static int32_t number_of(const gp_schedule *s, int32_t reduction) {
  const int32_t stage = s->actions[reduction].stage;
  int32_t a = reduction;
  while (s->actions[a].op != GP_ACT_U || s->actions[a].stage != stage) a++;
  return s->actions[a].micro;
}

/* What a copy has made itself is there. */
static gp_sim_wait wait_for(const gp_sim *r, gp_sim_part part, int32_t action, int32_t batch) {
  const gp_schedule *s = r->schedule;
  const gp_sim_meet *meet = meet_at(r, part, s->actions[action].stage, batch);
  gp_sim_wait last = meet->last;
  if (meet->left > 0) return (gp_sim_wait){last.from < 0 ? action : last.from, -1};
  if (gp_action_copy(s, last.from) == gp_action_copy(s, action)) last = meet->other;
  return last.from < 0 ? (gp_sim_wait){action, 0} : last;
}

int gp_sim_waits(const gp_sim *r, int32_t action, gp_sim_wait waits[GP_MEET_COUNT]) {
  const gp_action *x = &r->schedule->actions[action];
  int count = 0;
  if (!r->meets) return 0;
  if (x->op == GP_ACT_F && x->version > 0)
    waits[count++] = wait_for(r, GP_MEET_VALUES, action, x->version - 1);
  if (x->op != GP_ACT_U && x->op != GP_ACT_REDUCE) return count;
  const int32_t batch = x->op == GP_ACT_U ? x->micro : number_of(r->schedule, action);
  waits[count++] = wait_for(r, GP_MEET_SUMS, action, batch);
  if (batch > 0) waits[count++] = wait_for(r, GP_MEET_VALUES, action, batch - 1);
  return count;
}
