/* tests/c/schedule/runner_test.c - lists run without work: whose turn it is, and what wakes a
 * device. */
#include "schedule/runner.h"

#include "base/memory.h"
#include "schedule/messages.h"
#include "schedule_rows.h"
#include "test.h"

/* ---- turns --------------------------------------------------------------------------------- */

/* Takes turns until all sleep, and compares them with a text of digits. */
static void check_turns(gp_turns *t, const char *wanted) {
  char text[32] = "";
  size_t used = 0;
  for (int32_t d; (d = gp_turns_next(t)) >= 0 && used < sizeof text - 1;)
    text[used++] = (char)('0' + d);
  CHECK(strcmp(text, wanted) == 0);
}

static void wake(gp_turns *t, const char *devices) {
  for (; *devices; devices++) gp_turns_wake(t, *devices - '0');
}

TEST(a_queue_takes_devices_in_the_order_in_which_they_were_woken) {
  gp_turns t;
  CHECK_STATUS(gp_turns_new(4, GP_TURNS_QUEUE, &t), GP_OK);
  gp_turns_begin(&t, NULL);
  wake(&t, "2032");
  CHECK(gp_turns_next(&t) == 2);
  wake(&t, "12");
  check_turns(&t, "0312");
  wake(&t, "3210");
  check_turns(&t, "3210");
  gp_turns_free(&t);
}

TEST(a_sweep_goes_on_behind_the_last_device) {
  gp_turns t;
  CHECK_STATUS(gp_turns_new(4, GP_TURNS_SWEEP, &t), GP_OK);
  gp_turns_begin(&t, NULL);
  wake(&t, "21");
  CHECK(gp_turns_next(&t) == 1 && t.sweep == 0);
  wake(&t, "103");
  CHECK(gp_turns_next(&t) == 2 && t.sweep == 0);
  CHECK(gp_turns_next(&t) == 3 && t.sweep == 0);
  CHECK(gp_turns_next(&t) == 0 && t.sweep == 1);
  CHECK(gp_turns_next(&t) == 1 && t.sweep == 1);
  CHECK(gp_turns_next(&t) == -1);
  gp_turns_free(&t);
}

TEST(the_first_device_of_an_order_always_comes_before_others) {
  gp_turns t;
  const int32_t order[] = {3, 0, 2, 1};
  CHECK_STATUS(gp_turns_new(4, GP_TURNS_FIRST, &t), GP_OK);
  gp_turns_begin(&t, order);
  wake(&t, "0123");
  CHECK(gp_turns_next(&t) == 3);
  CHECK(gp_turns_next(&t) == 0);
  wake(&t, "3");
  check_turns(&t, "321");
  gp_turns_free(&t);
}

TEST(more_than_64_devices_have_turns) {
  gp_turns t;
  for (int rule = GP_TURNS_QUEUE; rule <= GP_TURNS_FIRST; rule++) {
    CHECK_STATUS(gp_turns_new(200, (gp_turn_rule)rule, &t), GP_OK);
    gp_turns_begin(&t, NULL);
    for (int32_t d = 0; d < 200; d += 63) gp_turns_wake(&t, d);
    for (int32_t d = 0; d < 200; d += 63) CHECK(gp_turns_next(&t) == d);
    CHECK(gp_turns_next(&t) == -1);
    gp_turns_free(&t);
  }
}

/* ---- lists --------------------------------------------------------------------------------- */

/* Two devices with three actions each. */
static const gp_action six[] = {{.micro = 0}, {.micro = 1, .joined = true},    {.micro = 2},
                                {.micro = 3}, {.op = GP_ACT_IDLE, .micro = 4}, {.micro = 5}};
static const int32_t firsts[] = {0, 3, 6};

typedef struct user {
  gp_runner runner;
  int32_t needs[6]; /* per action: another one, or what else it lacks at first */
  char ran[16];
  size_t used;
} user;

static int32_t lacks(void *context, int32_t device, int32_t action) {
  user *u = context;
  const int32_t need = u->needs[action];
  CHECK(action >= firsts[device] && action < firsts[device + 1]);
  if (need >= 0) return u->runner.order[need] < 0 ? need : GP_LACKS_NOTHING;
  u->needs[action] = GP_LACKS_NOTHING;
  return need;
}

static gp_status ran(void *context, int32_t device, int32_t begin, int32_t end) {
  user *u = context;
  for (int32_t a = begin; a < end; a++)
    u->ran[u->used++] = (char)('0' + u->runner.actions[a].micro);
  u->ran[u->used] = 0;
  gp_runner_wake(&u->runner, 1 - device);
  return u->used > 8 ? gp_fail(GP_EINVAL, "too many") : GP_OK;
}

