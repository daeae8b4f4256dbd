/* tests/c/plan/transfers_test.c - what GPUs of two ranks send each other: the order is the same on
 * both sides and comes to its end, and one that does not is named. */
#include "plan/edge/transfers.h"
#include "toy_plan.h"

/* Lets each device of a plan be the GPU of a rank of its own. */
static void spread(gp_plan *plan) {
  for (int32_t d = 0; d < plan->device_count; d++)
    plan->devices[d].spec = (gp_plan_device_spec){.space = d + 1, .rank = d};
}

static void make(const toy_spec *spec, toy_planned *made) {
  toy_plan(spec, made);
  CHECK_STATUS(made->status, GP_OK);
  if (made->plan) spread(made->plan);
}

static const toy_spec two = {.kind = GP_PLAN_STEP, .order = ONE_F_ONE_B, .stages = 2, .micros = 2};

TEST(transfers_are_listed_as_the_makers_tasks_run) {
  toy_planned p;
  char text[512];
  size_t length;
  make(&two, &p);
  CHECK_STATUS(gp_plan_transfers(p.plan, text, sizeof text, &length), GP_OK);
  CHECK_TEXT(text, "device 0 (rank 0) to 1 (rank 1): the value of 0F0, the value of 0F1\n"
                   "device 1 (rank 1) to 0 (rank 0): the value of 1B0, the value of 1B1\n");
  toy_plan_free(&p);
}

TEST(devices_of_one_rank_and_of_the_host_have_none) {
  toy_planned p;
  char text[8];
  size_t length;
  make(&two, &p);
  p.plan->devices[1].spec.rank = 0;
  CHECK_STATUS(gp_plan_transfers(p.plan, text, sizeof text, &length), GP_OK);
  CHECK(length == 0);
  p.plan->devices[1].spec = (gp_plan_device_spec){.rank = 1};
  CHECK_STATUS(gp_plan_transfers(p.plan, text, sizeof text, &length), GP_OK);
  CHECK(length == 0);
  toy_plan_free(&p);
}

/* Two stages of a device read a skip: it crosses once. */
TEST(a_value_crosses_once_for_each_device) {
  toy_planned p;
  gp_transfers t;
  make(&(toy_spec){.kind = GP_PLAN_STEP, .order = GPIPE, .stages = 4, .micros = 3, .skips = true},
       &p);
  CHECK_STATUS(gp_transfers_new(p.plan, &t), GP_OK);
  for (int32_t i = 1; i < t.count; i++) {
    const gp_transfer *a = &t.list[i - 1], *b = &t.list[i];
    CHECK(a->from != b->from || a->to != b->to || a->made != b->made || a->use != b->use);
    CHECK(p.plan->tasks[b->read].uses != NULL);
  }
  gp_transfers_free(&t);
  toy_plan_free(&p);
}

TEST(every_order_of_tasks_comes_to_its_end) {
  int proved = 0;
  for (toy_order order = 0; order <= FORWARD; order++)
    for (int stages = 2; order != TOY_ORDERS && stages <= 5; stages++)
      for (int micros = 1; micros <= 9; micros += 4)
        for (int skips = 0; skips < 2; skips++) {
          toy_planned p;
          make(&(toy_spec){.kind = order == FORWARD ? GP_PLAN_EVALUATE : GP_PLAN_STEP,
                           .order = order,
                           .stages = stages,
                           .micros = micros,
                           .skips = skips},
               &p);
          CHECK_STATUS(gp_plan_prove_transfers(p.plan), GP_OK);
          proved++;
          toy_plan_free(&p);
        }
  CHECK(proved == 7 * 4 * 3 * 2);
}

/* ---- planted faults -------------------------------------------------------------------------- */

static gp_status prove_and_free(gp_transfers *t, toy_planned *p) {
  const gp_status status = gp_transfers_prove(t);
  gp_transfers_free(t);
  toy_plan_free(p);
  return status;
}

TEST(another_order_on_the_other_side_is_named) {
  toy_planned p;
  gp_transfers t;
  make(&two, &p);
  CHECK_STATUS(gp_transfers_new(p.plan, &t), GP_OK);
  t.list[0].received = 1;
  t.list[1].received = 0;
  CHECK_STATUS(prove_and_free(&t, &p), GP_ESCHEDULE);
  CHECK_TEXT(gp_error_text(),
             "device 0 (rank 0) sends what 0F0 makes where device 1 (rank 1) receives what 0F1 "
             "makes, expected the same order on both sides");
}

static int32_t task_of(const gp_plan *plan, gp_act op, int32_t stage, int32_t micro) {
  int32_t t = 0;
  while (plan->tasks[t].op != op || plan->tasks[t].stage != stage || plan->tasks[t].micro != micro)
    t++;
  return t;
}

/* Rank 1 posts what it receives first behind a task that needs it. */
TEST(a_receive_that_is_posted_too_late_is_named_with_its_cycle) {
  toy_planned p;
  gp_transfers t;
  make(&two, &p);
  CHECK_STATUS(gp_transfers_new(p.plan, &t), GP_OK);
  t.list[0].behind = task_of(p.plan, GP_ACT_B, 1, 0);
  CHECK_STATUS(prove_and_free(&t, &p), GP_ESCHEDULE);
  CHECK_TEXT(gp_error_text(), "1F0 (device 1, rank 1) waits for the receive of what 0F0 makes for "
                              "device 1 (rank 1)");
  CHECK_TEXT(gp_error_text(), "waits for 1B0 (device 1, rank 1), which comes behind 1F0");
}

/* Each rank posts what it receives behind a task that waits for the other one: neither sends. */
TEST(ranks_that_wait_for_each_other_are_named_with_their_tasks) {
  toy_planned p;
  gp_transfers t;
  make(&two, &p);
  CHECK_STATUS(gp_transfers_new(p.plan, &t), GP_OK);
  CHECK(t.count == 4 && t.pair_count == 2);
  t.list[1].behind = task_of(p.plan, GP_ACT_B, 1, 0); /* of 0F1, on rank 1 */
  t.list[2].behind = task_of(p.plan, GP_ACT_B, 0, 1); /* of 1B0, on rank 0 */
  CHECK_STATUS(prove_and_free(&t, &p), GP_ESCHEDULE);
  CHECK_TEXT(gp_error_text(), "0B0 (device 0, rank 0) waits for the receive of what 1B0 makes");
  CHECK_TEXT(gp_error_text(), "waits for 0B1 (device 0, rank 0)");
}

/* With one slot GPipe's second F waits for a backward pass that waits for it. */
TEST(too_few_slots_are_named_with_their_cycle) {
  toy_planned p;
  gp_transfers t;
  make(&(toy_spec){.kind = GP_PLAN_STEP, .order = GPIPE, .stages = 2, .micros = 2}, &p);
  CHECK_STATUS(gp_transfers_new(p.plan, &t), GP_OK);
  for (int32_t e = 0; e < p.plan->edge_count; e++) p.plan->channels[e].slots = 1;
  CHECK_STATUS(prove_and_free(&t, &p), GP_ESCHEDULE);
  CHECK_TEXT(gp_error_text(), "0F1 (device 0, rank 0) waits for ");
}

TEST_MAIN(transfers_are_listed_as_the_makers_tasks_run,
          devices_of_one_rank_and_of_the_host_have_none, a_value_crosses_once_for_each_device,
          every_order_of_tasks_comes_to_its_end, another_order_on_the_other_side_is_named,
          a_receive_that_is_posted_too_late_is_named_with_its_cycle,
          ranks_that_wait_for_each_other_are_named_with_their_tasks,
          too_few_slots_are_named_with_their_cycle)
