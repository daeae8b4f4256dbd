/* plan/edge/capacity.c - how many slots an edge needs so that its maker never waits for one.
 *
 * Slot i mod K may be used again for the i-th value when everybody's last use of the (i - K)-th is
 * known to be over before the maker starts: known from the order of each device and from the
 * messages between them.
 * How much of a device's list is over is bounded from below by what its own messages to the maker
 * say, and from above by runs in which the maker goes ahead as far as it can; where the two differ,
 * a run in which that device comes last tells exactly. So most edges cost what they carry.
 * Where only forward runs nothing ever flows back, so a small fixed number of slots is taken and
 * the maker waits for a free one.
 */
#include "base/memory.h"
#include "plan/edge/flow.h"

enum { FORWARD_ONLY_SLOTS = 3, UNKNOWN = -1 };

/* Where a stage (one of its copies) is when a value of an edge is made, and when it is through with
 * it: per micro-batch, in actions of its device. */
typedef struct party {
  int32_t stage, device;
  int32_t *low, *high; /* so many are over for certain, or at most, when the value is made */
  int32_t *through;    /* so many are over when its last use is; 0: it does not use it */
} party;

/* An edge whose slots are counted: its maker first. */
typedef struct parties {
  party *list; /* NULL: nobody asks for the edge */
  int32_t count;
} parties;

typedef struct sizer {
  gp_plan *plan;
  gp_flow flow;
  parties *edges;
  int32_t *memory; /* of all parties */
  int32_t last;    /* device that came last in an exact run; -1: another order */
  bool reversed;   /* the run of late stages first was made */
  int32_t *order, *told;
} sizer;

/* ---- parties ------------------------------------------------------------------------------- */

static int32_t party_count(const gp_plan *plan, int32_t edge) {
  return (1 + gp_plan_edge(plan, edge)->to_count) * plan->copy_count;
}

/* Of a share, only its own device's edges are counted. */
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
      for (int32_t i = 0; i < micros; i++) p->high[i] = INT32_MAX;
    }
  return GP_OK;
}

