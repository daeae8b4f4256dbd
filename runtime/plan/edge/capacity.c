/* plan/edge/capacity.c - how many slots an edge needs so that its maker never waits for one.
 *
 * The i-th value may take the slot of the (i - K)-th if every party is known to be through with
 * that one before the maker starts: known from the order of each device's list and from the
 * messages between devices. Two numbers enclose how much of a party's list is over by then. At
 * least what its messages to the maker say is over; at most what has run when the maker goes ahead
 * as far as it can. Where the two differ, a run in which the party's device comes last tells the
 * exact number. So most edges cost no more than the values that they carry.
 *
 * The two copies of a stage have slots of their own. In one memory some of these may be the same,
 * where by the same two numbers one copy is through with a slot before the other begins.
 *
 * What a maker knows it was told by values, and a credit is sent before the value that tells of it,
 * on the same way. So the number holds for ways of any latency: no maker waits for a credit.
 *
 * In plans without backward passes nothing ever comes back to the maker, so it does wait for free
 * slots there, of which it has a few (forward.c), and between processes some more (wire.c).
 */
#include "base/memory.h"
#include "plan/channels.h"
#include "plan/edge/flow.h"
#include "plan/edge/overlap.h"

/* A stage on one of its devices that makes or reads the values of an edge. Numbers are counts of
 * actions of its device, per micro-batch. */
typedef struct party {
  int32_t stage, device;
  int32_t *low, *high; /* at least and at most so many are over when the maker makes the value */
  int32_t *through;    /* so many are over when the party is through with it; 0: never used */
} party;

/* The parties of an edge, its maker first. */
typedef struct parties {
  party *list; /* NULL: the plan does not ask for the edge's slots */
  int32_t count;
} parties;

typedef struct sizer {
  gp_plan *plan;
  gp_flow flow;
  parties *edges;
  int32_t *memory; /* of all parties */
  int32_t last;    /* the device that comes last in the run at hand; -1: none was put there */
  bool reversed;   /* the run with late stages first was made */
  int32_t *order;  /* devices in the order of the run at hand */
  int32_t *told;   /* per device: actions that the maker at hand knows to be over */
  int32_t *marks;  /* per edge: see gp_edge_lives_find */
  int32_t *sized;  /* per stage: 1 if it is a party */
  int32_t *micros; /* of the channel at hand */
} sizer;

/* ---- parties ------------------------------------------------------------------------------- */

static int32_t party_count(const gp_plan *plan, int32_t edge) {
  return (1 + gp_plan_edge(plan, edge)->to_count) * plan->copy_count;
}

/* When one device is planned alone, only the edges that it touches are counted. */
static bool is_asked(const gp_plan *plan, int32_t edge) {
  const gp_edge *e = gp_plan_edge(plan, edge);
  for (int32_t k = 0; k <= e->to_count; k++)
    for (int32_t copy = 0; copy < plan->copy_count; copy++)
      if (gp_plan_has(plan,
                      plan->placement[gp_plan_holder(plan, k ? e->to[k - 1] : e->from, copy)]))
        return true;
  return false;
}

static gp_status add_parties(sizer *s, int32_t edge, int32_t **memory) {
  const gp_plan *plan = s->plan;
  const gp_edge *e = gp_plan_edge(plan, edge);
  parties *own = &s->edges[edge];
  int32_t micros = plan->micro_count;
  GP_TRY(gp_alloc_array((size_t)party_count(plan, edge), sizeof(party), (void **)&own->list));
  for (int32_t k = 0; k <= e->to_count; k++)
    for (int32_t copy = 0; copy < plan->copy_count; copy++, *memory += 3 * (size_t)micros) {
      party *p = &own->list[own->count++];
      p->stage = k ? e->to[k - 1] : e->from;
      p->device = plan->placement[gp_plan_holder(plan, p->stage, copy)];
      p->low = *memory;
      p->high = p->low + micros;
      p->through = p->high + micros;
      s->sized[p->stage] = 1;
      for (int32_t i = 0; i < micros; i++) p->high[i] = INT32_MAX;
    }
  return GP_OK;
}

