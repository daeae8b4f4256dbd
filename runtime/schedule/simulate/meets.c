/* schedule/simulate/meets.c - what replicas of a stream wait for before and after each update.
 *
 * The gradients of a mini-batch are sent when the last action has added to them, so a reduction (or
 * an update, in rows without reductions) waits until those of all replicas have ended and have
 * travelled. New values are sent behind the update, and are under way while a replica goes on with
 * the version before: the first forward pass of the new version waits for them, or the next
 * reduction, whichever comes first in the list (plan/lower.c). In a synchronous schedule updates
 * end a step, and link.c says what they wait for.
 */
#include "base/memory.h"
#include "schedule/simulate/simulate.h"

static gp_sim_meet *meet_at(const gp_sim *r, gp_sim_part part, int32_t stage, int32_t batch) {
  const int32_t row = (int32_t)part * r->schedule->stage_count + stage;
  return &r->meets[(size_t)row * (size_t)r->batch_count + (size_t)batch];
}

/* The meeting that an action is part of; NULL: none. */
static gp_sim_meet *meet_of(const gp_sim *r, int32_t action) {
  const gp_action *x = &r->schedule->actions[action];
  if (x->op == GP_ACT_U) return meet_at(r, GP_MEET_VALUES, x->stage, x->micro);
  if (x->op != GP_ACT_B && x->op != GP_ACT_W) return NULL;
  return meet_at(r, GP_MEET_SUMS, x->stage, x->micro / r->schedule->batch);
}

gp_status gp_sim_open_meets(gp_sim *r) {
  const gp_schedule *s = r->schedule;
  if (!s->batch || s->copy_count < 2 || r->messages_only) return GP_OK;
  r->batch_count = (s->micro_count + s->batch - 1) / s->batch;
  const size_t rows = GP_MEET_COUNT * (size_t)s->stage_count, count = rows * (size_t)r->batch_count;
  GP_TRY(gp_alloc_array(count, sizeof *r->meets, (void **)&r->meets));
  for (size_t i = 0; i < count; i++) r->meets[i] = (gp_sim_meet){.last = -1, .other = -1};
  for (int32_t a = 0; a < s->first[s->device_count]; a++) {
    gp_sim_meet *meet = s->actions[a].op == GP_ACT_IDLE ? NULL : meet_of(r, a);
    if (meet) meet->left++;
  }
  return GP_OK;
}

/* Keep the action that ended last, and the last one on another copy than that. */
static void keep_latest(const gp_sim *r, gp_sim_meet *meet, int32_t action) {
  const double *finish = r->result->finish;
  const int32_t copy = gp_action_copy(r->schedule, action);
  if (meet->last < 0 || finish[action] > finish[meet->last]) {
    if (meet->last >= 0 && gp_action_copy(r->schedule, meet->last) != copy)
      meet->other = meet->last;
    meet->last = action;
  } else if (gp_action_copy(r->schedule, meet->last) != copy &&
             (meet->other < 0 || finish[action] > finish[meet->other])) {
    meet->other = action;
  }
}

void gp_sim_note_met(gp_sim *r, int32_t action) {
  const gp_schedule *s = r->schedule;
  gp_sim_meet *meet = s->actions[action].op == GP_ACT_IDLE ? NULL : meet_of(r, action);
  if (!meet) return;
  keep_latest(r, meet, action);
  if (--meet->left) return;
  const int32_t *at = &s->placement[s->copy_count * s->actions[action].stage];
  for (int32_t i = 0; i < s->copy_count; i++) gp_turns_wake(&r->turns, at[i]);
}

/* The number of the update that a reduction stands before. */
static int32_t number_of(const gp_schedule *s, int32_t reduction) {
  const int32_t stage = s->actions[reduction].stage;
  int32_t a = reduction;
  while (s->actions[a].op != GP_ACT_U || s->actions[a].stage != stage) a++;
  return s->actions[a].micro;
}

static gp_sim_wait wait_for(const gp_sim *r, gp_sim_part part, int32_t action, int32_t batch) {
  const int32_t stage = r->schedule->actions[action].stage;
  const double *seconds = part == GP_MEET_SUMS ? r->costs->sums : r->costs->values;
  const gp_sim_meet *meet = meet_at(r, part, stage, batch);
  int32_t from = meet->last;
  if (meet->left > 0) return (gp_sim_wait){from < 0 ? action : from, -1};
  if (gp_action_copy(r->schedule, from) == gp_action_copy(r->schedule, action)) from = meet->other;
  if (from < 0) return (gp_sim_wait){action, 0}; /* no other copy has a part */
  const double travels = seconds ? seconds[stage] : 0;
  const double factor = r->costs->noise ? gp_sim_travel_factor(r, from) : 1;
  return (gp_sim_wait){from, r->result->finish[from] + travels * factor};
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
