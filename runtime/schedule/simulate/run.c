/* schedule/simulate/run.c - when does each action of a schedule begin and end?
 *
 * Devices are taken from a queue. Each goes on until it waits for another device, and is queued
 * again when what it waits for is there, so the time is linear in the number of actions. Full
 * channels, of which the verifier's order knows nothing, are waited for in the same way. The
 * outcome does not depend on which device is taken first: a channel has one sender and one
 * receiver, and each device has its own clock. The verifier runs the same loop with unit costs to
 * find how large channels must be (verify/capacity.c).
 *
 * The loop of runner.c does not serve here, only its turns do, because a device may stop in the
 * middle of an action: between computing and sending what it made.
 */
#include "schedule/simulate/simulate.h"

#include <math.h>

#include "base/memory.h"

/* ---- costs --------------------------------------------------------------------------------- */

/* If B has no cost, it takes that of its halves. */
static double cost_of(const gp_costs *costs, int op, int32_t stage) {
  if (op == GP_ACT_B && !costs->act[GP_ACT_B])
    return cost_of(costs, GP_ACT_I, stage) + cost_of(costs, GP_ACT_W, stage);
  return costs->act[op] && stage >= 0 ? costs->act[op][stage] : 0;
}

static gp_status check_list(const double *list, int32_t count, const char *what) {
  for (int32_t i = 0; list && i < count; i++)
    if (!(list[i] >= 0) || isinf(list[i]))
      return gp_fail(GP_ERANGE, "simulate: %s %d is %g, expected a number from 0 on", what, (int)i,
                     list[i]);
  return GP_OK;
}

static gp_status check_noise(const gp_schedule *s, const gp_noise *noise) {
  const double numbers[] = {noise->action, noise->travel, noise->stragglers, noise->slowdown};
  GP_TRY(check_list(numbers, 4, "a number of the noise"));
  if (noise->slow && noise->device_count != s->device_count)
    return gp_fail(GP_ERANGE, "simulate: factors of %d devices, the schedule has %d",
                   noise->device_count, (int)s->device_count);
  return check_list(noise->slow, s->device_count, "the factor of device");
}

/* A time below 0 means `not yet` here, and sums must stay finite. */
gp_status gp_sim_check(const gp_schedule *s, const gp_costs *costs) {
  if (costs->stage_count != s->stage_count)
    return gp_fail(GP_ERANGE, "simulate: costs of %d stages, the schedule has %d",
                   costs->stage_count, (int)s->stage_count);
  for (int op = 0; op < GP_ACT_COUNT; op++)
    GP_TRY(check_list(costs->act[op], s->stage_count, "the cost of an action of stage"));
  for (int i = 0; i < 2; i++) {
    GP_TRY(check_list(costs->hop[i], s->stage_count - 1, "the delay of edge"));
    GP_TRY(check_list(costs->busy[i], s->stage_count - 1, "the time that links are taken by edge"));
    GP_TRY(check_list(costs->credit[i], s->stage_count - 1, "the delay of a credit of edge"));
  }
  if (costs->barrier && s->batch > 0)
    return gp_fail(GP_ERANGE, "simulate: a barrier in an asynchronous schedule, expected none");
  GP_TRY(check_list(costs->sums, s->stage_count, "the way of the gradients of stage"));
  GP_TRY(check_list(costs->values, s->stage_count, "the way of the values of stage"));
  GP_TRY(check_list(costs->away, s->stage_count, "the time of a copy to the host of stage"));
  if (costs->noise) GP_TRY(check_noise(s, costs->noise));
  for (int op = 0; op < GP_ACT_COUNT; op++)
    GP_TRY(check_list(costs->gathers[op], s->stage_count, "the gathers of an action of stage"));
  GP_TRY(check_list(&costs->exchange, 1, "the time of an exchange"));
  GP_TRY(check_list(&costs->joined, 1, "the factor of joined actions"));
  const double *bytes[] = {costs->activation, costs->after_input, costs->resident, costs->version};
  for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++)
    GP_TRY(check_list(bytes[i], s->stage_count, "the bytes of stage"));
  return GP_OK;
}

/* ---- devices that wait ----------------------------------------------------------------------- */

/* Wake the device of a reader if it waits for this value. */
static void wake_reader(gp_sim *r, int32_t reader, int32_t value) {
  int32_t device = gp_action_device(r->schedule, reader);
  if (r->cursors[device].waits == value) gp_turns_wake(&r->turns, device);
}

