/* tests/c/plan/remat_once_test.c - segments that run once more, against all cuts into segments. */
#include "remat_chains.h"

/* Makes the list of a cut: bit l - 1 says that a segment begins with layer l. */
static void make_segments(int layers, int cuts, gp_remat_step *steps, gp_remat_list *list) {
  int count = 0;
  for (int l = 0; l < layers; l++) {
    const bool begins = l == 0 || (cuts >> (l - 1) & 1);
    steps[count++] = (gp_remat_step){begins ? GP_REMAT_CHECKPOINT : GP_REMAT_FORWARD, l, 0};
  }
  *list = (gp_remat_list){.steps = steps, .backward_begins = count};
  for (int end = layers; end > 0;) {
    int first = end - 1;
    while (first > 0 && !(cuts >> (first - 1) & 1)) first--;
    for (int l = first; l < end; l++) steps[count++] = (gp_remat_step){GP_REMAT_KEEP, l, 0};
    for (int l = end - 1; l >= first; l--)
      steps[count++] = (gp_remat_step){GP_REMAT_BACKWARD, l, 0};
    end = first;
  }
  list->count = count;
}

static size_t least_peak(const chain *c, int in_flight) {
  gp_remat_step steps[4 * LAYERS];
  gp_remat_list list;
  size_t best = SIZE_MAX;
  for (int cuts = 0; cuts < 1 << (c->chain.count - 1); cuts++) {
    gp_remat_cost cost = {0};
    make_segments(c->chain.count, cuts, steps, &list);
    CHECK_STATUS(gp_remat_simulate(&c->chain, &list, in_flight, &cost), GP_OK);
    if (cost.peak < best) best = cost.peak;
  }
  return best;
}

/* Each layer runs once in F, and once in B. */
static void check_runs(const gp_remat_list *list, int layers) {
  int runs[2][LAYERS] = {{0}};
  for (int s = 0; s < list->count; s++)
    if (list->steps[s].act != GP_REMAT_BACKWARD)
      runs[s >= list->backward_begins][list->steps[s].layer]++;
  for (int l = 0; l < layers; l++) CHECK(runs[0][l] == 1 && runs[1][l] == 1);
}

TEST(no_cut_into_segments_has_a_lower_peak) {
  chain c;
  chain_seed = 5;
  for (int i = 0; i < 160; i++) {
    draw_chain(&c, 1 + i % 8, 1 + i % 2, (flags)(i % 3), 1 + i % 5);
    gp_remat_limits limits = {.memory = full_memory(&c, 9), .in_flight = 1 + i % 4, .once = true};
    gp_remat_list list = {0};
    CHECK_STATUS(gp_remat_plan(&c.chain, &limits, 0, &list), GP_OK);
    check_list(&c.chain, &list, &limits);
    check_runs(&list, c.chain.count);
    CHECK(list.peak == least_peak(&c, limits.in_flight));
    gp_remat_list_free(&list);
  }
}

TEST(segments_that_do_not_fit_are_refused_with_what_would) {
  chain c;
  gp_remat_list list = {0};
  char wanted[64];
  chain_seed = 6;
  draw_chain(&c, 12, 1, MIXED, 1000);
  gp_remat_limits limits = {.in_flight = 4, .once = true};
  CHECK_STATUS(gp_remat_least(&c.chain, &limits, &list), GP_OK);
  snprintf(wanted, sizeof wanted, "for 4 micro-batches in flight, expected %zu at least",
           list.peak);
  limits.memory = list.peak - 1;
  gp_remat_list_free(&list);
  CHECK_STATUS(gp_remat_plan(&c.chain, &limits, 0, &list), GP_ENOMEM);
  CHECK_TEXT(gp_error_text(), wanted);
}

/* With equal layers the best segments have about the square root of the number of layers for one
 * micro-batch, and fewer, longer ones for many. */
TEST(more_micro_batches_in_flight_want_longer_segments) {
  chain c = {.chain = {.layers = c.layers, .count = 64, .input = 10}};
  int segments[2] = {0};
  for (int l = 0; l < 64; l++) {
    c.options[l][0] = (gp_remat_option){.forward = 1, .backward = 2, .kept = 10};
    c.layers[l] = (gp_remat_layer){.forward = 1,
                                   .output = 10,
                                   .needs_input = true,
                                   .option_count = 1,
                                   .options = c.options[l]};
  }
  for (int i = 0; i < 2; i++) {
    gp_remat_list list = {0};
    const gp_remat_limits limits = {.in_flight = i ? 8 : 1, .once = true};
    CHECK_STATUS(gp_remat_least(&c.chain, &limits, &list), GP_OK);
    for (int s = 0; s < list.count; s++) segments[i] += list.steps[s].act == GP_REMAT_CHECKPOINT;
    gp_remat_list_free(&list);
  }
  CHECK(segments[0] >= 6 && segments[0] <= 11);
  CHECK(segments[1] >= 2 && segments[1] <= 4);
}

TEST_MAIN(no_cut_into_segments_has_a_lower_peak,
          segments_that_do_not_fit_are_refused_with_what_would,
          more_micro_batches_in_flight_want_longer_segments)
