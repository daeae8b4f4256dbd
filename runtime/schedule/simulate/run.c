/* schedule/simulate/run.c - when does each action of a schedule begin and end?
 *
 * Devices are taken from a queue; each goes on until it waits for another one, which puts it back
 * into the queue when what it waits for is there. So the time that this takes is linear in the
 * number of actions, and channels that are full, which no order of the verifier knows of, need
 * nothing special.
 */
#include "schedule/simulate/simulate.h"

#include <math.h>

#include "base/memory.h"

/* ---- costs --------------------------------------------------------------------------------- */

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

/* Below 0 means `not yet` here, and sums must stay numbers. */
static gp_status check_costs(const gp_schedule *s, const gp_costs *costs) {
  if (costs->stage_count != s->stage_count)
    return gp_fail(GP_ERANGE, "simulate: costs of %d stages, the schedule has %d",
                   costs->stage_count, (int)s->stage_count);
  for (int op = 0; op < GP_ACT_COUNT; op++)
    GP_TRY(check_list(costs->act[op], s->stage_count, "the cost of an action of stage"));
  for (int i = 0; i < 2; i++)
    GP_TRY(check_list(costs->hop[i], s->stage_count - 1, "the delay of edge"));
  if (costs->barrier && s->batch > 0)
    return gp_fail(GP_ERANGE, "simulate: a barrier in an asynchronous schedule, expected none");
  GP_TRY(check_list(&costs->joined, 1, "the factor of joined actions"));
  const double *bytes[] = {costs->activation, costs->after_input, costs->resident, costs->version};
  for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++)
    GP_TRY(check_list(bytes[i], s->stage_count, "the bytes of stage"));
  return GP_OK;
}

/* ---- devices that wait ----------------------------------------------------------------------- */

/* A device is queued once at most, so the ring is never too small. */
static void enqueue(gp_sim *r, int32_t device) {
  int32_t devices = r->schedule->device_count;
  if (r->cursors[device].queued) return;
  r->cursors[device].queued = true;
  r->queue[(r->queue_first + r->queue_count++) % devices] = device;
}

/* The value of an action is there: its reader's device may wait for it. */
static void wake_reader(gp_sim *r, int32_t reader, int32_t value) {
  int32_t device = gp_sim_device(r, reader);
  if (r->cursors[device].waits == value) enqueue(r, device);
}

/* The same of a gradient that an update or a reduction on the stage's other device waits for. */
static void wake_copy(gp_sim *r, int32_t gradient) {
  const gp_schedule *s = r->schedule;
  const gp_action *x = &s->actions[gradient];
  if (s->copy_count == 1 || (x->op != GP_ACT_B && x->op != GP_ACT_W)) return;
  const int32_t *at = &s->placement[2 * x->stage];
  for (int i = 0; i < 2; i++)
    if (r->cursors[at[i]].waits == gradient) enqueue(r, at[i]);
}

/* What all stages wait for is there when the last of them has done its part. */
static void count_joined(gp_sim *r, int32_t action) {
  const double *finish = r->result->finish;
  for (int k = 0; k < GP_SIM_JOINS; k++) {
    gp_sim_join *join = &r->joins[k];
    if (join->last < 0 || !gp_sim_is_joined(r, k, r->schedule->actions[action].op)) continue;
    if (finish[action] > finish[join->last]) join->last = action;
    if (--join->left == 0)
      for (int32_t d = 0; d < r->schedule->device_count; d++) enqueue(r, d);
  }
}

/* ---- channels ------------------------------------------------------------------------------ */

/* Of what `sender` sends: one per edge, direction and sender's copy of the stage. */
static int32_t channel_of(const gp_sim *r, int32_t sender) {
  const gp_schedule *s = r->schedule;
  const gp_action *x = &s->actions[sender];
  bool back = x->op != GP_ACT_F && x->op != GP_ACT_SEND_F;
  bool second = s->placement[x->stage * s->copy_count] != gp_sim_device(r, sender);
  return (2 * x->stage + back) * s->copy_count + second;
}

/* There may be room in the channel of `sender` now. */
static void wake_sender(gp_sim *r, int32_t sender, int32_t channel) {
  int32_t device = gp_sim_device(r, sender);
  if (r->cursors[device].full == channel) enqueue(r, device);
}

/* From when on there is room for the value of `sender`, and who made it; below 0: not yet. Where a
 * channel holds nothing, the reader must be waiting. */
static gp_sim_slot room_for(const gp_sim *r, int32_t sender, int32_t to) {
  if (r->capacity < 0) return (gp_sim_slot){0, -1};
  if (r->capacity == 0) return (gp_sim_slot){r->messages[to].posted, to};
  int32_t channel = channel_of(r, sender);
  const gp_sim_queue *queue = &r->queues[channel];
  if (queue->sent < r->capacity) return (gp_sim_slot){0, -1};
  if (queue->sent - queue->received >= r->capacity) return (gp_sim_slot){-1, -1};
  return r->slots[(size_t)channel * (size_t)r->capacity + (size_t)(queue->sent % r->capacity)];
}

