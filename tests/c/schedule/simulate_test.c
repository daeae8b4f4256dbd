/* tests/c/schedule/simulate_test.c - the simulator compared with cases worked out by hand, and what
 * it refuses. */
#include "schedule/simulate/simulate.h"
#include "schedule_rows.h"
#include "test.h"

enum { STAGES = 5 };

/* ---- cases worked out by hand ---------------------------------------------------------------- */

static const double one[STAGES] = {1, 1, 1, 1, 1}, two[STAGES] = {2, 2, 2, 2, 2};

/* Makes costs F = I = W = 1, joined actions at their sum, channels of any size. */
static gp_costs unit_costs(int stages) {
  gp_costs costs = {.stage_count = stages, .joined = 1, .capacity = -1};
  costs.act[GP_ACT_F] = costs.act[GP_ACT_I] = costs.act[GP_ACT_W] = one;
  return costs;
}

static gp_schedule *schedule_of(const char *const *rows, int devices, int stages,
                                const int32_t *placement) {
  static const int32_t line[] = {0, 1, 2, 3};
  gp_schedule_spec spec = {.stage_count = stages, .placement = placement ? placement : line};
  gp_schedule *s = NULL;
  CHECK_STATUS(schedule_of_rows(&spec, rows, devices, &s, NULL), GP_OK);
  return s;
}

static gp_simulation *run(const gp_schedule *s, const gp_costs *costs) {
  gp_simulation *simulation = NULL;
  CHECK_STATUS(gp_simulation_new(s, costs, &simulation), GP_OK);
  return simulation;
}

static const char *const one_f_one_b[] = {"0F0,0F1,0B0,0F2,0B1,0B2", "1F0,1B0,1F1,1B1,1F2,1B2"};

TEST(times_of_one_f_one_b_are_those_worked_out_by_hand) {
  static const double wanted[2][6] = {{0, 1, 4, 6, 7, 10}, {1, 2, 4, 5, 7, 8}};
  gp_schedule *s = schedule_of(one_f_one_b, 2, 2, NULL);
  gp_costs costs = unit_costs(2);
  gp_simulation *simulation = run(s, &costs);
  for (int d = 0; d < 2; d++) {
    const double *begin, *finish;
    gp_simulation_times(simulation, d, &begin, &finish);
    for (int a = 0; a < 6; a++) CHECK(begin[a] == wanted[d][a]);
    CHECK(gp_simulation_device(simulation, d)->work == 9);
    CHECK(gp_simulation_device(simulation, d)->peak_live == 2 - d);
  }
  CHECK(gp_simulation_makespan(simulation) == 12 && gp_simulation_span(simulation) == 12);
  gp_simulation_free(simulation);
  gp_schedule_free(s);
}

TEST(a_value_that_crosses_devices_arrives_later) {
  static const double there[] = {0.5}, back[] = {0.25};
  gp_schedule *s = schedule_of(one_f_one_b, 2, 2, NULL);
  gp_costs costs = unit_costs(2);
  costs.hop[0] = there;
  costs.hop[1] = back;
  gp_simulation *simulation = run(s, &costs);
  const double *begin, *finish;
  gp_simulation_times(simulation, 0, &begin, &finish);
  CHECK(begin[2] == 1 + 0.5 + 3 + 0.25); /* 0B0 after 1B0 */
  gp_simulation_free(simulation);
  costs.blocking = true; /* 0F1 waits until the value of 0F0 has left */
  simulation = run(s, &costs);
  gp_simulation_times(simulation, 0, &begin, &finish);
  CHECK(begin[1] == 1.5);
  gp_simulation_free(simulation);
  gp_schedule_free(s);
}

TEST(stages_of_one_device_hand_values_over_at_once) {
  static const int32_t both[] = {0, 0};
  static const double hop[] = {100};
  gp_schedule *s = schedule_of((const char *[]){"0F0,1F0,1B0,0B0"}, 1, 2, both);
  gp_costs costs = unit_costs(2);
  costs.hop[0] = costs.hop[1] = hop;
  gp_simulation *simulation = run(s, &costs);
  CHECK(gp_simulation_makespan(simulation) == 6);
  CHECK(gp_simulation_device(simulation, 0)->peak_live == 2);
  gp_simulation_free(simulation);
  gp_schedule_free(s);
}

TEST(joined_actions_begin_and_end_together) {
  static const char *const rows[] = {"0F0,(0F1;0B0)OVERLAP_F_B,0B1", "1F0,1B0,1F1,1B1"};
  static const double wanted[] = {0, 4, 4, 10};
  gp_schedule *s = schedule_of(rows, 2, 2, NULL);
  gp_costs costs = unit_costs(2);
  gp_simulation *simulation = run(s, &costs);
  const double *begin, *finish;
  gp_simulation_times(simulation, 0, &begin, &finish);
  for (int a = 0; a < 4; a++) CHECK(begin[a] == wanted[a]);
  CHECK(finish[1] == 7 && finish[2] == 7);
  CHECK(gp_simulation_device(simulation, 0)->peak_live == 2);
  gp_simulation_free(simulation);
  costs.joined = 0.5;
  simulation = run(s, &costs);
  CHECK(gp_simulation_makespan(simulation) == 10.5);
  gp_simulation_free(simulation);
  gp_schedule_free(s);
}

