/* tests/c/plan/remat_exhaustive_test.c - plans of small stages against the best of all lists.
 *
 * The oracle searches the graph of memory states: which values and kept layers are there, and how
 * far the micro-batch is. Anything may be dropped at any time, so it also finds lists that no plan
 * has: a plan may be slower than the oracle, never faster. */
#include "remat_chains.h"

enum { MOST_LAYERS = 4, STATES = 1 << 16, HEAP = 1 << 20, NEVER = 1 << 28 };

/* Bits 0-4: values; 5-12: per layer the option kept + 1; 13-15: the phase. Phase g <= L: gradient g
 * is there; L + 1: F has made the output; L + 2: it has not. */
typedef struct oracle {
  const chain *c;
  size_t parked, active, away; /* limits; away: what goes to the host of a micro-batch */
  int time[STATES];
  struct {
    int time, state;
  } heap[HEAP];
  int count;
  int limit;
  bool persistent; /* a kept layer holds the input that its backward reads */
} oracle;

static bool has_plain(int state, int value) { return state >> value & 1; }
static int kept_at(int state, int layer) { return state >> (5 + 2 * layer) & 3; }
static int phase_of(int state) { return state >> 13; }
static int with_kept(int state, int layer, int option) {
  return (state & ~(3 << (5 + 2 * layer))) | option << (5 + 2 * layer);
}
static int with_phase(int state, int phase) { return (state & 0x1fff) | phase << 13; }
static bool has_value(int state, int value) {
  return has_plain(state, value) || (value > 0 && kept_at(state, value - 1));
}

static size_t bytes_of(const oracle *o, int state) {
  const gp_remat_chain *c = &o->c->chain;
  size_t bytes = 0;
  for (int v = 0; v <= c->count; v++)
    if (has_plain(state, v)) bytes += gp_remat_value(c, v);
  for (int l = 0; l < c->count; l++)
    if (kept_at(state, l)) bytes += o->c->options[l][kept_at(state, l) - 1].kept;
  if (phase_of(state) <= c->count) bytes += gp_remat_gradient(c, phase_of(state));
  return bytes;
}

static size_t away_in(const oracle *o, int state) {
  size_t bytes = 0;
  for (int l = 0; l < o->c->chain.count; l++)
    if (kept_at(state, l)) bytes += o->c->options[l][kept_at(state, l) - 1].away;
  return bytes;
}

/* May the layer be kept so? Nothing goes to the host from a backward pass. */
static bool may_keep(const oracle *o, int state, const gp_remat_option *option) {
  if (!option->away) return true;
  return phase_of(state) > o->c->chain.count && away_in(o, state) + option->away <= o->away;
}

static void push(oracle *o, int state, int64_t time) {
  if (time >= o->limit || time >= o->time[state] || o->count == HEAP) return;
  o->time[state] = (int)time;
  int at = o->count++;
  for (; at > 0 && o->heap[(at - 1) / 2].time > time; at = (at - 1) / 2)
    o->heap[at] = o->heap[(at - 1) / 2];
  o->heap[at].time = (int)time;
  o->heap[at].state = state;
}

static void pop(oracle *o, int *state, int *time) {
  *state = o->heap[0].state;
  *time = o->heap[0].time;
  const int last = --o->count;
  int at = 0;
  for (int next; (next = 2 * at + 1) < last; at = next) {
    if (next + 1 < last && o->heap[next + 1].time < o->heap[next].time) next++;
    if (o->heap[next].time >= o->heap[last].time) break;
    o->heap[at] = o->heap[next];
  }
  o->heap[at] = o->heap[last];
}

static void push_drop(oracle *o, int state, int time) {
  for (int l = 0; o->persistent && l < o->c->chain.count; l++)
    if (kept_at(state, l) && o->c->layers[l].needs_input && !has_value(state, l)) return;
  push(o, state, time);
}

static void push_drops(oracle *o, int state, int time) {
  for (int v = 0; v <= o->c->chain.count; v++)
    if (has_plain(state, v)) push_drop(o, state & ~(1 << v), time);
  for (int l = 0; l < o->c->chain.count; l++)
    if (kept_at(state, l)) push_drop(o, with_kept(state, l, 0), time);
}

