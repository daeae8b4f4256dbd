/* tests/c/plan/share_test.c - the plan for one device out of many equals that device's part of the
 * whole plan. */
#include "toy_plan.h"

static void check_uses(const gp_task *a, const gp_task *b) {
  CHECK(a->use_count == b->use_count);
  for (int32_t u = 0; u < a->use_count && u < b->use_count; u++)
    CHECK(!memcmp(&a->uses[u], &b->uses[u], sizeof a->uses[u]));
}

static void check_program(const gp_program *a, const gp_program *b) {
  CHECK(!a == !b);
  if (!a || !b) return;
  CHECK(a->instr_count == b->instr_count && a->temp_bytes == b->temp_bytes);
  for (int32_t n = 0; n < a->instr_count; n++)
    CHECK(a->instrs[n].op == b->instrs[n].op && a->instrs[n].node == b->instrs[n].node &&
          !memcmp(a->instrs[n].in, b->instrs[n].in, sizeof a->instrs[n].in) &&
          !memcmp(a->instrs[n].out, b->instrs[n].out, sizeof a->instrs[n].out));
}

static void check_task(const gp_task *a, const gp_task *b) {
  CHECK(a->op == b->op && a->stage == b->stage && a->micro == b->micro && a->shape == b->shape);
  CHECK(a->kept == b->kept && a->version == b->version);
  CHECK(!memcmp(a->slot, b->slot, sizeof a->slot));
  check_uses(a, b);
  check_program(a->program, b->program);
}

static bool is_party(const gp_plan *plan, int32_t edge, int32_t device) {
  const gp_edge *e = gp_plan_edge(plan, edge);
  bool party = plan->placement[e->from] == device;
  for (int32_t r = 0; r < e->to_count; r++) party |= plan->placement[e->to[r]] == device;
  return party;
}

/* The numbers of a device's tasks have the order of the whole plan's; numbers: per task of the
 * whole plan. */
static void check_numbers(const gp_plan *whole, const int32_t *numbers) {
  for (int32_t a = 0; a < toy_tasks(whole); a++)
    for (int32_t b = 0; b < a; b++) {
      const gp_task *x = &whole->tasks[a], *y = &whole->tasks[b];
      if (x->op > GP_ACT_R || y->op > GP_ACT_R) continue;
      CHECK((x->order < y->order) == (numbers[a] < numbers[b]));
    }
}

static void check_share(const gp_plan *whole, const gp_plan *share, int32_t device,
                        int32_t *numbers) {
  int32_t begin = whole->first[device], count = whole->first[device + 1] - begin;
  CHECK(toy_tasks(share) == count && gp_plan_task_count(share, device) == count);
  for (int32_t t = 0; t < count && t < toy_tasks(share); t++) {
    check_task(&whole->tasks[begin + t], &share->tasks[t]);
    numbers[begin + t] = share->tasks[t].order;
  }
  for (int32_t e = 0; e < whole->edge_count; e++)
    CHECK(share->channels[e].slots == (is_party(whole, e, device) ? whole->channels[e].slots : 0));
  CHECK(gp_plan_bytes(share, device) == gp_plan_bytes(whole, device));
  CHECK(gp_plan_bytes(share, (device + 1) % whole->device_count) == 0 || whole->device_count == 1);
}

static void check(toy_spec spec) {
  int32_t numbers[1024];
  toy_planned whole, share;
  toy_plan(&spec, &whole);
  CHECK_STATUS(whole.status, GP_OK);
  CHECK(toy_tasks(whole.plan) <= 1024);
  for (spec.share = 1; spec.share <= spec.stages; spec.share++) {
    toy_plan(&spec, &share);
    CHECK_STATUS(share.status, GP_OK);
    if (!share.status) check_share(whole.plan, share.plan, spec.share - 1, numbers);
    toy_plan_free(&share);
  }
  check_numbers(whole.plan, numbers);
  toy_plan_free(&whole);
}

TEST(shares_are_parts_of_the_whole) {
  for (toy_order order = 0; order <= FORWARD; order++)
    for (int stages = 1; order != TOY_ORDERS && stages <= 4; stages++)
      for (int micros = 1; micros <= 7; micros += 3)
        for (int kind = 0; kind < 3; kind++)
          check((toy_spec){.kind = order == FORWARD ? GP_PLAN_EVALUATE : GP_PLAN_STEP,
                           .order = order,
                           .remat = (gp_remat)kind,
                           .stages = stages,
                           .micros = micros,
                           .smaller = micros / 2,
                           .skips = kind == 1,
                           .frozen = kind == 2});
}