static gp_status make_room(sizer *s) {
  gp_plan *plan = s->plan;
  size_t cells = 0, devices = (size_t)plan->device_count, edges = (size_t)plan->edge_count;
  size_t lists = 2 * devices + edges + (size_t)plan->stage_count + (size_t)plan->micro_count;
  for (int32_t e = 0; e < plan->edge_count; e++)
    if (is_asked(plan, e)) cells += (size_t)party_count(plan, e);
  GP_TRY(gp_size_mul(cells, 3 * (size_t)plan->micro_count, &cells));
  GP_TRY(gp_alloc_array(edges + 1, sizeof(parties), (void **)&s->edges));
  GP_TRY(gp_alloc_array(cells + 1, sizeof(int32_t), (void **)&s->memory));
  GP_TRY(gp_alloc_array(lists, sizeof(int32_t), (void **)&s->order));
  s->told = s->order + devices;
  s->marks = s->told + devices;
  s->sized = s->marks + edges;
  s->micros = s->sized + plan->stage_count;
  int32_t *memory = s->memory;
  for (int32_t e = 0; e < plan->edge_count; e++)
    if (is_asked(plan, e)) GP_TRY(add_parties(s, e, &memory));
  return GP_OK;
}

static void free_room(sizer *s) {
  for (int32_t e = 0; s->edges && e < s->plan->edge_count; e++) gp_free(s->edges[e].list);
  gp_free(s->edges);
  gp_free(s->memory);
  gp_free(s->order);
  gp_flow_free(&s->flow);
}

/* ---- last uses ----------------------------------------------------------------------------- */

/* A party is through with a value when the value's life on its stage ends. */
static void note_ends(sizer *s, int32_t device, const gp_edge_lives *lives) {
  for (int32_t i = 0; i < lives->lifetimes.count; i++) {
    const gp_lifetime *life = &lives->lifetimes.list[i];
    const gp_buffer *buffer = &lives->list.buffers[life->buffer];
    const parties *own = &s->edges[buffer->edge];
    for (int32_t k = 0; k < own->count; k++)
      if (own->list[k].stage == buffer->stage && own->list[k].device == device)
        own->list[k].through[life->instance] = life->end + 1;
  }
}

static gp_status find_last_uses(sizer *s) {
  const gp_plan *plan = s->plan;
  const gp_runner *lists = &s->flow.runner;
  for (int32_t h = 0; h < plan->stage_count * plan->copy_count; h++) {
    const int32_t stage = h / plan->copy_count, device = plan->placement[h];
    const int32_t begin = lists->first[device], count = lists->first[device + 1] - begin;
    gp_edge_lives lives;
    if (!s->sized[stage]) continue;
    GP_TRY(gp_edge_lives_find(plan, stage, &lists->actions[begin], count, s->marks, &lives));
    note_ends(s, device, &lives);
    gp_edge_lives_free(&lives);
  }
  return GP_OK;
}

/* ---- at most: runs ------------------------------------------------------------------------- */

/* No more is over for certain than has run in some possible run. In a run with a device last, no
 * more of its list has run than must have: there the two numbers meet. */
static void note_made(void *context, const gp_flow_use *use) {
  sizer *s = context;
  const parties *own = &s->edges[use->edge];
  for (int32_t k = 0; k < own->count; k++) {
    party *p = &own->list[k];
    int32_t ran = gp_flow_ran(&s->flow, p->device);
    if (ran < p->high[use->micro]) p->high[use->micro] = ran;
    if (p->device == s->last) p->low[use->micro] = p->high[use->micro] = ran;
  }
}

static void run(sizer *s, int32_t last) {
  gp_flow_watch watch = {.context = s, .makes = note_made};
  s->last = last;
  gp_flow_run(&s->flow, &watch, s->order);
}

/* Run early stages as far ahead of the readers of their values as they can get; or, reversed, late
 * stages ahead of the readers of their gradients. */
static void run_ahead(sizer *s, bool reversed) {
  int32_t devices = s->plan->device_count;
  for (int32_t d = 0; d < devices; d++) s->order[d] = reversed ? devices - 1 - d : d;
  s->reversed = reversed;
  run(s, -1);
}

/* Find out more about a device. The first time, the run with late stages first tells more about
 * many devices at once. */