static gp_status make_room(sizer *s) {
  gp_plan *plan = s->plan;
  size_t cells = 0, devices = (size_t)plan->device_count;
  int32_t *memory;
  for (int32_t e = 0; e < plan->edge_count; e++)
    if (is_asked(plan, e)) cells += (size_t)party_count(plan, e);
  GP_TRY(gp_size_mul(cells, 3 * (size_t)plan->micro_count, &cells));
  GP_TRY(gp_alloc_array((size_t)plan->edge_count + 1, sizeof(parties), (void **)&s->edges));
  GP_TRY(gp_alloc_array(cells + 1, sizeof(int32_t), (void **)&s->memory));
  GP_TRY(gp_alloc_array(2 * devices, sizeof(int32_t), (void **)&s->order));
  s->told = s->order + devices;
  memory = s->memory;
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

/* ---- runs ---------------------------------------------------------------------------------- */

/* In any run no more is over for certain than has run; with a device last, no more of it has run
 * than must. */
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

static void note_use(void *context, const gp_flow_use *use) {
  sizer *s = context;
  const parties *own = &s->edges[use->edge];
  for (int32_t k = 0; k < own->count; k++)
    if (own->list[k].stage == use->stage && own->list[k].device == use->device)
      own->list[k].through[use->micro] = use->position + 1;
}

static bool run(sizer *s, int32_t last) {
  gp_flow_watch watch = {.context = s, .makes = note_made, .uses = note_use};
  s->last = last;
  return gp_flow_run(&s->flow, &watch, s->order);
}

/* Stages early in the model run ahead of the readers of their values as far as they can; or late
 * ones, of those of their gradients. */
static void run_ahead(sizer *s, bool reversed) {
  int32_t devices = s->plan->device_count;
  for (int32_t d = 0; d < devices; d++) s->order[d] = reversed ? devices - 1 - d : d;
  s->reversed = reversed;
  run(s, -1);
}

/* Find out more about a device: at first about many. */
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

/* ---- what messages say --------------------------------------------------------------------- */

/* Before the action runs, the makers of what it reads are over. */
static void hear(sizer *s, const gp_action *a) {
  const gp_edge_list *touched = gp_flow_touched(s->plan, a);
  for (int32_t i = 0; i < touched->count; i++) {
    int32_t from, edge = touched->edges[i];
    if (gp_plan_edge(s->plan, edge)->from == a->stage) continue;
    int32_t over = gp_flow_maker(&s->flow, edge, a->micro, &from) + 1;
    if (over > s->told[from]) s->told[from] = over;
  }
}

static void tell(sizer *s, const gp_action *a, int32_t device, int32_t position) {
  const gp_edge_list *touched = gp_flow_touched(s->plan, a);
  for (int32_t i = 0; i < touched->count; i++) {
    int32_t maker, edge = touched->edges[i];
    const parties *own = &s->edges[edge];
    if (gp_plan_edge(s->plan, edge)->from != a->stage ||
        gp_flow_maker(&s->flow, edge, a->micro, &maker) != position || maker != device)
      continue;
    for (int32_t k = 0; k < own->count; k++)
      own->list[k].low[a->micro] = s->told[own->list[k].device];
  }
}

/* Does the device make values of an edge that is asked for? */
static bool makes_asked(const sizer *s, int32_t device) {
  for (int32_t e = 0; e < s->plan->edge_count; e++)
    for (int32_t copy = 0; s->edges[e].list && copy < s->plan->copy_count; copy++)
      if (gp_plan_maker(s->plan, e, copy) == device) return true;
  return false;
}

static void hear_all(sizer *s) {
  const gp_runner *l = &s->flow.runner;
  for (int32_t d = 0; d < s->plan->device_count; d++) {
    if (!makes_asked(s, d)) continue;
    for (int32_t k = 0; k < s->plan->device_count; k++) s->told[k] = 0;
    for (int32_t a = l->first[d]; a < l->first[d + 1]; a++) {
      s->told[d] = a - l->first[d]; /* its own list up to here */
      hear(s, &l->actions[a]);
      tell(s, &l->actions[a], d, a - l->first[d]);
    }
  }
}

/* ---- slots --------------------------------------------------------------------------------- */

static int64_t micro_at(const gp_plan *plan, int32_t edge, int64_t turn) {
  return plan->shapes[1].own_edges ? gp_plan_micro_at(plan, edge, turn) : turn;
}

/* With this many slots, is the earlier user of each slot known to be through with it? 0 or 1, or
 * UNKNOWN and the device that it depends on. The i-th micro-batch of an edge takes slot i mod K,
 * the (i div K)-th time. */
static int enough(const sizer *s, int32_t edge, int32_t slots, int32_t *device) {
  const parties *own = &s->edges[edge];
  int known = 1;
  for (int64_t turn = slots;; turn++) {
    int64_t micro = micro_at(s->plan, edge, turn);
    if (micro >= s->plan->micro_count) return known;
    int64_t before = micro_at(s->plan, edge, turn - slots);
    if (!s->flow.made[gp_flow_cell(&s->flow, edge, (int32_t)micro)]) continue;
    for (int32_t k = 0; k < own->count; k++) {
      const party *p = &own->list[k];
      if (p->through[before] <= p->low[micro]) continue;
      if (p->through[before] > p->high[micro]) return 0;
      known = UNKNOWN;
      *device = p->device;
    }
  }
}

/* The smallest number that is enough: memory of an edge is slots times bytes. */
static int32_t slots_of(sizer *s, int32_t edge) {
  int32_t slots = 1, device = -1;
  while (slots < s->plan->micro_count) {
    int known = enough(s, edge, slots, &device);
    if (known == UNKNOWN)
      run_again(s, device);
    else if (known)
      break;
    else
      slots++;
  }
  return slots;
}

static gp_status size_all(sizer *s) {
  gp_plan *plan = s->plan;
  GP_TRY(make_room(s));
  run_ahead(s, false);
  hear_all(s);
  for (int32_t e = 0; e < plan->edge_count; e++)
    if (s->edges[e].list) plan->channels[e].slots = slots_of(s, e);
  return GP_OK;
}

/* ---- forward only -------------------------------------------------------------------------- */

/* So many slots for each edge, and last uses so far. */
typedef struct trial {
  const gp_plan *plan;
  int32_t slots;
  int32_t *used; /* per edge and slot */
} trial;

static int32_t *slot_at(const trial *t, const gp_flow_use *use, int64_t *round) {
  int64_t turn = gp_plan_turn(t->plan, use->edge, use->micro);
  *round = turn / t->slots;
  return &t->used[(size_t)use->edge * (size_t)t->slots + (size_t)(turn % t->slots)];
}

/* A pass forward touches each value once per stage, so every use is a last one. */
static bool is_free(void *context, const gp_flow_use *use) {
  const trial *t = context;
  int64_t round, uses = 1 + gp_plan_edge(t->plan, use->edge)->to_count;
  const int32_t *used = slot_at(t, use, &round);
  return *used >= round * uses;
}

static void count_use(void *context, const gp_flow_use *use) {
  int64_t round;
  ++*slot_at(context, use, &round);
}

/* Makers wait for free slots here: does everything still run to its end? */
static gp_status flows(sizer *s, int32_t slots, bool *flows) {
  trial t = {.plan = s->plan, .slots = slots};
  gp_flow_watch watch = {.context = &t, .may_make = is_free, .uses = count_use};
  size_t states;
  GP_TRY(gp_size_mul((size_t)s->plan->edge_count, (size_t)slots, &states));
  GP_TRY(gp_alloc_array(states + 1, sizeof(int32_t), (void **)&t.used));
  *flows = gp_flow_run(&s->flow, &watch, NULL);
  gp_free(t.used);
  return GP_OK;
}

/* The smallest number, from a few on, that lets everything run; one per micro-batch always does. */
static gp_status size_forward(sizer *s) {
  gp_plan *plan = s->plan;
  int32_t slots = FORWARD_ONLY_SLOTS, most = plan->micro_count;
  bool enough = false;
  for (; slots < most && !enough; slots += !enough) GP_TRY(flows(s, slots, &enough));
  if (slots > most) slots = most;
  for (int32_t e = 0; e < plan->edge_count; e++)
    if (is_asked(plan, e)) plan->channels[e].slots = slots;
  return GP_OK;
}

gp_status gp_plan_size_channels(gp_plan *plan, const gp_lowered *lowered) {
  sizer s = {.plan = plan};
  GP_TRY(gp_flow_new(plan, lowered, &s.flow));
  gp_status status = gp_plan_trains(plan->kind) ? size_all(&s) : size_forward(&s);
  free_room(&s);
  for (int32_t e = 0; e < plan->edge_count; e++)
    plan->channels[e].parties = 1 + gp_plan_edge(plan, e)->to_count;
  return status;
}