static void push_forwards(oracle *o, int state, int time, size_t bytes) {
  const int layers = o->c->chain.count, phase = phase_of(state);
  const int end = phase < layers ? phase : layers;
  for (int l = 0; l < end; l++) {
    const gp_remat_layer *layer = &o->c->layers[l];
    if (!has_value(state, l) || kept_at(state, l)) continue;
    const int then = l + 1 == layers && phase == layers + 2 ? layers + 1 : phase;
    if (!has_plain(state, l + 1) && bytes + layer->output + layer->forward_extra <= o->active)
      push(o, with_phase(state | 1 << (l + 1), then), time + layer->forward);
    for (int p = 0; p < layer->option_count; p++)
      if (bytes + layer->options[p].kept + layer->options[p].forward_extra <= o->active &&
          may_keep(o, state, &layer->options[p]))
        push(o, with_phase(with_kept(state, l, p + 1), then), time + layer->options[p].forward);
  }
}

static void push_backward(oracle *o, int state, int time, size_t bytes) {
  const int l = phase_of(state) - 1;
  const gp_remat_layer *layer = &o->c->layers[l];
  if (!kept_at(state, l) || (layer->needs_input && !has_value(state, l))) return;
  const gp_remat_option *option = &layer->options[kept_at(state, l) - 1];
  if (bytes + gp_remat_gradient(&o->c->chain, l) + option->backward_extra > o->active) return;
  push(o, with_phase(with_kept(state, l, 0) & ~(1 << (l + 1)), l), time + option->backward);
}

/* The least time for what a micro-batch may park and have alive. */
static int solve_shares(oracle *o) {
  const int layers = o->c->chain.count;
  for (int s = 0; s < STATES; s++) o->time[s] = NEVER;
  o->count = 0;
  push(o, with_phase(1, layers + 2), 0);
  while (o->count > 0) {
    int state, time;
    pop(o, &state, &time);
    if (time > o->time[state]) continue;
    const int phase = phase_of(state);
    const size_t bytes = bytes_of(o, state);
    if (phase == 0) return time;
    push_drops(o, state, time);
    push_forwards(o, state, time, bytes);
    if (phase == layers + 1 && bytes <= o->parked &&
        bytes + gp_remat_gradient(&o->c->chain, layers) <= o->active)
      push(o, with_phase(state, layers), time);
    if (phase <= layers) push_backward(o, state, time, bytes);
  }
  return NEVER;
}

static int solve_memory(oracle *o, size_t memory, size_t waiting) {
  if (waiting == 0) {
    o->parked = o->active = memory;
    return solve_shares(o);
  }
  for (int parked = (int)(memory / (waiting + 1)); parked >= 0; parked--) {
    o->parked = (size_t)parked;
    o->active = memory - waiting * o->parked;
    const int time = solve_shares(o);
    if (time < o->limit) o->limit = time;
  }
  return o->limit;
}

/* All sums of what layers may send, each tried with the memory and the time that it leaves. */
static int solve(oracle *o, const chain *c, const gp_remat_limits *limits) {
  int best = NEVER;
  o->c = c;
  for (int set = 0; set < 1 << c->chain.count; set++) {
    o->away = 0;
    for (int l = 0; l < c->chain.count; l++)
      if (set >> l & 1) o->away += c->options[l][c->layers[l].option_count - 1].away;
    if ((set && !o->away) || 2 * o->away >= limits->memory) continue;
    const int exposed = (int)gp_remat_exposed(&c->chain, o->away);
    o->limit = best - exposed;
    if (o->limit <= 0) continue;
    const int time = solve_memory(o, limits->memory - 2 * o->away, (size_t)limits->in_flight - 1);
    if (time + exposed < best) best = time + exposed;
  }
  return best;
}

typedef struct tally {
  int feasible,
      optimal; /* optimal: as fast as the best list in which kept layers hold their inputs */
  double gaps; /* to that list, as fractions */
} tally;

/* A plan is never faster than any list, and there is one if any list in which kept layers hold
 * their inputs fits. */