/* The reader `to` has come to where it needs the value of `sender`: it waits, or takes it. */
static void post(gp_sim *r, int32_t sender, int32_t to, double time) {
  if (r->capacity != 0 || r->messages[to].posted >= 0) return;
  r->messages[to].posted = time;
  wake_sender(r, sender, channel_of(r, sender));
}

static void take(gp_sim *r, int32_t sender, int32_t to, double time) {
  if (r->capacity < 1) return;
  int32_t channel = channel_of(r, sender);
  int32_t slot = r->queues[channel].received++ % r->capacity;
  r->slots[(size_t)channel * (size_t)r->capacity + (size_t)slot] = (gp_sim_slot){time, to};
  wake_sender(r, sender, channel);
}

/* Send what part c->part made to the action `to`. False: the channel is full. */
static bool put(gp_sim *r, gp_sim_cursor *c, int32_t to) {
  gp_sim_message *message = &r->messages[c->part];
  gp_sim_slot room = room_for(r, c->part, to);
  if (r->capacity >= 0) c->full = channel_of(r, c->part);
  if (room.time < 0) return false;
  if (r->capacity > 0) r->queues[c->full].sent++;
  message->freed_by = room.time > c->ready ? room.taker : -1;
  message->start = room.time > c->ready ? room.time : c->ready;
  message->arrival = message->start + gp_sim_delay(r, c->part);
  c->ready = r->costs->blocking ? message->arrival : message->start;
  return true;
}

/* ---- one device ---------------------------------------------------------------------------- */

/* Wait for the inputs of the actions at the cursor. False: one is not there yet. */
static bool receive(gp_sim *r, int32_t device) {
  gp_sim_cursor *c = &r->cursors[device];
  for (; c->part < c->end; c->part++) {
    int32_t from = gp_sim_source(r, c->part);
    if (from < 0) continue;
    double arrival = gp_sim_arrival(r, from, c->part);
    bool crosses =
        r->capacity >= 0 && gp_sim_device(r, from) != device && gp_sim_is_message(r, c->part);
    if (arrival < 0) {
      c->waits = from;
      if (crosses) post(r, from, c->part, c->ready);
      return false;
    }
    if (arrival > c->ready) c->ready = arrival;
    if (crosses) take(r, from, c->part, c->ready);
  }
  return true;
}

static void compute(gp_sim *r, gp_sim_cursor *c) {
  double sum = 0;
  for (int32_t a = c->next; a < c->end; a++) {
    const gp_action *x = &r->schedule->actions[a];
    sum += cost_of(r->costs, x->op, x->stage);
  }
  if (c->end - c->next > 1) sum *= r->costs->joined;
  for (int32_t a = c->next; a < c->end; a++) {
    r->result->begin[a] = c->ready;
    r->result->finish[a] = c->ready + sum;
  }
  c->ready += sum;
  for (int32_t a = c->next; a < c->end; a++) {
    wake_copy(r, a);
    count_joined(r, a);
  }
  c->part = c->next;
  c->ran = true;
}

/* Hand on what the actions at the cursor made. False: a channel is full. */
static bool send(gp_sim *r, gp_sim_cursor *c) {
  for (; c->part < c->end; c->part++) {
    int32_t to = gp_sim_reader(r, c->part);
    if (to < 0) continue;
    if (r->messages && !put(r, c, to)) return false;
    wake_reader(r, to, c->part);
  }
  return true;
}

/* Go on until the list ends or something is not there. */
static void advance(gp_sim *r, int32_t device) {
  const gp_schedule *s = r->schedule;
  gp_sim_cursor *c = &r->cursors[device];
  c->waits = c->full = -1;
  while (c->next < s->first[device + 1]) {
    if (!c->ran && !receive(r, device)) return;
    if (!c->ran) compute(r, c);
    if (!send(r, c)) return;
    c->full = -1;
    c->ran = false;
    c->next = c->part = c->end;
    if (c->next < s->first[device + 1]) c->end = gp_schedule_group_end(s, c->next);
  }
}

/* ---- all of them ----------------------------------------------------------------------------- */

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

/* Any of them stands for the last one before it is known. */
static void find_joins(gp_sim *r) {
  const gp_schedule *s = r->schedule;
  int32_t total = s->first[s->device_count];
  bool tied = false;
  for (int32_t a = 0; a < total; a++) {
    r->norms |= s->actions[a].op == GP_ACT_NORM;
    tied |= s->actions[a].op == GP_ACT_TIE;
  }
  for (int k = 0; k < GP_SIM_JOINS; k++) {
    r->joins[k] = (gp_sim_join){.last = -1};
    for (int32_t a = 0; (k != GP_SIM_SUMS || tied) && a < total; a++)
      if (gp_sim_is_joined(r, k, s->actions[a].op))
        r->joins[k] = (gp_sim_join){.last = a, .left = r->joins[k].left + 1};
  }
}

