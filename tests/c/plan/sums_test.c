/* tests/c/plan/sums_test.c - the partial sums and merges of tasks add up to the tree of sums.
 *
 * What the engine does with numbers is done here with texts: a task that opens a partial sum sets
 * its text, one that adds appends to it, and a merge joins two texts in brackets. */
#include "toy_plan.h"

enum { MOST = 24, LENGTH = 512 };

typedef char expression[LENGTH];

static void join(expression to, const expression from) {
  expression left, right;
  snprintf(left, sizeof left, "%s", to);
  snprintf(right, sizeof right, "%s", from);
  snprintf(to, LENGTH, "(%.240s+%.240s)", left, right);
}

/* The sum of leaves first .. end - 1 by definition: the left block is the largest power of two that
 * is smaller. */
static void define(expression sum, int first, int end, int micros, int group) {
  expression right;
  int width = 1;
  if (end - first == 1) {
    int used = 0;
    for (int i = first * group; i < micros && i < end * group; i++)
      used += snprintf(sum + used, (size_t)(LENGTH - used), "%s%d", used ? " " : "", i);
    return;
  }
  while (2 * width < end - first) width *= 2;
  define(sum, first, first + width, micros, group);
  define(right, first + width, end, micros, group);
  join(sum, right);
}

/* Follow the tasks of a device; returns how many partial sums were alive at once beside the
 * first. */
static int follow(const gp_plan *plan, int32_t device, expression sums[MOST]) {
  int most = 0;
  for (int32_t t = plan->first[device]; t < plan->first[device + 1]; t++) {
    const gp_task *task = &plan->tasks[t];
    if (task->op != GP_ACT_B && task->op != GP_ACT_W) continue;
    char *own = sums[task->partial];
    const size_t used = task->opens ? 0 : strlen(own);
    snprintf(own + used, LENGTH - used, "%s%d", used ? " " : "", (int)task->micro);
    for (int32_t k = 0; k < task->merges; k++)
      join(sums[task->partial - k - 1], sums[task->partial - k]);
    if (task->partial > most) most = task->partial;
  }
  return most;
}

static void check_tree(toy_order order, int micros, int group) {
  const toy_spec spec = {.order = order, .stages = 2, .micros = micros, .sum_group = group};
  toy_planned p;
  toy_plan(&spec, &p);
  CHECK_STATUS(p.status, GP_OK);
  for (int32_t d = 0; !p.status && d < 2; d++) {
    expression sums[MOST] = {{0}}, wanted;
    define(wanted, 0, (micros + group - 1) / group, micros, group);
    CHECK(follow(p.plan, d, sums) == p.plan->partial_count[d]);
    if (strcmp(sums[0], wanted)) printf("%d of %d: %s, not %s\n", micros, group, sums[0], wanted);
    CHECK(!strcmp(sums[0], wanted));
  }
  if (!p.status) toy_plan_free(&p);
}

TEST(any_number_of_micro_batches_is_added_by_the_tree) {
  for (int group = 1; group <= 3; group++)
    for (int micros = 1; micros <= 20; micros++) check_tree(ONE_F_ONE_B, micros, group);
}

TEST(the_tree_does_not_depend_on_the_order_of_a_schedule) {
  const toy_order orders[] = {NAIVE, GPIPE, LIFO, WEIGHTS_LAST, NAIVE_APART};
  for (size_t k = 0; k < sizeof orders / sizeof *orders; k++) check_tree(orders[k], 8, 1);
}

/* A counter of k binary digits has k ones at most. */
TEST(a_plan_holds_the_logarithm_of_its_leaves_as_partial_sums) {
  for (int digits = 0; digits <= 4; digits++) {
    const toy_spec spec = {.order = GPIPE, .stages = 1, .micros = 1 << digits, .sum_group = 1};
    toy_planned p;
    toy_plan(&spec, &p);
    CHECK_STATUS(p.status, GP_OK);
    if (p.status) continue;
    CHECK(p.plan->partial_count[0] == digits);
    CHECK(p.plan->partials[0].bytes == (size_t)digits * gp_plan_partial_bytes(p.plan, 0));
    toy_plan_free(&p);
  }
}

TEST(a_plan_without_a_tree_has_no_partial_sums) {
  const toy_spec spec = {.order = GPIPE, .stages = 1, .micros = 8};
  toy_planned p;
  toy_plan(&spec, &p);
  CHECK_STATUS(p.status, GP_OK);
  if (p.status) return;
  CHECK(p.plan->partial_count[0] == 0 && p.plan->partials[0].bytes == 0);
  for (int32_t t = 0; t < toy_tasks(p.plan); t++)
    CHECK(p.plan->tasks[t].partial == 0 && p.plan->tasks[t].merges == 0);
  toy_plan_free(&p);
}

TEST_MAIN(any_number_of_micro_batches_is_added_by_the_tree,
          the_tree_does_not_depend_on_the_order_of_a_schedule,
          a_plan_holds_the_logarithm_of_its_leaves_as_partial_sums,
          a_plan_without_a_tree_has_no_partial_sums)
