/* tests/c/plan/opens_test.c - which tasks write gradients that others add to, and what they
 * write. */
#include "toy_plan.h"

/* Writes the tasks of a device that add to gradients, with ! where one writes them: "B0! B1 B2". */
static const char *adders_of(const gp_plan *plan, int32_t device, char text[256]) {
  size_t used = 0;
  text[0] = 0;
  for (int32_t t = plan->first[device]; t < plan->first[device + 1] && used < 240; t++) {
    const gp_task *task = &plan->tasks[t];
    CHECK(!task->opens || task->op == GP_ACT_B || task->op == GP_ACT_W);
    if (task->op != GP_ACT_B && task->op != GP_ACT_W) continue;
    used += (size_t)snprintf(text + used, 256 - used, "%s%s%d%s", used ? " " : "",
                             gp_act_name(task->op), (int)task->micro, task->opens ? "!" : "");
  }
  return text;
}

static void check_adders(const toy_spec *spec, const char *wanted) {
  char made[256];
  toy_planned p;
  toy_plan(spec, &p);
  CHECK_STATUS(p.status, GP_OK);
  for (int32_t d = 0; !p.status && d < spec->stages; d++) {
    adders_of(p.plan, d, made);
    if (strcmp(made, wanted)) printf("device %d: '%s', not '%s'\n", (int)d, made, wanted);
    CHECK(!strcmp(made, wanted));
    CHECK(p.plan->opened[d] == (strchr(wanted, '!') != NULL));
  }
  if (!p.status) toy_plan_free(&p);
}

TEST(the_first_task_of_a_stage_that_adds_to_its_gradients_writes_them) {
  toy_spec spec = {.order = GPIPE, .remat = GP_REMAT_ALWAYS, .stages = 2, .micros = 3};
  check_adders(&spec, "B0! B1 B2");
  spec.smaller = 2;
  check_adders(&spec, "B0! B1 B2");
  spec.order = LIFO;
  check_adders(&spec, "W0! W1 W2");
  spec.order = WEIGHTS_LAST;
  check_adders(&spec, "W0! W1 W2");
}

TEST(nothing_is_written_where_nothing_is_trained) {
  toy_spec spec = {.order = GPIPE, .stages = 1, .micros = 2, .frozen = true};
  check_adders(&spec, "B0 B1");
  spec = (toy_spec){.kind = GP_PLAN_EVALUATE, .order = FORWARD, .stages = 2, .micros = 2};
  check_adders(&spec, "");
}

/* A stage has only one parameter: its gradient begins where the area does. */
TEST(a_program_says_which_gradients_it_writes) {
  toy_spec spec = {.order = ONE_F_ONE_B, .stages = 2, .micros = 2};
  toy_planned p;
  toy_plan(&spec, &p);
  CHECK_STATUS(p.status, GP_OK);
  if (p.status) return;
  for (int32_t t = 0; t < toy_tasks(p.plan); t++) {
    const gp_task *task = &p.plan->tasks[t];
    if (!task->opens) continue;
    const gp_program *program = task->program;
    CHECK(program->opened_count == 1);
    CHECK(program->opened[0].base == GP_BASE_GRAD && program->opened[0].offset == 0);
    CHECK(program->opened[0].bytes == TOY_WIDTH * TOY_WIDTH * sizeof(float));
  }
  toy_plan_free(&p);
}

TEST_MAIN(the_first_task_of_a_stage_that_adds_to_its_gradients_writes_them,
          nothing_is_written_where_nothing_is_trained, a_program_says_which_gradients_it_writes)
