/* schedule/simulate/gathers.c - replicas that wait for each other in the middle of their actions,
 * as those whose batch norms normalise together do.
 *
 * Where in the action they do is not known. So the action of every replica ends when the slowest
 * has computed it and, for each time that they wait, what they exchange has travelled. All replicas
 * run the same lists, so an action has the same place among those of its replica. */
#include "base/memory.h"
#include "schedule/simulate/simulate.h"

/* How often does an action of that kind gather from the others? B counts as its halves, as its cost
 * does. */
static double count_of(const gp_costs *costs, int op, int32_t stage) {
  if (op == GP_ACT_B && !costs->gathers[GP_ACT_B])
    return count_of(costs, GP_ACT_I, stage) + count_of(costs, GP_ACT_W, stage);
  return costs->gathers[op] && stage >= 0 ? costs->gathers[op][stage] : 0;
}

static double count_at(const gp_sim *r, int32_t action) {
  const gp_action *x = &r->schedule->actions[action];
  return count_of(r->costs, x->op, x->stage);
}

/* Count the actions of a replica. */
static int32_t own_count(const gp_schedule *s) { return s->first[s->device_count / s->replicas]; }

static bool is_asked(const gp_costs *costs) {
  for (int op = 0; op < GP_ACT_COUNT; op++)
    if (costs->gathers[op]) return true;
  return false;
}

/* Is the action the same as that of the first replica? */
static bool is_like(const gp_schedule *s, int32_t action) {
  const gp_action *x = &s->actions[action], *first = &s->actions[action % own_count(s)];
  return x->op == first->op && x->stage == first->stage && x->joined == first->joined;
}

gp_status gp_sim_open_gathers(gp_sim *r) {
  const gp_schedule *s = r->schedule;
  const int32_t total = s->first[s->device_count];
  if (s->replicas < 2 || !is_asked(r->costs)) return GP_OK;
  const int32_t own = own_count(s);
  bool alike = own * s->replicas == total;
  for (int32_t a = 0; alike && a < total; a++) alike = is_like(s, a);
  if (!alike)
    return gp_fail(GP_ESCHEDULE, "simulate: replicas that gather run different lists, expected the "
                                 "same actions in all of them");
  GP_TRY(gp_alloc_array((size_t)own + 1, sizeof *r->gathers, (void **)&r->gathers));
  for (int32_t a = 0; a < own; a++) r->gathers[a].left = s->replicas;
  return GP_OK;
}

/* Tell the other replicas that this one has computed the action; the last one wakes all. */
static void tell(gp_sim *r, int32_t device, int32_t action) {
  const gp_schedule *s = r->schedule;
  const int32_t each = s->device_count / s->replicas;
  gp_sim_gather *gather = &r->gathers[action % own_count(s)];
  if (r->cursors[device].ready > gather->latest) gather->latest = r->cursors[device].ready;
  if (--gather->left) return;
  for (int32_t k = 0; k < s->replicas; k++) gp_turns_wake(&r->turns, device % each + k * each);
}

bool gp_sim_gather_all(gp_sim *r, int32_t device) {
  gp_sim_cursor *c = &r->cursors[device];
  double ready = c->ready;
  for (int32_t a = c->next; !c->told && a < c->end; a++)
    if (count_at(r, a) > 0) tell(r, device, a);
  c->told = true;
  for (int32_t a = c->next; a < c->end; a++) {
    const gp_sim_gather *gather = &r->gathers[a % own_count(r->schedule)];
    const double count = count_at(r, a);
    if (count > 0 && gather->left) return false;
    const double end = gather->latest + count * r->costs->exchange;
    if (count > 0 && end > ready) ready = end;
  }
  c->ready = ready;
  return true;
}
