/* tests/c/engine/pipeline_test.c - a pipeline from C: every cut gives the same bits, and a failure
 * leaves nothing behind. */
#include "engine/rig.h"

TEST(every_cut_gives_the_same_loss) {
  gp_param *params[LAYERS];
  double loss[LAYERS + 1];
  make_params(params);
  for (int stages = 1; stages <= LAYERS; stages++)
    CHECK_STATUS(attempt(params, stages, 0, &loss[stages]), GP_OK);
  CHECK(loss[1] > 0 && loss[1] == loss[2] && loss[2] == loss[3]);
  free_params(params);
}

TEST(no_failed_allocation_leaks_or_keeps_the_model) {
  gp_param *params[LAYERS];
  double wanted, loss;
  make_params(params);
  CHECK_STATUS(attempt(params, 2, 0, &wanted), GP_OK);
  size_t live = gp_memory().live; /* values live in the arenas of the last pipeline */
  int failures = 0;
  for (uint64_t n = 1;; n++, failures++) {
    gp_status status = attempt(params, 2, n, &loss);
    if (status == GP_OK) break;
    CHECK(status == GP_ENOMEM);
    CHECK_STATUS(attempt(params, 2, 0, &loss), GP_OK); /* the model is free and unharmed */
    CHECK(loss == wanted);
    CHECK(gp_memory().live == live);
  }
  CHECK(failures > 150);
  free_params(params);
}

/* ---- planning ------------------------------------------------------------------------------ */

/* Traces the model, which uses the first layer's weight in the last one too; 4 rows in each
 * micro-batch. */
static toy tied_trace(gp_param *const *params, gp_ref *loss) {
  toy t = toy_new(4);
  for (int l = 0; l < LAYERS; l++) {
    toy_layer(&t, l);
    toy_linear_of(&t, params[l], NULL);
    toy_tanh(&t);
  }
  toy_linear_of(&t, params[0], NULL);
  *loss = toy_loss(&t, LAYERS);
  return t;
}

/* Plans a step that needs more of everything than the others: accumulators, frames, events,
 * mini-batches in flight. The n-th allocation fails (0: none). */
static gp_status plan_tied(rig *r, gp_param *const *params, uint64_t n, gp_plan **made) {
  enum { MANY = 7 };
  gp_ref loss;
  toy t = tied_trace(params, &loss);
  gp_schedule *schedule = toy_order_of(GPIPE, r->pipeline->stage_count, MANY);
  gp_plan_spec spec = {.kind = GP_PLAN_STEP,
                       .schedule = schedule,
                       .shapes = {{.trace = t.trace,
                                   .rows = 4,
                                   .micros = MANY,
                                   .loss_sum = loss,
                                   .loss_count = GP_NONE,
                                   .constant_count = 4}}};
  gp_memory_fail_at(n);
  gp_status status = gp_plan_build(r->pipeline, &spec, made);
  gp_memory_fail_at(0);
  gp_schedule_free(schedule);
  return status;
}

TEST(a_failed_allocation_while_planning_leaves_the_other_plans_usable) {
  gp_param *params[LAYERS];
  gp_plan *tied = NULL;
  double wanted, loss;
  int failures = 0;
  make_params(params);
  for (uint64_t n = 1;; n++, failures++) {
    rig r;
    open_rig(&r, params, 2);
    CHECK_STATUS(step(&r, &wanted), GP_OK);
    gp_status status = plan_tied(&r, params, n, &tied);
    CHECK(status == GP_OK || status == GP_ENOMEM);
    CHECK_STATUS(step(&r, &loss), GP_OK);
    CHECK(loss == wanted);
    if (status) CHECK_STATUS(plan_tied(&r, params, 0, &tied), GP_OK);
    CHECK_STATUS(step(&r, &loss), GP_OK);
    CHECK(loss == wanted);
    close_rig(&r);
    if (!status) break;
  }
  CHECK(failures > 150);
  free_params(params);
}

TEST(planning_while_a_stream_is_open_changes_nothing) {
  gp_param *params[LAYERS];
  gp_plan *tied = NULL;
  rig r;
  make_params(params);
  open_rig(&r, params, 2);
  gp_run_args args = {.inputs = &r.x, .targets = &r.y, .input_count = 1, .target_count = 1};
  CHECK_STATUS(gp_pipeline_submit(r.pipeline, r.plan, &args), GP_OK);
  char *extras = r.pipeline->arenas[1].copies[0].extras;
  CHECK_STATUS(plan_tied(&r, params, 0, &tied), GP_ESTATE);
  CHECK(r.pipeline->arenas[1].copies[0].extras == extras && r.pipeline->extra_count == 0);
  CHECK_STATUS(gp_pipeline_drain(r.pipeline), GP_OK);
  CHECK_STATUS(plan_tied(&r, params, 0, &tied), GP_OK);
  CHECK(r.pipeline->extra_count == 1);
  close_rig(&r);
  free_params(params);
}