/* Wake a device of the stage on which an update or a reduction waits for this gradient. */
static void wake_copy(gp_sim *r, int32_t gradient) {
  const gp_schedule *s = r->schedule;
  const gp_action *x = &s->actions[gradient];
  if (x->op != GP_ACT_B && x->op != GP_ACT_W) return;
  const int32_t *at = &s->placement[s->copy_count * x->stage];
  for (int32_t i = 0; i < s->copy_count; i++)
    if (r->cursors[at[i]].waits == gradient) gp_turns_wake(&r->turns, at[i]);
}

/* Count an action of a join; the last one wakes all devices. */
static void count_joined(gp_sim *r, int32_t action) {
  const double *finish = r->result->finish;
  gp_act op = (gp_act)r->schedule->actions[action].op;
  for (int k = 0; k < GP_JOIN_COUNT; k++) {
    gp_sim_join *join = &r->joins[k];
    if (join->last < 0 || !gp_sim_is_joined(r, (gp_join)k, op)) continue;
    if (finish[action] > finish[join->last]) join->last = action;
    if (--join->left == 0)
      for (int32_t d = 0; d < r->schedule->device_count; d++) gp_turns_wake(&r->turns, d);
  }
}

/* ---- one device ---------------------------------------------------------------------------- */

/* Take the inputs of the actions at the cursor. Returns false if one is not there yet. */
static bool receive(gp_sim *r, int32_t device) {
  gp_sim_cursor *c = &r->cursors[device];
  for (; c->part < c->end; c->part++) {
    int32_t from = gp_sim_source(r, c->part);
    if (from < 0) continue;
    double arrival = gp_sim_arrival(r, from, c->part);
    bool crosses = r->capacity >= 0 && gp_action_device(r->schedule, from) != device &&
                   gp_sim_is_message(r, c->part);
    if (arrival < 0) {
      c->waits = from;
      if (crosses) gp_sim_post(r, from, c->part, c->ready);
      return false;
    }
    if (arrival > c->ready) c->ready = arrival;
    if (crosses) gp_sim_take(r, from, c->part, c->ready);
  }
  return true;
}

/* Wait for the other replicas of a stream, likewise. */
static bool meet_all(gp_sim *r, int32_t device) {
  gp_sim_cursor *c = &r->cursors[device];
  gp_sim_wait waits[GP_MEET_COUNT];
  for (int32_t a = c->next; a < c->end; a++) {
    const int count = gp_sim_waits(r, a, waits);
    for (int i = 0; i < count; i++) {
      if (waits[i].arrival < 0) return c->part = a, c->waits = waits[i].from, false;
      if (waits[i].arrival > c->ready) c->ready = waits[i].arrival;
    }
  }
  return true;
}

/* Joined actions take one time together. */
static void compute(gp_sim *r, int32_t device) {
  gp_sim_cursor *c = &r->cursors[device];
  double sum = 0;
  gp_sim_await_away(r, c);
  for (int32_t a = c->next; a < c->end; a++) {
    const gp_action *x = &r->schedule->actions[a];
    double cost = cost_of(r->costs, x->op, x->stage);
    sum += r->costs->noise ? cost * gp_sim_action_factor(r, device, a) : cost;
  }
  if (c->end - c->next > 1) sum *= r->costs->joined;
  for (int32_t a = c->next; a < c->end; a++) r->result->begin[a] = c->ready;
  c->ready += sum;
  c->ran = true;
}

/* The values of joined actions are all there at their end. */
static void complete(gp_sim *r, int32_t device) {
  gp_sim_cursor *c = &r->cursors[device];
  for (int32_t a = c->next; a < c->end; a++) r->result->finish[a] = c->ready;
  gp_sim_copy_away(r, device);
  for (int32_t a = c->next; a < c->end; a++) {
    if (r->schedule->copy_count > 1) wake_copy(r, a);
    if (r->joined) count_joined(r, a);
    if (r->meets) gp_sim_note_met(r, a);
  }
  c->part = c->next;
  c->done = true;
}

/* Send what the actions at the cursor made. Returns false if a channel is full. */
static bool send(gp_sim *r, gp_sim_cursor *c) {
  for (; c->part < c->end; c->part++) {
    int32_t to = gp_sim_reader(r, c->part);
    if (to < 0) continue;
    if (r->arrivals && !gp_sim_put(r, c, to)) return false;
    wake_reader(r, to, c->part);
  }
  return true;
}

