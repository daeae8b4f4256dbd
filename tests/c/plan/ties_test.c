/* tests/c/plan/ties_test.c - which accumulators of tied weights need no sum at the end of a
 * mini-batch. */
#include "toy_plan.h"

/* A model whose embedding and last layer share a weight, and how to plan it. */
typedef struct tie_spec {
  int stages, micros;
  bool on_host, added, thrice; /* thrice: a third layer shares it too */
} tie_spec;

static gp_ref ids_of(toy *t) {
  gp_meta meta;
  gp_ref ids = GP_NONE;
  CHECK_STATUS(gp_meta_make(GP_I64, &SHAPE(t->rows), &meta), GP_OK);
  CHECK_STATUS(gp_trace_input(t->trace, GP_INPUT_BATCH, &meta, &ids), GP_OK);
  return ids;
}

static toy model_of(const tie_spec *spec, gp_ref *loss) {
  toy t = toy_new(2);
  gp_ref ids = ids_of(&t);
  toy_layer(&t, 0);
  gp_param *w = toy_param(&t, SHAPE(TOY_WIDTH, TOY_WIDTH), false, false);
  t.value = toy_op2(&t, GP_OP_embedding, ids, toy_use(&t, w));
  for (int l = 1; l <= (spec->thrice ? 2 : 1); l++) {
    toy_layer(&t, l);
    toy_linear_of(&t, w, NULL);
  }
  *loss = toy_loss(&t, spec->thrice ? 3 : 2);
  return t;
}

/* Counts the ties of the plan; *tie receives the first one, *ops the ops that write and that
 * add. */
static int32_t ties_of(const tie_spec *spec, gp_tie *tie, gp_op ops[2]) {
  static const gp_plan_device_spec own[2] = {{.space = 1}, {.space = 1}};
  int layers[] = {spec->stages == 1 ? 2 + spec->thrice : 1, 1};
  gp_ref loss;
  toy_space space;
  gp_plan *plan = NULL;
  toy t = model_of(spec, &loss);
  toy_space_set(&space, layers, spec->stages);
  toy_space_add(&space, &t);
  space.env.devices = spec->on_host ? NULL : own;
  space.env.added = spec->added;
  gp_schedule *schedule = toy_order_of(GPIPE, spec->stages, spec->micros);
  gp_plan_spec of = {.schedule = schedule};
  of.shapes[0] = (gp_traced_shape){.trace = t.trace,
                                   .rows = 2,
                                   .micros = spec->micros,
                                   .loss_sum = loss,
                                   .loss_count = GP_NONE,
                                   .constant_count = 1};
  CHECK_STATUS(toy_space_plan(&space, &of, &plan), GP_OK);
  t.trace = NULL;
  int32_t count = plan ? plan->tie_count : -1;
  if (count > 0) *tie = plan->ties[0];
  for (int32_t i = 0; count > 0 && i < plan->first[1]; i++) {
    if (!plan->tasks[i].opens) continue;
    ops[0] = plan->tasks[i].program->instrs[tie->writer].op;
    ops[1] = plan->tasks[i].program->instrs[tie->adder].op;
  }
  gp_plan_free(plan);
  gp_layout_free(&space.layout);
  gp_schedule_free(schedule);
  toy_free(&t);
  return count;
}

TEST(one_micro_batch_adds_to_the_main_accumulator_of_its_stage) {
  gp_tie tie = {0};
  gp_op ops[2] = {0};
  CHECK(ties_of(&(tie_spec){.stages = 1, .micros = 1}, &tie, ops) == 1);
  CHECK(tie.stage == 0 && tie.extra == 0 && tie.output == 0);
  CHECK(tie.to.base == GP_BASE_GRAD && tie.to.offset == 0);
  CHECK(ops[0] == GP_OP_linear_dw && ops[1] == GP_OP_embedding_dw);
}

TEST(sums_of_their_own_stay_where_another_order_would_show) {
  const tie_spec none[] = {{.stages = 1, .micros = 2},
                           {.stages = 2, .micros = 1},
                           {.stages = 1, .micros = 1, .on_host = true},
                           {.stages = 1, .micros = 1, .added = true},
                           {.stages = 1, .micros = 1, .thrice = true}};
  gp_tie tie;
  gp_op ops[2];
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) CHECK(ties_of(&none[i], &tie, ops) == 0);
}

TEST_MAIN(one_micro_batch_adds_to_the_main_accumulator_of_its_stage,
          sums_of_their_own_stay_where_another_order_would_show)