/* ---- preparing ----------------------------------------------------------------------------- */

/* Overwrites what P made, as if the weights were others. */
static void spoil_packed(const gp_pipeline *p) {
  for (int32_t s = 0; s < p->stage_count; s++) {
    float *packed = (float *)p->arenas[s].packed;
    CHECK(p->arenas[s].packed_bytes == (s ? 2 : 1) * sizeof(float[TOY_WIDTH][TOY_WIDTH]));
    for (size_t i = 0; i < p->arenas[s].packed_bytes / sizeof(float); i++) packed[i] = 0.25f;
  }
}

TEST(weights_are_prepared_once_per_change_of_them) {
  gp_param *params[LAYERS];
  double first, loss;
  rig r;
  make_params(params);
  open_rig(&r, params, 2);
  CHECK_STATUS(step(&r, &first), GP_OK);
  CHECK_STATUS(step(&r, &loss), GP_OK);
  CHECK(loss == first);
  spoil_packed(r.pipeline);
  CHECK_STATUS(step(&r, &loss), GP_OK);
  CHECK(loss != first); /* packed weights are not made again */
  gp_tensor *value = r.pipeline->values[2];
  gp_tensor_set_double(value, 0, gp_tensor_get_double(value, 0));
  CHECK_STATUS(step(&r, &loss), GP_OK);
  CHECK(loss == first); /* a weight was written to */
  spoil_packed(r.pipeline);
  r.pipeline->updates++; /* as an optimizer does */
  CHECK_STATUS(step(&r, &loss), GP_OK);
  CHECK(loss == first);
  close_rig(&r);
  free_params(params);
}

/* ---- memory -------------------------------------------------------------------------------- */

/* Adds up what a device holds for passes, part by part: the pipeline has one stage a device. */
static size_t held(const gp_pipeline *p, int32_t device) {
  const gp_worker *worker = &p->workers[device];
  const gp_arena *arena = &p->arenas[device];
  size_t bytes = worker->scratch_bytes * (size_t)worker->threads;
  for (int32_t i = 0; i < p->binding_count; i++)
    bytes += p->bindings[i]->plan->devices[device].bytes;
  return bytes + p->work[device].bytes + arena->packed_bytes + arena->extra_bytes;
}

TEST(the_reported_peak_is_what_was_taken) {
  gp_param *params[LAYERS];
  gp_plan *tied = NULL;
  gp_device_stats stats;
  double loss;
  rig r;
  make_params(params);
  open_rig(&r, params, 2);
  for (int round = 0; round < 3; round++) {
    size_t most[2] = {held(r.pipeline, 0), held(r.pipeline, 1)};
    CHECK_STATUS(step(&r, &loss), GP_OK);
    for (int d = 0; d < 2; d++) {
      gp_pipeline_stats(r.pipeline, d, &stats);
      if (round < 2) CHECK(stats.peak_bytes == most[d] && most[d] > 0);
      if (round == 2) CHECK(stats.peak_bytes > most[d]); /* that of two plans */
    }
    if (round == 0) CHECK_STATUS(plan_tied(&r, params, 0, &tied), GP_OK);
    if (round == 1) gp_plan_drop(r.pipeline, tied);
  }
  close_rig(&r);
  free_params(params);
}

TEST(values_outlive_their_pipeline) {
  gp_param *params[LAYERS];
  gp_tensor *value = NULL;
  double loss;
  make_params(params);
  CHECK_STATUS(attempt(params, 3, 0, &loss), GP_OK);
  CHECK_STATUS(gp_param_value(params[1], &value), GP_OK);
  double first = gp_tensor_get_double(value, 3);
  free_params(params);
  CHECK(gp_tensor_get_double(value, 3) == first);
  gp_tensor_free(value);
  CHECK(gp_memory().live == 0);
}

TEST_MAIN(every_cut_gives_the_same_loss, no_failed_allocation_leaks_or_keeps_the_model,
          a_failed_allocation_while_planning_leaves_the_other_plans_usable,
          planning_while_a_stream_is_open_changes_nothing,
          weights_are_prepared_once_per_change_of_them, the_reported_peak_is_what_was_taken,
          values_outlive_their_pipeline)