TEST(empty_cells_take_no_time) {
  static const char *const rows[] = {",0F0,,0F1,0B0,,0F2,0B1,0B2,", "1F0,1B0,1F1,1B1,1F2,1B2"};
  gp_schedule *s = schedule_of(rows, 2, 2, NULL);
  gp_costs costs = unit_costs(2);
  gp_simulation *simulation = run(s, &costs);
  CHECK(gp_simulation_makespan(simulation) == 12);
  CHECK(gp_simulation_device(simulation, 0)->work == 9);
  gp_simulation_free(simulation);
  gp_schedule_free(s);
}

TEST(bytes_are_held_until_w_and_partly_given_back_by_i) {
  static const double activation[] = {10}, after[] = {4}, resident[] = {1000};
  gp_schedule *s = schedule_of((const char *[]){"0F0,0I0,0F1,0I1,0W0,0W1"}, 1, 1, NULL);
  gp_costs costs = unit_costs(1);
  costs.activation = activation;
  costs.after_input = after;
  costs.resident = resident;
  gp_simulation *simulation = run(s, &costs);
  CHECK(gp_simulation_device(simulation, 0)->peak_live == 2);
  CHECK(gp_simulation_device(simulation, 0)->peak_bytes == 1000 + 4 + 10);
  gp_simulation_free(simulation);
  costs.after_input = NULL;
  simulation = run(s, &costs);
  CHECK(gp_simulation_device(simulation, 0)->peak_bytes == 1000 + 10 + 10);
  gp_simulation_free(simulation);
  gp_schedule_free(s);
}

TEST(forward_passes_alone_keep_nothing) {
  gp_schedule *s = schedule_of((const char *[]){"0F0,0F1,0F2"}, 1, 1, NULL);
  gp_costs costs = unit_costs(1);
  gp_simulation *simulation = run(s, &costs);
  CHECK(gp_simulation_device(simulation, 0)->peak_live == 1);
  CHECK(gp_simulation_makespan(simulation) == 3);
  gp_simulation_free(simulation);
  gp_schedule_free(s);
}

/* ---- refusals and failing allocations -------------------------------------------------------- */

TEST(costs_that_are_no_times_are_refused) {
  static const double bad[] = {1, -1}, endless[] = {1, INFINITY}, none[] = {NAN, 1};
  const double *lists[] = {bad, endless, none};
  gp_schedule *s = schedule_of(one_f_one_b, 2, 2, NULL);
  for (int i = 0; i < 3; i++) {
    gp_simulation *simulation = NULL;
    gp_costs costs = unit_costs(2);
    costs.act[GP_ACT_F] = lists[i];
    CHECK_STATUS(gp_simulation_new(s, &costs, &simulation), GP_ERANGE);
    CHECK_TEXT(gp_error_text(), "expected a number from 0 on");
  }
  gp_costs costs = unit_costs(3);
  gp_simulation *simulation = NULL;
  CHECK_STATUS(gp_simulation_new(s, &costs, &simulation), GP_ERANGE);
  CHECK_TEXT(gp_error_text(), "costs of 3 stages, the schedule has 2");
  gp_schedule_free(s);
}

TEST(no_failed_allocation_leaks) {
  gp_schedule *s = schedule_of(one_f_one_b, 2, 2, NULL);
  gp_costs costs = unit_costs(2);
  size_t live = gp_memory().live;
  int failures = 0;
  costs.act[GP_ACT_B] = two;
  costs.capacity = 1;
  for (uint64_t n = 1;; n++, failures++) {
    gp_simulation *simulation = NULL;
    gp_memory_fail_at(n);
    gp_status status = gp_simulation_new(s, &costs, &simulation);
    gp_memory_fail_at(0);
    gp_simulation_free(simulation);
    CHECK(gp_memory().live == live);
    if (status == GP_OK) break;
    CHECK(status == GP_ENOMEM);
  }
  CHECK(failures > 10);
  gp_schedule_free(s);
}

TEST_MAIN(times_of_one_f_one_b_are_those_worked_out_by_hand,
          a_value_that_crosses_devices_arrives_later, stages_of_one_device_hand_values_over_at_once,
          joined_actions_begin_and_end_together, empty_cells_take_no_time,
          bytes_are_held_until_w_and_partly_given_back_by_i, forward_passes_alone_keep_nothing,
          costs_that_are_no_times_are_refused, no_failed_allocation_leaks)