/* Plans one device from the description of a pipeline, without making the pipeline. */
static gp_status plan_apart(const toy_spec *spec, const toy *model, gp_ref loss, int device,
                            const gp_plan_device_spec *devices, gp_plan **plan) {
  int32_t stage_of[TOY_LAYERS + 1];
  for (int l = 0; l <= spec->stages; l++) stage_of[l] = l < spec->stages ? l : spec->stages - 1;
  gp_pipeline_spec pipeline = {.stage_count = spec->stages,
                               .layer_count = spec->stages,
                               .device_count = spec->stages,
                               .param_count = model->param_count,
                               .stage_of = stage_of,
                               .params = (gp_param *const *)model->params,
                               .param_layer = model->layers,
                               .remat = spec->remat,
                               .unfused = true};
  gp_schedule *schedule = toy_order_of(spec->order, spec->stages, spec->micros);
  gp_plan_spec of = {.kind = GP_PLAN_STEP, .schedule = schedule};
  of.shapes[0] = (gp_traced_shape){.trace = model->trace,
                                   .rows = 3,
                                   .micros = spec->micros,
                                   .loss_sum = loss,
                                   .loss_count = GP_NONE,
                                   .constant_count = 3};
  gp_status status = gp_plan_new(&pipeline, devices, device, &of, plan);
  gp_schedule_free(schedule);
  return status;
}

TEST(plans_need_no_pipeline) {
  toy_spec spec = {.order = ONE_F_ONE_B, .remat = GP_REMAT_ALWAYS, .stages = 3, .micros = 4};
  size_t live = gp_memory().live;
  toy_planned whole;
  toy_plan(&spec, &whole);
  for (int device = -1; device < 3; device++) {
    gp_ref loss;
    gp_plan *plan = NULL;
    toy model = toy_model(&spec, 3, &loss);
    CHECK_STATUS(plan_apart(&spec, &model, loss, device, NULL, &plan), GP_OK);
    for (int d = 0; d < 3; d++)
      CHECK(gp_plan_bytes(plan, d) ==
            (device < 0 || device == d ? gp_plan_bytes(whole.plan, d) : 0));
    gp_plan_free(plan);
    model.trace = NULL; /* taken */
    toy_free(&model);
  }
  toy_plan_free(&whole);
  CHECK(gp_memory().live == live);
}

/* Plans two layers that add a tensor of the script, on devices given by their description. */
static gp_plan *plan_with_constants(const gp_plan_device_spec *devices) {
  toy_spec spec = {.order = ONE_F_ONE_B, .remat = GP_REMAT_NEVER, .stages = 2, .micros = 3};
  gp_plan *plan = NULL;
  toy model = toy_new(3);
  for (int l = 0; l < 2; l++) {
    gp_tensor *tensor;
    gp_ref constant;
    toy_layer(&model, l);
    toy_linear(&model);
    CHECK_STATUS(gp_tensor_new(GP_F32, &SHAPE(3, TOY_WIDTH), &tensor), GP_OK);
    CHECK_STATUS(gp_trace_constant(model.trace, tensor, &constant), GP_OK);
    gp_tensor_free(tensor);
    model.value = toy_op2(&model, GP_OP_add, model.value, constant);
  }
  gp_ref loss = toy_loss(&model, 2);
  CHECK_STATUS(plan_apart(&spec, &model, loss, -1, devices, &plan), GP_OK);
  model.trace = NULL; /* taken */
  toy_free(&model);
  return plan;
}

TEST(plans_hold_no_addresses) {
  gp_plan *a = plan_with_constants(NULL), *b = plan_with_constants(NULL);
  int constants = 0;
  CHECK(gp_plan_constant_count(a) == 2 && gp_plan_constant(a, 0) != gp_plan_constant(b, 0));
  for (int32_t t = 0; t < toy_tasks(a); t++) {
    const gp_program *program = a->tasks[t].program;
    check_program(program, b->tasks[t].program);
    for (int32_t n = 0; program && n < program->instr_count; n++)
      for (int i = 0; i < program->instrs[n].call.n_in; i++)
        for (int k = 0; k < 2; k++)
          constants += program->instrs[n].in[i].base == gp_base_of_constant(2, k);
  }
  CHECK(constants >= 2);
  gp_plan_free(a);
  gp_plan_free(b);
}

TEST(devices_that_are_not_there_are_described) {
  gp_plan_device_spec devices[2] = {{.space = 1}, {.space = 2}};
  gp_plan *bare = plan_with_constants(devices);
  devices[1].scratch = 1000;
  gp_plan *with = plan_with_constants(devices);
  CHECK(gp_plan_bytes(with, 0) == gp_plan_bytes(bare, 0));
  CHECK(gp_plan_bytes(with, 1) == gp_plan_bytes(bare, 1) + 1024);
  CHECK_STATUS(gp_plan_set_scratch(bare, 1, 5000), GP_OK);
  CHECK_STATUS(gp_plan_set_scratch(bare, 1, 1000), GP_OK);
  CHECK(gp_plan_bytes(with, 1) == gp_plan_bytes(bare, 1));
  gp_plan_free(bare);
  gp_plan_free(with);
}

TEST_MAIN(shares_are_parts_of_the_whole, plans_need_no_pipeline, plans_hold_no_addresses,
          devices_that_are_not_there_are_described)
