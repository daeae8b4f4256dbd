/* tests/c/schedule/simulate_random_test.c - the simulator compared with a slow, simple oracle on
 * random schedules.
 *
 * The oracle makes an event of every receive, computation and send, lists what each event waits
 * for, and sweeps over all of them until nothing changes. It has no queue and no order. */
#include "schedule/simulate/simulate.h"
#include "test.h"

enum { STAGES = 5, MICROS = 5, DEVICES = 4, ACTIONS = 3 * STAGES * MICROS };

static uint32_t state = 1;

static int draw(int below) {
  state = state * 1664525 + 1013904223;
  return (int)((state >> 8) % (uint32_t)below);
}

/* ---- random schedules ------------------------------------------------------------------------ */

/* Lists of actions that can run: they are made by running them in a random order. */
typedef struct grid {
  int stages, micros, devices, copies;
  int32_t placement[2 * STAGES];
  int count[DEVICES];
  gp_action rows[DEVICES][ACTIONS];
  bool split[STAGES][MICROS]; /* I and W for B */
  bool f[STAGES][MICROS], i[STAGES][MICROS], w[STAGES][MICROS];
} grid;

static int device_of(const grid *g, int stage, int micro) {
  return g->placement[stage * g->copies + micro % g->copies];
}

/* Returns the op that (stage, micro-batch) can do next, or GP_ACT_IDLE. */
static gp_act next_op(const grid *g, int s, int m) {
  if (!g->f[s][m]) return s == 0 || g->f[s - 1][m] ? GP_ACT_F : GP_ACT_IDLE;
  bool above = s == g->stages - 1 || g->i[s + 1][m];
  if (!g->i[s][m]) return !above ? GP_ACT_IDLE : g->split[s][m] ? GP_ACT_I : GP_ACT_B;
  return g->w[s][m] ? GP_ACT_IDLE : GP_ACT_W;
}

static void mark(grid *g, gp_act op, int s, int m) {
  if (op == GP_ACT_F) g->f[s][m] = true;
  if (op == GP_ACT_I || op == GP_ACT_B) g->i[s][m] = true;
  if (op == GP_ACT_W || op == GP_ACT_B) g->w[s][m] = true;
}

/* Appends what a random cell can do; sometimes joins it with what another cell of the device can
 * do. */
static bool grow(grid *g) {
  int s = draw(g->stages), m = draw(g->micros), d = device_of(g, s, m);
  gp_act op = next_op(g, s, m);
  if (op == GP_ACT_IDLE) return false;
  int s2 = draw(g->stages), m2 = draw(g->micros);
  gp_act op2 = next_op(g, s2, m2);
  bool joined = draw(4) == 0 && op2 != GP_ACT_IDLE && (s != s2 || m != m2) &&
                device_of(g, s2, m2) == d && op != op2 && (op == GP_ACT_F || op2 == GP_ACT_F);
  g->rows[d][g->count[d]++] = (gp_action){(uint8_t)op, joined, s, m, -1};
  if (joined) g->rows[d][g->count[d]++] = (gp_action){(uint8_t)op2, false, s2, m2, -1};
  mark(g, op, s, m);
  if (joined) mark(g, op2, s2, m2);
  return true;
}

static grid random_grid(void) {
  grid g = {.stages = 1 + draw(STAGES), .micros = 1 + draw(MICROS), .copies = 1 + draw(2)};
  g.devices = 2 + draw(DEVICES - 1);
  for (int i = 0; i < g.stages; i++) {
    int32_t *at = &g.placement[i * g.copies];
    at[0] = draw(g.devices);
    if (g.copies == 2) at[1] = (at[0] + 1 + draw(g.devices - 1)) % g.devices;
  }
  for (int s = 0; s < g.stages; s++)
    for (int m = 0; m < g.micros; m++) g.split[s][m] = draw(2);
  for (int misses = 0; misses < 1000;) misses = grow(&g) ? 0 : misses + 1;
  return g;
}

