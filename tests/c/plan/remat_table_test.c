/* tests/c/plan/remat_table_test.c - one table for all stages of a model, curves, the least memory,
 * bad input and failed allocations. */
#include "remat_chains.h"

static const gp_remat_limits AMPLE = {.memory = 1 << 30, .in_flight = 1};

/* ---- tables ---------------------------------------------------------------------------------- */

/* Makes layer l the same as layer l - period. */
static void repeat(chain *c, int period) {
  for (int l = period; l < c->chain.count; l++) {
    memcpy(c->options[l], c->options[l - period], sizeof c->options[l]);
    c->layers[l] = c->layers[l - period];
    c->layers[l].options = c->options[l];
  }
}

/* Solves each stage of a chain from one table and alone: the times are the same. */
static void compare_stages(const chain *c, int in_flight) {
  gp_remat_table *table;
  const size_t full = full_memory(c, in_flight);
  CHECK_STATUS(gp_remat_table_new(&(gp_remat_table_spec){&c->chain, full, 0}, &table), GP_OK);
  for (int first = 0; first < c->chain.count; first++)
    for (int end = first + 1; end <= c->chain.count; end++) {
      const gp_remat_stage stage = {table, first, end};
      const gp_remat_chain part = gp_remat_part(&c->chain, first, end);
      const gp_remat_limits limits = {full * (size_t)(1 + draw(8)) / 10, in_flight, draw(4) == 0};
      gp_remat_list one = {0}, other = {0};
      const gp_status status = gp_remat_solve(&stage, &limits, &one);
      CHECK_STATUS(gp_remat_plan(&part, &limits, 0, &other), status);
      CHECK(one.time == other.time && one.peak == other.peak && one.count == other.count);
      if (!status) check_list(&part, &one, &limits);
      gp_remat_list_free(&one);
      gp_remat_list_free(&other);
    }
  gp_remat_table_free(table);
}

TEST(a_table_of_a_model_serves_all_its_stages) {
  chain c;
  chain_seed = 7;
  for (int i = 0; i < 6; i++) {
    draw_chain(&c, 10, 2, MIXED, 1);
    if (i % 2) repeat(&c, 1 + i / 2);
    compare_stages(&c, 1 + i % 3);
  }
}

TEST(equal_blocks_share_their_curves) {
  chain c;
  gp_remat_table *table;
  size_t bytes[2];
  chain_seed = 8;
  draw_chain(&c, 60, 2, MIXED, 1000);
  for (int i = 0; i < 2; i++) {
    const size_t before = gp_memory().live;
    if (i) repeat(&c, 2);
    const gp_remat_table_spec spec = {&c.chain, full_memory(&c, 1), 100};
    CHECK_STATUS(gp_remat_table_new(&spec, &table), GP_OK);
    bytes[i] = gp_memory().live - before;
    gp_remat_table_free(table);
    CHECK(gp_memory().live == before);
  }
  CHECK(bytes[1] * 4 < bytes[0]);
}

/* A curve that leaves points out is slower, never over the limit. */
TEST(few_points_cost_time_and_no_memory) {
  chain c;
  chain_seed = 9;
  draw_chain(&c, 40, 3, MIXED, 100000);
  for (int percent = 15; percent <= 95; percent += 20)
    for (int in_flight = 1; in_flight <= 4; in_flight += 3) {
      const size_t memory = full_memory(&c, in_flight) * (size_t)percent / 100;
      const gp_remat_limits limits = {memory, in_flight, false};
      gp_remat_list few = {0}, many = {0};
      CHECK_STATUS(gp_remat_plan(&c.chain, &limits, 24, &few), GP_OK);
      CHECK_STATUS(gp_remat_plan(&c.chain, &limits, 2000, &many), GP_OK);
      check_list(&c.chain, &few, &limits);
      check_list(&c.chain, &many, &limits);
      CHECK((double)many.time <= 1.001 * (double)few.time);
      CHECK((double)few.time <= 1.05 * (double)many.time);
      gp_remat_list_free(&few);
      gp_remat_list_free(&many);
    }
}