/* Run a device until its list ends or it has to wait. */
static void advance(gp_sim *r, int32_t device) {
  const gp_schedule *s = r->schedule;
  gp_sim_cursor *c = &r->cursors[device];
  c->waits = c->full = -1;
  while (c->next < s->first[device + 1]) {
    if (!c->ran && !receive(r, device)) return;
    if (!c->ran && r->meets && !meet_all(r, device)) return;
    if (!c->ran) compute(r, device);
    if (!c->done && r->gathers && !gp_sim_gather_all(r, device)) return;
    if (!c->done) complete(r, device);
    if (!send(r, c)) return;
    for (int32_t a = c->next; a < c->end; a++)
      if (gp_sim_away_leaves(r, a) > c->ready) c->ready = gp_sim_away_leaves(r, a);
    c->full = -1;
    c->ran = c->told = c->done = false;
    c->next = c->part = c->end;
    if (c->next < s->first[device + 1]) c->end = gp_schedule_group_end(s, c->next);
  }
}

/* ---- all of them ----------------------------------------------------------------------------- */

bool gp_sim_is_stuck(const gp_sim *run, int32_t device) {
  return run->cursors[device].next < run->schedule->first[device + 1];
}

static gp_status fail_stuck(const gp_sim *r, int32_t device) {
  const gp_schedule *s = r->schedule;
  const gp_sim_cursor *c = &r->cursors[device];
  char at[GP_ACTION_TEXT], other[GP_ACTION_TEXT];
  gp_action_print(&s->actions[c->part], at);
  if (c->ran)
    return gp_fail(GP_ESCHEDULE,
                   "simulate: device %d cannot send what %s made: its channel holds %d values, and "
                   "the devices wait for each other, expected larger channels",
                   (int)device, at, (int)r->capacity);
  return gp_fail(GP_ESCHEDULE,
                 "simulate: device %d waits at %s for %s forever: devices wait for each other",
                 (int)device, at, gp_action_print(&s->actions[c->waits], other));
}

/* Count the actions of each join. Any of them stands for the last one until that is known; a join
 * without actions is never waited for. */
static void find_joins(gp_sim *r) {
  const gp_schedule *s = r->schedule;
  int32_t total = s->first[s->device_count];
  bool tied = false;
  for (int32_t a = 0; a < total; a++) {
    r->norms |= s->actions[a].op == GP_ACT_NORM;
    tied |= s->actions[a].op == GP_ACT_TIE;
  }
  for (int k = 0; k < GP_JOIN_COUNT; k++) {
    r->joins[k] = (gp_sim_join){.last = -1};
    bool asked = k == GP_JOIN_SUMS ? tied : r->norms || r->costs->barrier;
    for (int32_t a = 0; asked && a < total; a++)
      if (gp_sim_is_joined(r, (gp_join)k, (gp_act)s->actions[a].op))
        r->joins[k] = (gp_sim_join){.last = a, .left = r->joins[k].left + 1};
    r->joined |= r->joins[k].last >= 0;
  }
}

/* Sum up what the stages of a device prepare before its first action. It delays the device, but no
 * action waits for it. */
static double prepared(const gp_sim *r, int32_t device) {
  const double *cost = r->costs->act[GP_ACT_P];
  double sum = 0;
  const gp_stage_list held = gp_schedule_stages(r->schedule, device);
  for (int32_t i = 0; cost && i < held.count; i++) sum += cost[held.stages[i]];
  return sum;
}

static void run_all(gp_sim *r) {
  const gp_schedule *s = r->schedule;
  find_joins(r);
  gp_turns_begin(&r->turns, NULL);
  for (int32_t d = 0; d < s->device_count; d++) {
    gp_sim_cursor *c = &r->cursors[d];
    c->next = c->part = s->first[d];
    c->ready = prepared(r, d);
    if (c->next < s->first[d + 1]) c->end = gp_schedule_group_end(s, c->next);
    gp_turns_wake(&r->turns, d);
  }
  for (int32_t device; (device = gp_turns_next(&r->turns)) >= 0;) advance(r, device);
}

/* A device that cannot send is reported before one that waits, because it says more. */
gp_status gp_sim_check_ended(const gp_sim *r) {
  for (int sending = 1; sending >= 0; sending--)
    for (int32_t d = 0; d < r->schedule->device_count; d++)
      if (gp_sim_is_stuck(r, d) && r->cursors[d].ran >= sending) return fail_stuck(r, d);
  return GP_OK;
}

/* Sum up a device from its first action to its last; empty cells do not count. */
static void sum_up(const gp_sim *r, int32_t device) {
  const gp_schedule *s = r->schedule;
  gp_simulation *result = r->result;
  gp_device_load *load = &result->loads[device];
  bool any = false;
  for (int32_t a = s->first[device]; a < s->first[device + 1]; a = gp_schedule_group_end(s, a)) {
    if (s->actions[a].op == GP_ACT_IDLE) continue;
    if (!any) load->begin = result->begin[a];
    any = true;
    load->end = result->finish[a];
    load->work += result->finish[a] - result->begin[a];
  }
  if (load->end > result->makespan) result->makespan = load->end;
  if (load->end - load->begin > result->span) result->span = load->end - load->begin;
}