/* What the stages of a device prepare before its first action. */
static double prepared(const gp_sim *r, int32_t device) {
  const double *cost = r->costs->act[GP_ACT_P];
  double sum = 0;
  for (int32_t stage = 0; cost && stage < r->schedule->stage_count; stage++)
    if (gp_schedule_holds(r->schedule, device, stage)) sum += cost[stage];
  return sum;
}

static gp_status run_all(gp_sim *r) {
  const gp_schedule *s = r->schedule;
  find_joins(r);
  for (int32_t d = 0; d < s->device_count; d++) {
    gp_sim_cursor *c = &r->cursors[d];
    c->next = c->part = s->first[d];
    c->ready = prepared(r, d);
    if (c->next < s->first[d + 1]) c->end = gp_schedule_group_end(s, c->next);
    enqueue(r, d);
  }
  while (r->queue_count > 0) {
    int32_t device = r->queue[r->queue_first];
    r->queue_first = (r->queue_first + 1) % s->device_count;
    r->queue_count--;
    r->cursors[device].queued = false;
    advance(r, device);
  }
  /* one that cannot send says more than those that wait for it */
  for (int sending = 1; sending >= 0; sending--)
    for (int32_t d = 0; d < s->device_count; d++)
      if (r->cursors[d].next < s->first[d + 1] && r->cursors[d].ran >= sending)
        return fail_stuck(r, d);
  return GP_OK;
}

/* From first to last action, empty cells left out. */
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

/* ---- memory ---------------------------------------------------------------------------------- */

static gp_status allocate_channels(gp_sim *r, size_t total) {
  const gp_schedule *s = r->schedule;
  size_t channels = 2 * (size_t)s->stage_count * (size_t)s->copy_count, slots;
  if (r->capacity < 0 && !r->costs->blocking) return GP_OK;
  GP_TRY(gp_alloc_array(total, sizeof *r->messages, (void **)&r->messages));
  for (size_t a = 0; a < total; a++)
    r->messages[a] = (gp_sim_message){.arrival = -1, .posted = -1, .freed_by = -1};
  if (r->capacity < 1) return GP_OK;
  GP_TRY(gp_size_mul(channels, (size_t)r->capacity, &slots));
  GP_TRY(gp_alloc_array(channels, sizeof *r->queues, (void **)&r->queues));
  return gp_alloc_array(slots, sizeof *r->slots, (void **)&r->slots);
}

static gp_status allocate(gp_sim *r) {
  const gp_schedule *s = r->schedule;
  size_t total = (size_t)s->first[s->device_count], devices = (size_t)s->device_count;
  gp_simulation *result = r->result;
  GP_TRY(gp_alloc_array(total, sizeof(double), (void **)&result->begin));
  GP_TRY(gp_alloc_array(total, sizeof(double), (void **)&result->finish));
  for (size_t a = 0; a < total; a++) result->finish[a] = -1;
  GP_TRY(gp_alloc_array(devices, sizeof *result->loads, (void **)&result->loads));
  GP_TRY(gp_alloc_array(devices, sizeof *r->cursors, (void **)&r->cursors));
  GP_TRY(gp_alloc_array(devices, sizeof *r->queue, (void **)&r->queue));
  return allocate_channels(r, total);
}

static void free_run(gp_sim *r) {
  gp_free(r->forward);
  gp_free(r->backward);
  gp_free(r->again);
  gp_free(r->device);
  gp_free(r->weights);
  for (int i = 0; i < 2; i++) {
    gp_free(r->send[i]);
    gp_free(r->receive[i]);
  }
  gp_free(r->cursors);
  gp_free(r->queue);
  gp_free(r->messages);
  gp_free(r->queues);
  gp_free(r->slots);
}

static gp_status simulate(gp_sim *r) {
  GP_TRY(check_costs(r->schedule, r->costs));
  GP_TRY(allocate(r));
  GP_TRY(gp_sim_index(r));
  GP_TRY(run_all(r));
  for (int32_t d = 0; d < r->schedule->device_count; d++) sum_up(r, d);
  GP_TRY(gp_sim_memory(r));
  return gp_sim_path(r);
}

/* A channel with room for every micro-batch is never full. */
gp_status gp_simulation_new(const gp_schedule *schedule, const gp_costs *costs,
                            gp_simulation **simulation) {
  gp_simulation *made;
  GP_TRY(gp_alloc(sizeof *made, (void **)&made));
  made->schedule = schedule;
  gp_sim run = {.schedule = schedule, .costs = costs, .result = made};
  run.capacity = costs->capacity < schedule->micro_count ? costs->capacity : -1;
  gp_status status = simulate(&run);
  free_run(&run);
  if (status) return gp_simulation_free(made), status;
  *simulation = made;
  return GP_OK;
}

/* Also of one that was run half. */
void gp_simulation_free(gp_simulation *simulation) {
  if (!simulation) return;
  gp_free(simulation->begin);
  gp_free(simulation->finish);
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