TEST(the_same_call_gives_the_same_list) {
  chain c;
  chain_seed = 10;
  draw_chain(&c, 30, 2, MIXED, 1000);
  gp_remat_list lists[2] = {0};
  const gp_remat_limits limits = {full_memory(&c, 4) / 3, 4, false};
  for (int i = 0; i < 2; i++) CHECK_STATUS(gp_remat_plan(&c.chain, &limits, 0, &lists[i]), GP_OK);
  CHECK(lists[0].count == lists[1].count);
  CHECK(!memcmp(lists[0].steps, lists[1].steps, (size_t)lists[0].count * sizeof *lists[0].steps));
  for (int i = 0; i < 2; i++) gp_remat_list_free(&lists[i]);
}

/* ---- curves and the least memory ------------------------------------------------------------- */

TEST(the_least_point_of_a_curve_is_the_plan) {
  enum { POINTS = 64 };
  chain c;
  gp_remat_table *table;
  gp_remat_point points[POINTS];
  chain_seed = 11;
  draw_chain(&c, 6, 2, MIXED, 1);
  const gp_remat_limits limits = {full_memory(&c, 3) / 2, 3, false};
  CHECK_STATUS(gp_remat_table_new(&(gp_remat_table_spec){&c.chain, limits.memory, 0}, &table),
               GP_OK);
  const gp_remat_stage stage = {table, 0, 6};
  const int most = (int)(limits.memory / 3); /* one point per byte */
  CHECK(most > 1 && most <= POINTS);
  CHECK_STATUS(gp_remat_curve(&stage, &limits, points, most), GP_OK);
  int64_t least = INT64_MAX;
  for (int i = 0; i < most; i++) {
    CHECK(points[i].parked == (size_t)i + 1);
    if (points[i].time >= 0 && points[i].time < least) least = points[i].time;
  }
  gp_remat_list list = {0};
  CHECK_STATUS(gp_remat_solve(&stage, &limits, &list), GP_OK);
  CHECK(points[0].time == -1 && list.time == least);
  gp_remat_list_free(&list);
  CHECK_STATUS(gp_remat_curve(&stage, &limits, points, 0), GP_EINVAL);
  gp_remat_table_free(table);
}

TEST(nothing_fits_into_less_than_the_least_memory) {
  chain c;
  char wanted[64];
  chain_seed = 12;
  for (int i = 0; i < 60; i++) {
    gp_remat_list list = {0}, plan = {0};
    draw_chain(&c, 1 + i % 12, 1 + i % 3, (flags)(i % 3), 1 + i * i);
    gp_remat_limits limits = {.in_flight = 1 + i % 5};
    CHECK_STATUS(gp_remat_least(&c.chain, &limits, &list), GP_OK);
    limits.memory = list.peak;
    check_list(&c.chain, &list, &limits);
    CHECK_STATUS(gp_remat_plan(&c.chain, &limits, 24, &plan), GP_OK);
    limits.memory = list.peak - 1;
    CHECK_STATUS(gp_remat_plan(&c.chain, &limits, 0, &plan), GP_ENOMEM);
    snprintf(wanted, sizeof wanted, "expected %zu at least", list.peak);
    CHECK_TEXT(gp_error_text(), wanted);
    gp_remat_list_free(&list);
    gp_remat_list_free(&plan);
  }
}

/* ---- bad input ------------------------------------------------------------------------------- */

static void check_refused(const gp_remat_chain *c, gp_remat_limits limits, const char *text) {
  gp_remat_list list = {0};
  CHECK_STATUS(gp_remat_plan(c, &limits, 0, &list), GP_EINVAL);
  CHECK_TEXT(gp_error_text(), text);
  CHECK(!list.steps);
}

TEST(bad_limits_are_refused) {
  chain c;
  gp_remat_list list = {0};
  gp_remat_table *table;
  chain_seed = 13;
  draw_chain(&c, 3, 1, MIXED, 1);
  check_refused(&c.chain, (gp_remat_limits){100, 0, false}, "0 micro-batches in flight, expected");
  check_refused(&c.chain, (gp_remat_limits){100, -2, true}, "-2 micro-batches in flight, expected");
  check_refused(&c.chain, (gp_remat_limits){0, 1, false}, "a limit of 0 bytes, expected more");
  CHECK_STATUS(gp_remat_plan(&c.chain, &AMPLE, -1, &list), GP_EINVAL);
  CHECK_TEXT(gp_error_text(), "-1 quanta, expected 0 to");
  CHECK_STATUS(gp_remat_table_new(&(gp_remat_table_spec){&c.chain, 1000, 0}, &table), GP_OK);
  CHECK_STATUS(gp_remat_solve(&(gp_remat_stage){table, 1, 1}, &AMPLE, &list), GP_EINVAL);
  CHECK_STATUS(gp_remat_solve(&(gp_remat_stage){table, 0, 4}, &AMPLE, &list), GP_EINVAL);
  CHECK_TEXT(gp_error_text(), "a stage of layers 0 to 3, expected some of 0 to 2");
  CHECK_STATUS(gp_remat_solve(&(gp_remat_stage){table, 0, 3}, &AMPLE, &list), GP_EINVAL);
  CHECK_TEXT(gp_error_text(), "expected at most the table's 1000");
  gp_remat_table_free(table);
}