static gp_schedule *schedule_of_grid(const grid *g) {
  gp_rows *rows = NULL;
  gp_schedule *s = NULL;
  CHECK_STATUS(gp_rows_new(g->devices, &rows), GP_OK);
  for (int d = 0; d < g->devices; d++)
    for (int a = 0; a < g->count[d]; a++) CHECK(gp_rows_add(rows, d, &g->rows[d][a]) == GP_OK);
  gp_schedule_spec spec = {rows, g->stages, g->copies, g->placement, 0, 0};
  CHECK_STATUS(gp_schedule_new(&spec, &s, NULL), GP_OK);
  gp_rows_free(rows);
  return s;
}

/* ---- the oracle ------------------------------------------------------------------------------ */

/* An event happens once, at the latest of the times of some others, each plus a delay. */
typedef struct event {
  struct event *after[4];
  double delay[4];
  int count;
  double time; /* below 0: not known */
} event;

/* The events of an action: its input is there, it is computed, it is sent, the device can go on,
 * its value enters the link. */
typedef struct story {
  event received, computed, sent, left, entered;
  int device, channel; /* channel: what it sends into, or -1 */
  int source, reader;  /* index of an action on another device, or -1 */
} story;

typedef struct oracle {
  const grid *g;
  const gp_costs *costs;
  const gp_action *actions[DEVICES * ACTIONS];
  story at[DEVICES * ACTIONS];
  int total;
} oracle;

static void wait_for(event *e, event *other, double delay) {
  if (!other) return;
  e->after[e->count] = other;
  e->delay[e->count++] = delay;
}

static int find(const oracle *o, bool back, int stage, int micro) {
  for (int a = 0; a < o->total; a++) {
    const gp_action *x = o->actions[a];
    bool is_back = x->op == GP_ACT_B || x->op == GP_ACT_I;
    if (x->stage == stage && x->micro == micro && (back ? is_back : x->op == GP_ACT_F)) return a;
  }
  return -1;
}

static void connect(oracle *o, int a) {
  const gp_action *x = o->actions[a];
  story *s = &o->at[a];
  bool back = x->op != GP_ACT_F;
  s->source = s->reader = s->channel = -1;
  if (x->op == GP_ACT_W) return;
  int step = back ? 1 : -1, from = find(o, back, x->stage + step, x->micro);
  int to = find(o, back, x->stage - step, x->micro);
  if (from >= 0 && o->at[from].device != s->device) s->source = from;
  if (to >= 0 && o->at[to].device != s->device) s->reader = to;
  if (s->reader >= 0) s->channel = (2 * x->stage + back) * 2 + x->micro % o->g->copies;
}

static double oracle_cost(const gp_costs *c, const gp_action *x) {
  if (x->op == GP_ACT_B) return c->act[GP_ACT_I][x->stage] + c->act[GP_ACT_W][x->stage];
  return c->act[x->op][x->stage];
}

static double oracle_hop(const gp_costs *c, const gp_action *x) {
  return x->op == GP_ACT_F ? c->hop[0][x->stage] : c->hop[1][x->stage - 1];
}

static double oracle_busy(const gp_costs *c, const gp_action *x) {
  if (!c->busy[0]) return 0;
  return x->op == GP_ACT_F ? c->busy[0][x->stage] : c->busy[1][x->stage - 1];
}

/* Lets values of one device enter its link in the order of its list. */
static void share_link(oracle *o, int a) {
  int before = a - 1;
  wait_for(&o->at[a].entered, &o->at[a].sent, 0);
  while (before >= 0 && (o->at[before].device != o->at[a].device || o->at[before].reader < 0))
    before--;
  if (before >= 0 && o->costs->busy[0])
    wait_for(&o->at[a].entered, &o->at[before].entered, oracle_busy(o->costs, o->actions[before]));
}

/* Returns the nth action (from 0) that sends into a channel, in the order of the sender's or the
 * reader's list. */