static void run_again(sizer *s, int32_t device) {
  int32_t n = 0;
  if (!s->reversed) {
    run_ahead(s, true);
    return;
  }
  for (int32_t d = 0; d < s->plan->device_count; d++)
    if (d != device) s->order[n++] = d;
  s->order[n] = device;
  run(s, device);
}

/* ---- at least: messages -------------------------------------------------------------------- */

/* Before the action runs, the actions that make what it reads are over. */
static void hear(sizer *s, const gp_action *a) {
  const gp_edge_list *touched = gp_edge_touched(s->plan, a);
  for (int32_t i = 0; i < touched->count; i++) {
    int32_t from, edge = touched->edges[i];
    if (s->flow.from[edge] == a->stage) continue;
    int32_t over = gp_flow_maker(&s->flow, edge, a->micro, &from) + 1;
    if (over > s->told[from]) s->told[from] = over;
  }
}

/* If the action makes values, what its device has heard so far is over by then. */
static void tell(sizer *s, const gp_action *a, int32_t device, int32_t position) {
  const gp_edge_list *touched = gp_edge_touched(s->plan, a);
  for (int32_t i = 0; i < touched->count; i++) {
    int32_t maker, edge = touched->edges[i];
    const parties *own = &s->edges[edge];
    if (s->flow.from[edge] != a->stage ||
        gp_flow_maker(&s->flow, edge, a->micro, &maker) != position || maker != device)
      continue;
    for (int32_t k = 0; k < own->count; k++)
      own->list[k].low[a->micro] = s->told[own->list[k].device];
  }
}

/* Does the device make values of an edge whose slots are counted? */
static bool makes_asked(const sizer *s, int32_t device) {
  for (int32_t e = 0; e < s->plan->edge_count; e++)
    for (int32_t copy = 0; s->edges[e].list && copy < s->plan->copy_count; copy++)
      if (gp_plan_maker(s->plan, e, copy) == device) return true;
  return false;
}

static void hear_all(sizer *s) {
  const gp_runner *lists = &s->flow.runner;
  for (int32_t d = 0; d < s->plan->device_count; d++) {
    const int32_t begin = lists->first[d];
    if (!makes_asked(s, d)) continue;
    for (int32_t k = 0; k < s->plan->device_count; k++) s->told[k] = 0;
    for (int32_t a = begin; a < lists->first[d + 1]; a++) {
      s->told[d] = a - begin; /* its own list up to here */
      hear(s, &lists->actions[a]);
      tell(s, &lists->actions[a], d, a - begin);
    }
  }
}

/* ---- slots --------------------------------------------------------------------------------- */

/* Are all parties known to be through with the value of one micro-batch when that of another is
 * made? Returns 0 or 1, or GP_UNKNOWN and the device that it depends on. */
static int is_over(const sizer *s, int32_t edge, int32_t before, int32_t micro, int32_t *device) {
  const parties *own = &s->edges[edge];
  int known = 1;
  if (!s->flow.made[gp_flow_cell(&s->flow, edge, micro)]) return 1;
  for (int32_t k = 0; k < own->count; k++) {
    const party *p = &own->list[k];
    if (p->through[before] <= p->low[micro]) continue;
    if (p->through[before] > p->high[micro]) return 0;
    known = GP_UNKNOWN;
    *device = p->device;
  }
  return known;
}

/* With this many slots, is the earlier user of each slot known to be through with it? Returns the
 * same. Of the channel's `count` micro-batches the i-th takes slot i mod slots. */
static int enough(const sizer *s, int32_t edge, int32_t count, int32_t slots, int32_t *device) {
  int known = 1;
  for (int32_t turn = slots; turn < count; turn++) {
    const int over = is_over(s, edge, s->micros[turn - slots], s->micros[turn], device);
    if (!over) return 0;
    if (over == GP_UNKNOWN) known = GP_UNKNOWN;
  }
  return known;
}