/* ---- the run --------------------------------------------------------------------------------- */

/* A finish below 0 means `not yet`; check_costs makes sure that no real one is. */
static gp_status allocate(gp_sim *r) {
  const gp_schedule *s = r->schedule;
  size_t total = (size_t)s->first[s->device_count], devices = (size_t)s->device_count;
  gp_simulation *result;
  GP_TRY(gp_alloc(sizeof *result, (void **)&r->result));
  result = r->result;
  result->schedule = s;
  GP_TRY(gp_alloc_array(total, sizeof(double), (void **)&result->begin));
  GP_TRY(gp_alloc_array(total, sizeof(double), (void **)&result->finish));
  for (size_t a = 0; a < total; a++) result->finish[a] = -1;
  GP_TRY(gp_alloc_array(devices, sizeof *result->loads, (void **)&result->loads));
  GP_TRY(gp_alloc_array(devices, sizeof *r->cursors, (void **)&r->cursors));
  GP_TRY(gp_turns_new(s->device_count, GP_TURNS_QUEUE, &r->turns));
  GP_TRY(gp_sim_open_away(r, total));
  GP_TRY(gp_sim_open_gathers(r));
  GP_TRY(gp_sim_open_meets(r));
  return gp_sim_open_channels(r, total);
}

/* A channel with room for every micro-batch is never full. */
gp_status gp_sim_run(gp_sim *run) {
  int32_t capacity = run->costs->capacity;
  run->capacity = capacity < run->schedule->micro_count ? capacity : -1;
  GP_TRY(allocate(run));
  run_all(run);
  return GP_OK;
}

void gp_sim_close(gp_sim *run) {
  gp_simulation_free(run->result);
  gp_free(run->cursors);
  gp_turns_free(&run->turns);
  gp_sim_close_away(run);
  gp_free(run->arrivals);
  gp_free(run->places);
  gp_free(run->links);
  gp_free(run->queues);
  gp_free(run->slots);
  gp_free(run->gathers);
  gp_sim_close_meets(run);
}

static gp_status simulate(gp_sim *r) {
  GP_TRY(gp_sim_check(r->schedule, r->costs));
  GP_TRY(gp_sim_run(r));
  GP_TRY(gp_sim_check_ended(r));
  for (int32_t d = 0; d < r->schedule->device_count; d++) sum_up(r, d);
  if (!r->costs->times_only) GP_TRY(gp_sim_memory(r));
  return gp_sim_path(r);
}

/* The result is handed over only when all of it is there; a failed run leaves nothing. */
gp_status gp_simulation_new(const gp_schedule *schedule, const gp_costs *costs,
                            gp_simulation **simulation) {
  gp_edges edges = {.s = schedule};
  gp_sim run = {.schedule = schedule, .edges = &edges, .costs = costs};
  gp_status status = gp_edges_enter_all(&edges);
  if (!status) status = simulate(&run);
  gp_edges_free(&edges);
  if (!status) {
    *simulation = run.result;
    run.result = NULL;
  }
  gp_sim_close(&run);
  return status;
}

void gp_simulation_shed(gp_simulation *simulation) {
  gp_free(simulation->begin);
  gp_free(simulation->finish);
  simulation->begin = simulation->finish = NULL;
}

/* The simulation may be one whose run failed half-way. */
void gp_simulation_free(gp_simulation *simulation) {
  if (!simulation) return;
  gp_simulation_shed(simulation);
  gp_free(simulation->loads);
  gp_free(simulation->path);
  gp_free(simulation);
}

/* ---- results --------------------------------------------------------------------------------- */

double gp_simulation_makespan(const gp_simulation *simulation) { return simulation->makespan; }

double gp_simulation_span(const gp_simulation *simulation) { return simulation->span; }

const gp_device_load *gp_simulation_device(const gp_simulation *simulation, int device) {
  return &simulation->loads[device];
}

void gp_simulation_times(const gp_simulation *simulation, int device, const double **begin,
                         const double **finish) {
  int32_t first = simulation->schedule->first[device];
  *begin = &simulation->begin[first];
  *finish = &simulation->finish[first];
}

const gp_critical *gp_simulation_critical(const gp_simulation *simulation, int *count) {
  *count = simulation->path_count;
  return simulation->path;
}
