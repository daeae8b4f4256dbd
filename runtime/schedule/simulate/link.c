/* schedule/simulate/link.c - when the values that an action needs of other devices arrive.
 *
 * Values go where schedule/edges.h says. The order of a device's list takes care of needs within
 * the device. Endings wait for more than a value: for the other device of their stage, or for all
 * stages.
 */
#include "schedule/simulate/simulate.h"

/* Returns the last action on the stage's other devices that adds to what an update or a reduction
 * on this one reads. -1: there is no other device, or the batch is not known (a reduction in an
 * endless stream). */
static int32_t other_gradient(const gp_sim *r, int32_t action) {
  const gp_schedule *s = r->schedule;
  const gp_action *x = &s->actions[action];
  int32_t begin, end, last = -1;
  if (s->copy_count == 1 || (s->batch && x->op != GP_ACT_U)) return -1;
  gp_edges_batch(s, x->op == GP_ACT_U ? x->micro : 0, &begin, &end);
  for (int32_t i = begin; i < end; i++) {
    int32_t w = gp_edges_weights(r->edges, x->stage, i);
    if (w > last && gp_action_device(s, w) != gp_action_device(s, action)) last = w;
  }
  return last;
}

gp_join gp_sim_join_of(const gp_sim *run, gp_act op) {
  gp_join join = gp_join_of(op, run->norms || run->costs->barrier);
  return join < GP_JOIN_COUNT && run->joins[join].last >= 0 ? join : GP_JOIN_COUNT;
}

bool gp_sim_is_joined(const gp_sim *run, gp_join join, gp_act op) {
  if (join == GP_JOIN_SUMS || run->norms) return gp_join_counts(join, op);
  return run->costs->barrier && (op == GP_ACT_B || op == GP_ACT_W);
}

/* Returns the last of all stages' parts, or the last gradient of the stage's other devices. */
static int32_t joined_source(const gp_sim *r, int32_t action) {
  gp_join join = gp_sim_join_of(r, (gp_act)r->schedule->actions[action].op);
  return join < GP_JOIN_COUNT ? r->joins[join].last : other_gradient(r, action);
}

int32_t gp_sim_source(const gp_sim *run, int32_t action) {
  gp_act op = (gp_act)run->schedule->actions[action].op;
  if (!gp_act_ends(op)) return gp_edges_source(run->edges, action);
  return run->messages_only || run->meets ? -1 : joined_source(run, action);
}

bool gp_sim_is_message(const gp_sim *run, int32_t action) {
  return !gp_act_ends((gp_act)run->schedule->actions[action].op);
}

int32_t gp_sim_reader(const gp_sim *run, int32_t action) {
  const gp_schedule *s = run->schedule;
  int32_t to = gp_edges_reader(run->edges, action);
  return to < 0 || gp_action_device(s, to) == gp_action_device(s, action) ? -1 : to;
}

/* Returns the number of the edge that an action's value crosses, of an activation or a gradient. */
static double of_edge(const gp_sim *run, const double *const lists[2], int32_t action) {
  const gp_action *x = &run->schedule->actions[action];
  bool forward = x->op == GP_ACT_F || x->op == GP_ACT_SEND_F;
  const double *list = lists[forward ? 0 : 1];
  return list ? list[forward ? x->stage : x->stage - 1] : 0;
}

double gp_sim_delay(const gp_sim *run, int32_t action) {
  double delay = of_edge(run, run->costs->hop, action);
  return run->costs->noise ? delay * gp_sim_travel_factor(run, action) : delay;
}

double gp_sim_credit(const gp_sim *run, int32_t action) {
  return of_edge(run, run->costs->credit, action);
}

double gp_sim_busy(const gp_sim *run, int32_t action) {
  double busy = of_edge(run, run->costs->busy, action);
  return run->costs->noise ? busy * gp_sim_travel_factor(run, action) : busy;
}

double gp_sim_arrival(const gp_sim *run, int32_t action, int32_t reader) {
  double finish = run->result->finish[action];
  const gp_schedule *s = run->schedule;
  bool ends = gp_act_ends((gp_act)s->actions[reader].op);
  gp_join join = ends ? gp_sim_join_of(run, (gp_act)s->actions[reader].op) : GP_JOIN_COUNT;
  if (join < GP_JOIN_COUNT && run->joins[join].left > 0) return -1;
  if (finish < 0 || ends) return finish;
  if (gp_action_device(s, action) == gp_action_device(s, reader)) return finish;
  return run->arrivals ? run->arrivals[action] : finish + gp_sim_delay(run, action);
}
