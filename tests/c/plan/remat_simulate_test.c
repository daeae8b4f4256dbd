/* tests/c/plan/remat_simulate_test.c - a list run without work: its bytes, and what it refuses. */
#include "remat_chains.h"

/* Two layers with sizes that tell which of them was counted. */
static const gp_remat_option FIRST[] = {{10, 20, 500, 3, 7, 0}, {11, 24, 150, 5, 9, 0}};
static const gp_remat_option SECOND[] = {{30, 40, 3000, 13, 17, 0}};
static const gp_remat_layer PAIR[] = {
    {.forward = 9,
     .forward_extra = 1,
     .output = 100,
     .gradient = 90,
     .needs_input = true,
     .option_count = 2,
     .options = FIRST},
    {.forward = 29,
     .forward_extra = 2,
     .output = 1000,
     .gradient = 900,
     .needs_input = true,
     .option_count = 1,
     .options = SECOND},
};
static const gp_remat_chain CHAIN = {.layers = PAIR, .count = 2, .input = 10, .input_gradient = 8};

/* Writes a list as text: F (forward), C (checkpoint), K (keep), B (backward) with the layer, an
 * apostrophe for option 1, and a bar where the backward pass begins. */
static gp_status simulate(const char *text, int32_t in_flight, gp_remat_cost *cost) {
  static const char acts[] = "FCKB";
  gp_remat_step steps[32];
  gp_remat_list list = {.steps = steps};
  for (; *text; text++) {
    if (*text == '|') list.backward_begins = list.count;
    if (*text == '\'') steps[list.count - 1].option = 1;
    const char *act = strchr(acts, *text);
    if (!act) continue;
    steps[list.count++] = (gp_remat_step){(gp_remat_act)(act - acts), *++text - '0', 0};
  }
  return gp_remat_simulate(&CHAIN, &list, in_flight, cost);
}

TEST(a_list_that_keeps_all_parks_all) {
  gp_remat_cost cost;
  CHECK_STATUS(simulate("K0 K1 | B1 B0", 3, &cost), GP_OK);
  CHECK(cost.time == 10 + 30 + 40 + 20);
  CHECK(cost.parked == 10 + 500 + 3000);
  CHECK(cost.active == 10 + 500 + 3000 + 900 + 90 + 17); /* backward of layer 1 */
  CHECK(cost.peak == 2 * cost.parked + cost.active);
}

TEST(a_list_that_keeps_its_input_runs_all_again) {
  gp_remat_cost cost;
  CHECK_STATUS(simulate("C0 F1 | K0' K1 B1 B0'", 2, &cost), GP_OK);
  CHECK(cost.time == 9 + 29 + 11 + 30 + 40 + 24);
  CHECK(cost.parked == 10);
  CHECK(cost.active == 10 + 150 + 3000 + 900 + 90 + 17);
  CHECK(cost.peak == cost.parked + cost.active);
}

TEST(a_checkpoint_goes_after_its_last_reader) {
  gp_remat_cost cost;
  CHECK_STATUS(simulate("C0 C1 | K1 B1 K0 B0", 1, &cost), GP_OK);
  CHECK(cost.parked == 10 + 100);
  CHECK(cost.active == 10 + 100 + 3000 + 900 + 90 + 17);
  CHECK_STATUS(simulate("C0 F1 | C0 K1 B1 K0 B0", 1, &cost), GP_OK);
  CHECK(cost.time == 9 + 29 + 9 + 30 + 40 + 10 + 20);
  CHECK(cost.parked == 10);
}

TEST(lists_that_cannot_run_are_refused) {
  static const struct {
    const char *list, *text;
  } bad[] = {
      {"F0 F1 | K0 K1 B1 B0", "step 2, of layer 0: its input is missing"},
      {"C0 F1 | K1 B1 K0 B0", "step 2, of layer 1: its input is missing"},
      {"K0 K1 | B0 B1", "a backward out of order"},
      {"K0 K1 | B1", "its backward is missing"},
      {"K0 K1 B1 | B0", "a backward in the forward pass"},
      {"K0 | K1 B1 B0", "F ends here"},
      {"K0 K0 K1 | B1 B0", "it is kept already"},
      {"K0 F1 | B1 B0", "what its backward reads is missing"},
      {"K0 K1 | B1 B0'", "what its backward reads is missing"},
      {"K0 K1' | B1' B0", "an option that it does not have"},
      {"K0 K1 | B1 B2", "no such step"},
      {"", "F ends here"},
  };
  gp_remat_cost cost;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    CHECK_STATUS(simulate(bad[i].list, 1, &cost), GP_EINVAL);
    CHECK_TEXT(gp_error_text(), bad[i].text);
  }
  CHECK_STATUS(simulate("K0 K1 | B1 B0", 0, &cost), GP_EINVAL);
  CHECK_TEXT(gp_error_text(), "0 micro-batches in flight, expected 1 to");
}

TEST(a_backward_that_reads_its_input_needs_it) {
  gp_remat_cost cost;
  CHECK_STATUS(simulate("F0 K1 | C0 B1 K0 B0", 1, &cost), GP_EINVAL);
  CHECK_STATUS(simulate("C0 K1 | K0 B1 B0", 1, &cost), GP_OK); /* dropped and made again */
  CHECK(cost.parked == 10 + 3000);
}

TEST_MAIN(a_list_that_keeps_all_parks_all, a_list_that_keeps_its_input_runs_all_again,
          a_checkpoint_goes_after_its_last_reader, lists_that_cannot_run_are_refused,
          a_backward_that_reads_its_input_needs_it)