static void check_run(gp_turn_rule rule, bool skip_empty, const int32_t needs[6],
                      const char *wanted, int32_t left) {
  int32_t order[6];
  user u = {.runner = {.actions = six,
                       .first = firsts,
                       .device_count = 2,
                       .rule = rule,
                       .skip_empty = skip_empty,
                       .order = order,
                       .lacks = lacks,
                       .ran = ran}};
  u.runner.context = &u;
  memcpy(u.needs, needs, sizeof u.needs);
  CHECK_STATUS(gp_runner_new(&u.runner), GP_OK);
  CHECK_STATUS(gp_runner_run(&u.runner, NULL), GP_OK);
  if (strcmp(u.ran, wanted)) printf("ran %s, expected %s\n", u.ran, wanted);
  CHECK(strcmp(u.ran, wanted) == 0);
  CHECK(u.runner.left == left);
  for (size_t i = 0; i < u.used; i++) CHECK(skip_empty || order[u.ran[i] - '0'] == (int32_t)i);
  gp_runner_free(&u.runner);
}

#define NEEDS(...)                                                                                 \
  (const int32_t[6]) { __VA_ARGS__ }

TEST(joined_actions_run_together) {
  check_run(GP_TURNS_QUEUE, false, NEEDS(-1, -1, -1, -1, -1, -1), "031245", 0);
  check_run(GP_TURNS_SWEEP, false, NEEDS(-1, -1, -1, -1, -1, -1), "031245", 0);
  check_run(GP_TURNS_FIRST, false, NEEDS(-1, -1, -1, -1, -1, -1), "012345", 0);
  check_run(GP_TURNS_FIRST, false, NEEDS(-1, -1, 3, -1, -1, -1), "031245", 0);
}

TEST(empty_cells_take_a_turn_unless_they_are_skipped) {
  check_run(GP_TURNS_QUEUE, true, NEEDS(-1, -1, -1, -1, -1, -1), "03125", 0);
}

TEST(what_lacks_an_action_waits_for_it) {
  check_run(GP_TURNS_QUEUE, false, NEEDS(5, -1, -1, -1, -1, -1), "345012", 0);
  check_run(GP_TURNS_QUEUE, false, NEEDS(-1, -1, 1, -1, -1, -1), "0345", 2); /* its own pair */
  check_run(GP_TURNS_FIRST, false, NEEDS(3, -1, -1, 0, -1, -1), "", 6);
}

TEST(what_lacks_a_word_or_a_sweep_is_asked_again) {
  check_run(GP_TURNS_QUEUE, false, NEEDS(GP_LACKS_WORD, -1, -1, -1, -1, -1), "304125", 0);
  check_run(GP_TURNS_SWEEP, false, NEEDS(GP_LACKS_SWEEP, -1, -1, -1, -1, -1), "304125", 0);
}

/* ---- without memory ------------------------------------------------------------------------- */

TEST(nothing_is_kept_where_memory_runs_out) {
  const char *rows[] = {"0F0,0F1,0B0,0B1", "1F0,1B0,1F1,1B1"};
  const int32_t placement[] = {0, 1};
  gp_schedule *s;
  CHECK_STATUS(schedule_of_rows(&(gp_schedule_spec){.stage_count = 2, .placement = placement}, rows,
                                2, &s, NULL),
               GP_OK);
  for (uint64_t n = 1; n < 40; n++) {
    gp_messages m = {0};
    gp_rows *with = NULL;
    int steps;
    gp_memory_fail_at(n);
    gp_status status = gp_schedule_messages(s, &m);
    if (!status) status = gp_messages_pair(&m, 2);
    if (!status) status = gp_schedule_comms(s, &with);
    if (!status) status = gp_schedule_steps(s, NULL, &steps);
    gp_memory_fail_at(0);
    CHECK(status == GP_OK || status == GP_ENOMEM);
    gp_messages_free(&m);
    gp_rows_free(with);
  }
  gp_schedule_free(s);
}

TEST_MAIN(a_queue_takes_devices_in_the_order_in_which_they_were_woken,
          a_sweep_goes_on_behind_the_last_device,
          the_first_device_of_an_order_always_comes_before_others, more_than_64_devices_have_turns,
          joined_actions_run_together, empty_cells_take_a_turn_unless_they_are_skipped,
          what_lacks_an_action_waits_for_it, what_lacks_a_word_or_a_sweep_is_asked_again,
          nothing_is_kept_where_memory_runs_out)