TEST(bad_chains_are_refused) {
  chain c;
  chain_seed = 14;
  draw_chain(&c, 3, 1, MIXED, 4);
  const chain good = c;
#define REFUSED(change, text)                                                                      \
  (c = good, c.chain.layers = c.layers, c.layers[1].options = c.options[1], (change),              \
   check_refused(&c.chain, AMPLE, (text)))
  for (int l = 0; l < 3; l++) c.layers[l].options = c.options[l];
  REFUSED(c.chain.count = 0, "a chain of 0 layers, expected 1 to 2048");
  REFUSED(c.chain.count = 5000, "a chain of 5000 layers, expected 1 to 2048");
  REFUSED(c.chain.layers = NULL, "layers, expected 1 to 2048");
  REFUSED(c.layers[1].forward = -5, "layer 1 takes -5 ns, expected 0 or more");
  REFUSED(c.layers[1].option_count = 0, "layer 1 has no option, expected at least one");
  REFUSED(c.options[1][0].backward = -7, "option 0 of layer 1 takes -7 ns, expected 0 or more");
  REFUSED(c.options[1][0].kept = 1, "option 0 of layer 1 keeps 1 bytes, expected its output");
  REFUSED(c.layers[1].gradient = SIZE_MAX, "the sums up to layer 1 overflow");
  REFUSED(c.layers[1].gradient = (size_t)1 << 60, "bytes in all, expected at most");
  REFUSED(c.layers[1].forward = INT64_MAX / 2, "ns and");
#undef REFUSED
}

TEST(an_ample_limit_keeps_all) {
  chain c;
  chain_seed = 15;
  draw_chain(&c, 5, 1, MIXED, 1);
  gp_remat_list list = {0};
  for (int i = 0; i < 2; i++) {
    const gp_remat_limits limits = {i ? SIZE_MAX : AMPLE.memory, 3, false};
    CHECK_STATUS(gp_remat_plan(&c.chain, &limits, 0, &list), GP_OK);
    CHECK(list.count == 10);
    for (int s = 0; s < 5; s++) CHECK(list.steps[s].act == GP_REMAT_KEEP);
    gp_remat_list_free(&list);
  }
}

/* ---- failed allocations ---------------------------------------------------------------------- */

static gp_status use_all(const chain *c) {
  gp_remat_list list = {0};
  gp_remat_limits limits = {full_memory(c, 2) / 2, 2, false};
  GP_TRY(gp_remat_plan(&c->chain, &limits, 0, &list));
  gp_remat_list_free(&list);
  GP_TRY(gp_remat_least(&c->chain, &limits, &list));
  gp_remat_list_free(&list);
  limits.once = true;
  GP_TRY(gp_remat_least(&c->chain, &limits, &list));
  gp_remat_list_free(&list);
  return GP_OK;
}

TEST(no_failed_allocation_leaks) {
  chain c;
  chain_seed = 16;
  draw_chain(&c, 4, 2, MIXED, 1);
  const size_t live = gp_memory().live;
  int failures = 0;
  for (uint64_t n = 1;; n++, failures++) {
    gp_memory_fail_at(n);
    const gp_status status = use_all(&c);
    gp_memory_fail_at(0);
    CHECK(gp_memory().live == live);
    if (status == GP_OK) break;
    CHECK(status == GP_ENOMEM);
  }
  CHECK(failures > 20);
}

TEST_MAIN(a_table_of_a_model_serves_all_its_stages, equal_blocks_share_their_curves,
          few_points_cost_time_and_no_memory, the_same_call_gives_the_same_list,
          the_least_point_of_a_curve_is_the_plan, nothing_fits_into_less_than_the_least_memory,
          bad_limits_are_refused, bad_chains_are_refused, an_ample_limit_keeps_all,
          no_failed_allocation_leaks)
