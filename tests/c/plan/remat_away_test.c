/* tests/c/plan/remat_away_test.c - layers whose saved values wait in the host's memory, beside
 * keeping them and making them again. */
#include "remat_chains.h"

static gp_status plan(const chain *c, gp_remat_limits limits, gp_remat_list *list) {
  const gp_status status = gp_remat_plan(&c->chain, &limits, 0, list);
  CHECK(status == GP_OK || status == GP_ENOMEM);
  if (!status) check_list(&c->chain, list, &limits);
  return status;
}

/* Equal layers of 1 ms forward and 2 ms backward that keep 1 MB each, over a link. */
static void make_blocks(chain *c, int layers, double bandwidth) {
  *c = (chain){.chain = {.layers = c->layers, .count = layers, .input = 100}};
  for (int l = 0; l < layers; l++) {
    c->options[l][0] = (gp_remat_option){.forward = 1000000, .backward = 2000000, .kept = 1000000};
    c->layers[l] = (gp_remat_layer){.forward = 1000000,
                                    .output = 100,
                                    .gradient = 100,
                                    .needs_input = true,
                                    .option_count = 1,
                                    .options = c->options[l]};
  }
  if (bandwidth > 0) add_away(c, (gp_host_link){.bandwidth = bandwidth});
}

enum { BLOCKS = 12, NEVER_NS = 3000000 * BLOCKS };

TEST(a_fast_link_costs_no_time) {
  chain c;
  gp_remat_list list = {0};
  make_blocks(&c, BLOCKS, 1e9); /* 12 MB in 12 ms: as long as F */
  CHECK_STATUS(plan(&c, (gp_remat_limits){.memory = 60000000, .in_flight = 8}, &list), GP_OK);
  CHECK(list.time == NEVER_NS && list.away > 0);
  gp_remat_list_free(&list);
}

TEST(a_slow_link_is_left_alone) {
  chain c, plain;
  gp_remat_list list = {0}, other = {0};
  const gp_remat_limits limits = {.memory = 60000000, .in_flight = 8};
  make_blocks(&c, BLOCKS, 1e6); /* a second for what is made again in a millisecond */
  make_blocks(&plain, BLOCKS, 0);
  CHECK_STATUS(plan(&c, limits, &list), GP_OK);
  CHECK_STATUS(plan(&plain, limits, &other), GP_OK);
  CHECK(list.away == 0 && list.time == other.time);
  gp_remat_list_free(&list);
  gp_remat_list_free(&other);
}

TEST(a_link_of_any_speed_is_never_slower_than_none) {
  chain_seed = 11;
  for (int i = 0; i < 60; i++) {
    chain c, plain;
    gp_remat_list list = {0}, other = {0};
    draw_chain(&c, 2 + i % 9, 1 + i % 2, MIXED, 1000);
    plain = c;
    plain.chain.layers = plain.layers;
    for (int l = 0; l < c.chain.count; l++) plain.layers[l].options = plain.options[l];
    add_away(&c, (gp_host_link){.bandwidth = 1e12 / (1 + draw(4000)), .latency = draw(20) * 1e-9});
    const int in_flight = 3 + i % 6;
    const gp_remat_limits limits = {.memory =
                                        full_memory(&c, in_flight) * (size_t)(20 + draw(70)) / 100,
                                    .in_flight = in_flight};
    const gp_status with = plan(&c, limits, &list), without = plan(&plain, limits, &other);
    if (!without) CHECK(!with && list.time <= other.time);
    gp_remat_list_free(&list);
    gp_remat_list_free(&other);
  }
}

TEST(two_in_flight_gain_nothing) {
  chain c;
  gp_remat_list list = {0};
  make_blocks(&c, BLOCKS, 1e12);
  CHECK_STATUS(plan(&c, (gp_remat_limits){.memory = 20000000, .in_flight = 2}, &list), GP_OK);
  CHECK(list.away == 0);
  gp_remat_list_free(&list);
}

TEST(the_memory_of_the_host_is_kept_to) {
  chain c;
  gp_remat_list list = {0};
  const gp_remat_limits limits = {.memory = 60000000, .in_flight = 8};
  for (size_t host = 8000000; host <= 96000000; host += 22000000) {
    make_blocks(&c, BLOCKS, 1e9);
    c.chain.link.bytes = host;
    CHECK_STATUS(plan(&c, limits, &list), GP_OK);
    CHECK(list.away * 8 <= host);
    gp_remat_list_free(&list);
  }
}

TEST(nothing_goes_to_the_host_from_a_backward_pass) {
  chain c;
  make_blocks(&c, 1, 1e9);
  gp_remat_step steps[] = {
      {GP_REMAT_CHECKPOINT, 0, 0}, {GP_REMAT_KEEP, 0, 1}, {GP_REMAT_BACKWARD, 0, 1}};
  const gp_remat_list list = {.steps = steps, .count = 3, .backward_begins = 1};
  gp_remat_cost cost;
  CHECK_STATUS(gp_remat_simulate(&c.chain, &list, 3, &cost), GP_EINVAL);
}

TEST_MAIN(a_fast_link_costs_no_time, a_slow_link_is_left_alone,
          a_link_of_any_speed_is_never_slower_than_none, two_in_flight_gain_nothing,
          the_memory_of_the_host_is_kept_to, nothing_goes_to_the_host_from_a_backward_pass)
