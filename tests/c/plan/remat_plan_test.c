/* tests/c/plan/remat_plan_test.c - plans of rematerialization against published tables, against a
 * plain recursion for one micro-batch, and against simpler policies. */
#include "remat_chains.h"

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* The time of the plan; -1: nothing fits. */
static int64_t time_of(const gp_remat_chain *c, gp_remat_limits limits) {
  gp_remat_list list = {0};
  const gp_status status = gp_remat_plan(c, &limits, 0, &list);
  CHECK(status == GP_OK || status == GP_ENOMEM);
  if (status) return -1;
  check_list(c, &list, &limits);
  const int64_t time = list.time;
  gp_remat_list_free(&list);
  return time;
}

/* ---- published tables ------------------------------------------------------------------------ */

/* Revolve's table: the time to reverse l + 1 equal steps with so many slots, the input's among
 * them. */
static int64_t reverse(int l, int slots, int64_t forward, int64_t backward) {
  static int64_t known[20][8];
  if (l == 0) return backward;
  if (slots == 1) return (l + 1) * backward + (int64_t)l * (l + 1) / 2 * forward;
  if (known[l][slots]) return known[l][slots];
  int64_t best = INT64_MAX;
  for (int j = 1; j <= l; j++)
    best = least(best, j * forward + reverse(l - j, slots - 1, forward, backward) +
                           reverse(j - 1, slots, forward, backward));
  return known[l][slots] = best;
}

static void make_homogeneous(chain *c, int layers) {
  enum { HUGE = 1000 };
  *c = (chain){.chain = {.layers = c->layers, .count = layers, .input = 1}};
  for (int l = 0; l < layers; l++) {
    c->options[l][0] = (gp_remat_option){.forward = 3, .backward = 5, .kept = HUGE};
    c->layers[l] = (gp_remat_layer){.forward = 3,
                                    .output = 1,
                                    .needs_input = true,
                                    .option_count = 1,
                                    .options = c->options[l]};
  }
}

TEST(equal_layers_take_the_times_of_revolve) {
  chain c;
  for (int layers = 1; layers <= 18; layers++) {
    make_homogeneous(&c, layers);
    for (int checkpoints = 0; checkpoints <= 5; checkpoints++) {
      const size_t memory = c.options[0][0].kept + 1 + (size_t)checkpoints;
      const int64_t time = time_of(&c.chain, (gp_remat_limits){memory + c.chain.input, 1, false});
      CHECK(time == reverse(layers - 1, checkpoints + 1, 3, 3 + 5));
    }
  }
}

/* ---- one micro-batch: a plain recursion ------------------------------------------------------ */

enum { ROTOR_LAYERS = 8, ROTOR_BYTES = 128, NOTHING_FITS = 1 << 28 };

static int64_t rotor_known[ROTOR_LAYERS][ROTOR_LAYERS][ROTOR_BYTES];

/* What the bytes must be at least to run layers i .. s - 1, of which nothing is kept. */
static int forward_bytes(const chain *c, int i, int s) {
  int most = 0;
  for (int l = i; l < s; l++) {
    const int input = l > i ? (int)c->layers[l - 1].output : 0;
    const int bytes = input + (int)(c->layers[l].output + c->layers[l].forward_extra);
    if (bytes > most) most = bytes;
  }
  return most;
}

static int64_t rotor(const chain *c, int i, int j, int m);

static int64_t rotor_save(const chain *c, int i, int j, int m) {
  int64_t best = NOTHING_FITS;
  const int gradient = (int)c->layers[j].gradient;
  const int before = (int)gp_remat_gradient(&c->chain, i);
  for (int o = 0; o < c->layers[i].option_count; o++) {
    const gp_remat_option *p = &c->options[i][o];
    const int kept = (int)p->kept;
    if (m < gradient + kept + (int)p->forward_extra) continue;
    if (m < (int)c->layers[i].gradient + before + kept + (int)p->backward_extra) continue;
    best = least(best, p->forward + p->backward + (i < j ? rotor(c, i + 1, j, m - kept) : 0));
  }
  return best;
}

/* The least time to run layers i .. j, whose input is paid for, with m bytes. */
static int64_t rotor(const chain *c, int i, int j, int m) {
  if (m < 0) return NOTHING_FITS;
  int64_t *known = &rotor_known[i][j][m];
  if (*known) return *known;
  int64_t best = rotor_save(c, i, j, m), forward = 0;
  for (int s = i + 1; s <= j; s++) {
    forward += c->layers[s - 1].forward;
    if (m < (int)c->layers[j].gradient + forward_bytes(c, i, s)) break;
    best = least(best, forward + rotor(c, s, j, m - (int)c->layers[s - 1].output) +
                           rotor(c, i, s - 1, m));
  }
  return *known = least(best, NOTHING_FITS);
}