static int nth(const oracle *o, int channel, int n, bool by_reader) {
  for (int a = 0; a < o->total; a++) {
    int sender = by_reader ? o->at[a].source : a;
    if (sender >= 0 && o->at[sender].channel == channel && n-- == 0) return a;
  }
  return -1;
}

static int rank_in_channel(const oracle *o, int a) {
  int rank = 0;
  for (int b = 0; b < a; b++) rank += o->at[b].channel == o->at[a].channel;
  return rank;
}

/* Lets `a` send only when the channel has room. */
static void wait_for_room(oracle *o, int a, event *const *before_receipt) {
  int capacity = o->costs->capacity;
  story *s = &o->at[a];
  if (capacity < 0) return;
  if (capacity == 0) {
    wait_for(&s->sent, before_receipt[s->reader], 0);
    return;
  }
  int rank = rank_in_channel(o, a) - capacity;
  if (rank >= 0) wait_for(&s->sent, &o->at[nth(o, s->channel, rank, true)].received, 0);
}

/* Links one group of joined actions: all receive in turn, compute, send in turn. */
static event *link_group(oracle *o, int first, int end, event *before, event **before_receipt) {
  double cost = 0;
  for (int a = first; a < end; a++) {
    story *s = &o->at[a];
    before_receipt[a] = before;
    wait_for(&s->received, before, 0);
    if (s->source >= 0)
      wait_for(&s->received, &o->at[s->source].entered,
               oracle_hop(o->costs, o->actions[s->source]));
    before = &s->received;
    cost += oracle_cost(o->costs, o->actions[a]) * o->costs->noise->slow[s->device];
  }
  if (end - first > 1) cost *= o->costs->joined;
  for (int a = first; a < end; a++) wait_for(&o->at[a].computed, &o->at[end - 1].received, cost);
  before = &o->at[first].computed;
  for (int a = first; a < end; a++) {
    story *s = &o->at[a];
    wait_for(&s->sent, before, 0);
    bool busy = o->costs->blocking && s->reader >= 0;
    wait_for(&s->left, busy ? &s->entered : &s->sent,
             busy ? oracle_hop(o->costs, o->actions[a]) : 0);
    before = &s->left;
  }
  return before;
}

static void build(oracle *o) {
  event *before_receipt[DEVICES * ACTIONS];
  for (int d = 0; d < o->g->devices; d++)
    for (int a = 0; a < o->g->count[d]; a++) {
      o->at[o->total] = (story){.device = d};
      o->actions[o->total++] = &o->g->rows[d][a];
    }
  for (int a = 0; a < o->total; a++) connect(o, a);
  static event start;
  start.time = 0;
  event *before = &start;
  for (int a = 0; a < o->total;) {
    int end = a;
    while (o->actions[end++]->joined) {
    }
    if (a == 0 || o->at[a - 1].device != o->at[a].device) before = &start;
    before = link_group(o, a, end, before, before_receipt);
    a = end;
  }
  for (int a = 0; a < o->total; a++) {
    if (o->at[a].reader < 0) continue;
    wait_for_room(o, a, before_receipt);
    share_link(o, a);
  }
}

static bool settle(event *e) {
  double time = 0;
  if (e->time >= 0) return false;
  for (int i = 0; i < e->count; i++) {
    if (e->after[i]->time < 0) return false;
    time = fmax(time, e->after[i]->time + e->delay[i]);
  }
  e->time = time;
  return true;
}

/* Finds the time of each event; false if one of them never happens. */
static bool tell(oracle *o) {
  bool all = true;
  for (int a = 0; a < o->total; a++)
    o->at[a].received.time = o->at[a].computed.time = o->at[a].sent.time = o->at[a].left.time =
        o->at[a].entered.time = -1;
  for (bool moved = true; moved;) {
    moved = false;
    for (int a = 0; a < o->total; a++) {
      story *s = &o->at[a];
      event *events[] = {&s->received, &s->computed, &s->sent, &s->entered, &s->left};
      for (int m = 0; m < 5; m++) moved = settle(events[m]) || moved;
    }
  }
  for (int a = 0; a < o->total; a++) all &= o->at[a].left.time >= 0;
  return all;
}

