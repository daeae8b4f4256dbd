/* schedule/simulate/meets.c - replicas that wait for each other in the middle of their actions, as
 * those whose batch norms normalise together do.
 *
 * Where in the action they meet is not known. So the action of every replica ends when the slowest
 * has computed it and, for each time that they meet, what they exchange has travelled. All replicas
 * run the same lists, so an action has the same place among those of its replica. */
#include "base/memory.h"
#include "schedule/simulate/simulate.h"

/* How often does an action of that kind meet the others? B counts as its halves, as its cost
 * does. */
static double count_of(const gp_costs *costs, int op, int32_t stage) {
  if (op == GP_ACT_B && !costs->meets[GP_ACT_B])
    return count_of(costs, GP_ACT_I, stage) + count_of(costs, GP_ACT_W, stage);
  return costs->meets[op] && stage >= 0 ? costs->meets[op][stage] : 0;
}

static double count_at(const gp_sim *r, int32_t action) {
  const gp_action *x = &r->schedule->actions[action];
  return count_of(r->costs, x->op, x->stage);
}

/* Count the actions of a replica. */
static int32_t own_count(const gp_schedule *s) { return s->first[s->device_count / s->replicas]; }

static bool is_asked(const gp_costs *costs) {
  for (int op = 0; op < GP_ACT_COUNT; op++)
    if (costs->meets[op]) return true;
  return false;
}

/* Is the action the same as that of the first replica? */
static bool is_like(const gp_schedule *s, int32_t action) {
  const gp_action *x = &s->actions[action], *first = &s->actions[action % own_count(s)];
  return x->op == first->op && x->stage == first->stage && x->joined == first->joined;
}

gp_status gp_sim_open_meets(gp_sim *r) {
  const gp_schedule *s = r->schedule;
  const int32_t total = s->first[s->device_count];
  if (s->replicas < 2 || !is_asked(r->costs)) return GP_OK;
  const int32_t own = own_count(s);
  bool alike = own * s->replicas == total;
  for (int32_t a = 0; alike && a < total; a++) alike = is_like(s, a);
  if (!alike)
    return gp_fail(GP_ESCHEDULE, "simulate: replicas that meet run different lists, expected the "
                                 "same actions in all of them");
  GP_TRY(gp_alloc_array((size_t)own + 1, sizeof *r->meets, (void **)&r->meets));
  for (int32_t a = 0; a < own; a++) r->meets[a].left = s->replicas;
  return GP_OK;
}

/* Tell the other replicas that this one has computed the action; the last one wakes all. */
static void tell(gp_sim *r, int32_t device, int32_t action) {
  const gp_schedule *s = r->schedule;
  const int32_t each = s->device_count / s->replicas;
  gp_sim_meet *meet = &r->meets[action % own_count(s)];
  if (r->cursors[device].ready > meet->latest) meet->latest = r->cursors[device].ready;
  if (--meet->left) return;
  for (int32_t k = 0; k < s->replicas; k++) gp_turns_wake(&r->turns, device % each + k * each);
}

bool gp_sim_meet_replicas(gp_sim *r, int32_t device) {
  gp_sim_cursor *c = &r->cursors[device];
  double ready = c->ready;
  for (int32_t a = c->next; !c->met && a < c->end; a++)
    if (count_at(r, a) > 0) tell(r, device, a);
  c->met = true;
  for (int32_t a = c->next; a < c->end; a++) {
    const gp_sim_meet *meet = &r->meets[a % own_count(r->schedule)];
    const double count = count_at(r, a);
    if (count > 0 && meet->left) return false;
    const double end = meet->latest + count * r->costs->exchange;
    if (count > 0 && end > ready) ready = end;
  }
  c->ready = ready;
  return true;
}