TEST(one_micro_batch_takes_the_time_of_a_plain_recursion) {
  chain c;
  int feasible = 0;
  chain_seed = 4;
  for (int i = 0; i < 100; i++) {
    draw_chain(&c, 1 + i % ROTOR_LAYERS, 1 + i % 3, ALL_NEED_INPUT, 1);
    c.layers[c.chain.count - 1].gradient = 0; /* as a loss has: F and B are one pass then */
    memset(rotor_known, 0, sizeof rotor_known);
    const int full = (int)full_memory(&c, 1), memory = full / 3 + draw(full * 2 / 3);
    const int64_t wanted = rotor(&c, 0, c.chain.count - 1, memory - (int)c.chain.input);
    const int64_t time = time_of(&c.chain, (gp_remat_limits){(size_t)memory, 1, false});
    CHECK(time == (wanted >= NOTHING_FITS ? -1 : wanted));
    feasible += time >= 0;
  }
  CHECK(feasible > 50);
}

/* ---- what it is worth ------------------------------------------------------------------------ */

enum { BLOCKS = 5, BLOCK_LAYERS = 2 * BLOCKS };

/* Attention and MLP layers in turn, each with an option that keeps less. Reference section 3.7
 * gives no sizes of its layers, so its figures can't be compared, only which way is faster. */
static void make_blocks(chain *c) {
  static const gp_remat_option attention[] = {{4000, 8000, 168, 0, 0, 0},
                                              {4000, 8500, 68, 0, 0, 0}};
  static const gp_remat_option mlp[] = {{5000, 10000, 68, 0, 0, 0}, {5000, 10300, 38, 0, 0, 0}};
  *c = (chain){.chain = {.layers = c->layers, .count = BLOCK_LAYERS, .input = 8}};
  for (int l = 0; l < BLOCK_LAYERS; l++)
    c->layers[l] = (gp_remat_layer){.forward = l % 2 ? 5000 : 4000,
                                    .output = 8,
                                    .gradient = 8,
                                    .needs_input = true,
                                    .option_count = 2,
                                    .options = l % 2 ? mlp : attention};
}

/* Each layer is kept (with option choice - 1) or alone dropped (choice 0). */
static void make_choices(const int *choices, gp_remat_step *steps, gp_remat_list *list) {
  int count = 0;
  for (int l = 0; l < BLOCK_LAYERS; l++)
    steps[count++] = choices[l] ? (gp_remat_step){GP_REMAT_KEEP, l, choices[l] - 1}
                                : (gp_remat_step){GP_REMAT_CHECKPOINT, l, 0};
  *list = (gp_remat_list){.steps = steps, .backward_begins = count};
  for (int l = BLOCK_LAYERS - 1; l >= 0; l--) {
    const int option = choices[l] ? choices[l] - 1 : 0;
    if (!choices[l]) steps[count++] = (gp_remat_step){GP_REMAT_KEEP, l, 0};
    steps[count++] = (gp_remat_step){GP_REMAT_BACKWARD, l, option};
  }
  list->count = count;
}

/* The best of all choices; -1: none fits. */
static int64_t best_choice(const chain *c, const gp_remat_limits *limits) {
  enum { KINDS = 3, ALL = 59049 }; /* 3^10 */
  gp_remat_step steps[4 * BLOCK_LAYERS];
  int choices[BLOCK_LAYERS];
  int64_t best = -1;
  for (int code = 0; code < ALL; code++) {
    gp_remat_list list;
    gp_remat_cost cost = {0};
    for (int l = 0, rest = code; l < BLOCK_LAYERS; l++, rest /= KINDS) choices[l] = rest % KINDS;
    make_choices(choices, steps, &list);
    CHECK_STATUS(gp_remat_simulate(&c->chain, &list, limits->in_flight, &cost), GP_OK);
    if (cost.peak <= limits->memory && (best < 0 || cost.time < best)) best = cost.time;
  }
  return best;
}

TEST(a_stage_is_faster_than_choices_layer_by_layer_and_than_equal_shares_of_memory) {
  chain c;
  int faster_than_choices = 0, faster_than_shares = 0, alone = 0;
  static const struct {
    int in_flight, percent;
  } rows[] = {{4, 40}, {4, 30}, {4, 20}, {4, 15}, {4, 12}, {8, 30},
              {8, 20}, {8, 15}, {8, 12}, {8, 10}, {8, 7}};
  make_blocks(&c);
  size_t full = c.chain.input;
  for (int l = 0; l < BLOCK_LAYERS; l++) full += c.layers[l].options[0].kept;
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    const size_t share = full * (size_t)rows[r].percent / 100;
    const gp_remat_limits limits = {share * (size_t)rows[r].in_flight, rows[r].in_flight, false};
    const int64_t time = time_of(&c.chain, limits);
    const int64_t choices = best_choice(&c, &limits);
    const int64_t shares = time_of(&c.chain, (gp_remat_limits){share, 1, false});
    CHECK(time > 0);
    CHECK(choices < 0 || time <= choices);
    CHECK(shares < 0 || time <= shares);
    faster_than_choices += choices > time;
    faster_than_shares += shares > time;
    alone += choices < 0 || shares < 0;
  }
  CHECK(faster_than_choices >= 3 && faster_than_shares >= 4 && alone >= 1);
}

TEST_MAIN(equal_layers_take_the_times_of_revolve,
          one_micro_batch_takes_the_time_of_a_plain_recursion,
          a_stage_is_faster_than_choices_layer_by_layer_and_than_equal_shares_of_memory)