/* ---- both ------------------------------------------------------------------------------------ */

typedef struct random_costs {
  double act[3][STAGES], hop[2][STAGES], busy[2][STAGES], slow[DEVICES];
  gp_noise noise;
} random_costs;

/* Costs are zero now and then, because orders matter in ties. */
static gp_costs draw_costs(const grid *g, random_costs *values) {
  gp_costs costs = {.stage_count = g->stages, .joined = draw(2) ? 1 : 0.7};
  costs.capacity = draw(5) - 1;
  costs.blocking = draw(2);
  for (int s = 0; s < STAGES; s++) {
    for (int i = 0; i < 3; i++) values->act[i][s] = draw(4) ? draw(1000) / 300.0 : 0;
    for (int i = 0; i < 2; i++) values->hop[i][s] = draw(3) ? draw(1000) / 900.0 : 0;
    for (int i = 0; i < 2; i++) values->busy[i][s] = values->hop[i][s] * draw(5) / 4;
  }
  for (int d = 0; d < DEVICES; d++) values->slow[d] = draw(4) ? 1 : 1.5;
  values->noise = (gp_noise){.slow = values->slow, .device_count = g->devices};
  costs.noise = &values->noise;
  if (draw(2)) costs.busy[0] = values->busy[0], costs.busy[1] = values->busy[1];
  costs.act[GP_ACT_F] = values->act[0];
  costs.act[GP_ACT_I] = values->act[1];
  costs.act[GP_ACT_W] = values->act[2];
  costs.hop[0] = values->hop[0];
  costs.hop[1] = values->hop[1];
  return costs;
}

/* The path goes from 0 to the makespan, and only transfers leave gaps. */
static void check_path(const gp_simulation *simulation) {
  int count;
  const gp_critical *path = gp_simulation_critical(simulation, &count);
  double at = 0;
  for (int i = 0; i < count; i++) {
    const double *begin, *finish;
    gp_simulation_times(simulation, path[i].device, &begin, &finish);
    CHECK(path[i].reason != GP_BY_START || i == 0);
    CHECK(begin[path[i].position] >= at && (i > 0 || begin[path[i].position] == 0));
    if (path[i].reason == GP_BY_DEVICE && i > 0) CHECK(path[i - 1].device == path[i].device);
    at = finish[path[i].position];
  }
  CHECK(count > 0 && at == gp_simulation_makespan(simulation));
}

static void check_times(const oracle *o, const gp_simulation *simulation) {
  for (int d = 0, a = 0; d < o->g->devices; d++) {
    const double *begin, *finish;
    gp_simulation_times(simulation, d, &begin, &finish);
    for (int i = 0; i < o->g->count[d]; i++) CHECK(finish[i] == o->at[a++].computed.time);
  }
}

TEST(the_simulator_agrees_with_the_oracle) {
  static oracle o;
  int ran = 0, stuck = 0;
  size_t live = gp_memory().live;
  for (state = 1; ran + stuck < 3000;) {
    grid g = random_grid();
    random_costs values;
    gp_costs costs = draw_costs(&g, &values);
    gp_schedule *s = schedule_of_grid(&g);
    gp_simulation *simulation = NULL;
    if (!s) break;
    o = (oracle){.g = &g, .costs = &costs};
    build(&o);
    bool wanted = tell(&o);
    CHECK_STATUS(gp_simulation_new(s, &costs, &simulation), wanted ? GP_OK : GP_ESCHEDULE);
    if (simulation && wanted) {
      check_times(&o, simulation);
      check_path(simulation);
    }
    if (!wanted) CHECK_TEXT(gp_error_text(), "wait for each other");
    gp_simulation_free(simulation);
    gp_schedule_free(s);
    *(wanted ? &ran : &stuck) += 1;
  }
  CHECK(ran > 1000 && stuck > 100);
  CHECK(gp_memory().live == live);
}

TEST_MAIN(the_simulator_agrees_with_the_oracle)