/* The smallest number that is enough, as an edge takes slots times bytes of memory. */
static int32_t slots_of(sizer *s, int32_t channel) {
  const int32_t edge = gp_plan_channel_edge(s->plan, channel);
  const int32_t count = gp_plan_channel_micros(s->plan, channel, s->micros);
  int32_t slots = count > 0, device = -1;
  while (slots < count) {
    int known = enough(s, edge, count, slots, &device);
    if (known == GP_UNKNOWN)
      run_again(s, device);
    else if (known)
      break;
    else
      slots++;
  }
  return slots;
}

/* ---- slots of two copies --------------------------------------------------------------------- */

static int ask(const void *context, int32_t edge, int32_t before, int32_t micro, int32_t *device) {
  return is_over(context, edge, before, micro, device);
}

static void learn(void *context, int32_t device) { run_again(context, device); }

/* What is known of a value's last use is known of queues only if these work at once. */
static bool all_on_host(const sizer *s, int32_t edge) {
  const parties *own = &s->edges[edge];
  for (int32_t k = 0; k < own->count; k++)
    if (!gp_plan_on_host(s->plan, own->list[k].device)) return false;
  return true;
}

/* Let the channel of a first copy share slots with the one of the second, if both lie in one
 * memory. Values may get through one ring before the other begins, so both ends are tried. */
static void overlap(sizer *s, int32_t channel) {
  gp_plan *plan = s->plan;
  const int32_t edge = gp_plan_channel_edge(plan, channel), twin = channel + plan->edge_count;
  if (!all_on_host(s, edge) || !gp_plan_shares(plan, gp_plan_channel_maker(plan, channel),
                                               gp_plan_channel_maker(plan, twin)))
    return;
  gp_channel *first = &plan->channels[channel];
  const gp_overlap_asker asker = {s, edge, ask, learn};
  gp_ring a = {s->micros, gp_plan_channel_micros(plan, channel, s->micros), first->slots};
  gp_ring b = {s->micros + a.count, 0, plan->channels[twin].slots};
  b.count = gp_plan_channel_micros(plan, twin, s->micros + a.count);
  const int32_t begin = gp_rings_overlap(&asker, &a, &b), end = gp_rings_overlap(&asker, &b, &a);
  first->overlap = begin >= end ? begin : -end;
}

static void overlap_all(sizer *s) {
  const gp_plan *plan = s->plan;
  for (int32_t c = 0; c < gp_plan_value_channels(plan); c++)
    if (gp_plan_channel_copy(plan, c) % 2 == 0 && s->edges[gp_plan_channel_edge(plan, c)].list)
      overlap(s, c);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static gp_status size_all(sizer *s) {
  gp_plan *plan = s->plan;
  GP_TRY(make_room(s));
  GP_TRY(find_last_uses(s));
  run_ahead(s, false);
  hear_all(s);
  for (int32_t c = 0; c < gp_plan_value_channels(plan); c++)
    if (s->edges[gp_plan_channel_edge(plan, c)].list) plan->channels[c].slots = slots_of(s, c);
  if (gp_plan_twins(plan) > 1) overlap_all(s);
  return GP_OK;
}

/* All edges have the same number of slots there, and those between processes some more. */
static gp_status size_forward(sizer *s) {
  gp_plan *plan = s->plan;
  int32_t slots = 0, more = 0;
  GP_TRY(gp_flow_forward_slots(&s->flow, &slots));
  for (int32_t c = 0; c < gp_plan_value_channels(plan); c++) {
    if (!is_asked(plan, gp_plan_channel_edge(plan, c))) continue;
    const int32_t most = gp_plan_channel_micros(plan, c, NULL);
    GP_TRY(gp_plan_wire_slots(plan, c, &more));
    plan->channels[c].slots = slots + more < most ? slots + more : most;
  }
  return GP_OK;
}

gp_status gp_plan_size_channels(gp_plan *plan, const gp_lowered *lowered) {
  sizer s = {.plan = plan};
  GP_TRY(gp_flow_new(plan, lowered, &s.flow));
  gp_status status = gp_plan_trains(plan->kind) ? size_all(&s) : size_forward(&s);
  free_room(&s);
  for (int32_t c = 0; c < gp_plan_value_channels(plan); c++)
    plan->channels[c].parties = 1 + gp_plan_edge(plan, gp_plan_channel_edge(plan, c))->to_count;
  return status;
}