static void compare(oracle *o, const chain *c, const gp_remat_limits *limits, tally *sum) {
  gp_remat_list list = {0};
  o->persistent = false;
  const int least = solve(o, c, limits);
  o->persistent = true;
  const int held = solve(o, c, limits);
  const gp_status status = gp_remat_plan(&c->chain, limits, 0, &list);
  CHECK(status == GP_OK || status == GP_ENOMEM);
  if (status) CHECK(held == NEVER);
  if (status) return;
  CHECK(list.time >= least);
  check_list(&c->chain, &list, limits);
  sum->feasible++;
  sum->optimal += list.time <= held;
  if (held < NEVER) sum->gaps += (double)(list.time - held) / held;
  gp_remat_list_free(&list);
}

/* Compares chains of `layers` layers, in turn with 1, 2 and 3 micro-batches in flight. */
static tally compare_many(int count, int layers, int options, flags needs) {
  static oracle o;
  tally sum = {0};
  chain c;
  for (int i = 0; i < count; i++) {
    draw_chain(&c, layers, options, needs, 1);
    const int in_flight = 1 + i % 3;
    const size_t full = full_memory(&c, in_flight);
    const gp_remat_limits limits = {.memory = full * (size_t)(40 + draw(60)) / 100,
                                    .in_flight = in_flight};
    compare(&o, &c, &limits, &sum);
  }
  CHECK(sum.feasible >= count / 3);
  CHECK(sum.gaps < 0.005 * sum.feasible);
  return sum;
}

/* Compares chains of which some layers may go to the host, over links of several speeds. */
static int compare_away(int count, int layers, int options) {
  static oracle o;
  tally sum = {0};
  chain c;
  int went = 0;
  for (int i = 0; i < count; i++) {
    draw_chain(&c, layers, options, MIXED, 1);
    add_away(&c, (gp_host_link){.bandwidth = 1e9 / (1 + draw(4)), .latency = draw(3) * 1e-9});
    const gp_remat_limits limits = {.memory = full_memory(&c, 3) * (size_t)(40 + draw(50)) / 100,
                                    .in_flight = 3 + i % 2};
    compare(&o, &c, &limits, &sum);
    gp_remat_list list = {0};
    if (gp_remat_plan(&c.chain, &limits, 0, &list) == GP_OK) went += list.away > 0;
    gp_remat_list_free(&list);
  }
  CHECK(sum.gaps < 0.005 * sum.feasible);
  CHECK(sum.feasible >= count / 3);
  if (layers < 3) CHECK(sum.optimal == sum.feasible);
  return went;
}

TEST(plans_send_to_the_host_what_the_best_lists_send) {
  chain_seed = 7;
  int went = compare_away(40, 1, 1);
  went += compare_away(40, 2, 2);
  went += compare_away(30, 3, 1);
  CHECK(went > 20);
}

TEST(plans_of_one_and_two_layers_are_the_best_lists) {
  chain_seed = 3;
  for (int layers = 1; layers <= 2; layers++) {
    const tally sum = compare_many(60, layers, 2, MIXED);
    CHECK(sum.optimal == sum.feasible);
  }
}

TEST(plans_of_three_layers_are_nearly_the_best_lists) {
  chain_seed = 1;
  compare_many(90, 3, 1, ALL_NEED_INPUT);
  compare_many(90, 3, 1, NONE_NEEDS_INPUT);
  compare_many(90, 3, 1, MIXED);
  compare_many(60, 3, 2, MIXED);
}

TEST(plans_of_four_layers_are_nearly_the_best_lists) {
  chain_seed = 2;
  compare_many(30, 4, 1, ALL_NEED_INPUT);
  compare_many(30, 4, 1, NONE_NEEDS_INPUT);
  compare_many(30, 4, 1, MIXED);
  compare_many(15, 4, 2, MIXED);
}

TEST_MAIN(plans_of_one_and_two_layers_are_the_best_lists,
          plans_of_three_layers_are_nearly_the_best_lists,
          plans_of_four_layers_are_nearly_the_best_lists,
          plans_send_to_the_host_what_the_best_lists_send)
