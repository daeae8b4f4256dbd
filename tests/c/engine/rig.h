/* tests/c/engine/rig.h - a pipeline of toy layers, the plan of one step, and its batch, for the
 * tests of engine/. */
#ifndef GP_TESTS_RIG_H
#define GP_TESTS_RIG_H

#include "engine/bind/bind.h"
#include "plan/toy_plan.h"

enum { LAYERS = 3, ROWS = 5, MICROS = 2 };

/* A pipeline of the toy's layers over some stages, the plan of a step, and its batch. */
typedef struct rig {
  toy large, small; /* of 3 and of 2 rows; they share parameters */
  gp_ref loss[2];
  gp_pipeline *pipeline;
  gp_plan *plan;
  gp_tensor *x, *y;
} rig;

/* Traces layers of linear and tanh over these parameters. */
static inline toy trace_of(gp_param *const *params, int64_t rows, gp_ref *loss) {
  toy t = toy_new(rows);
  for (int l = 0; l < LAYERS; l++) {
    toy_layer(&t, l);
    toy_linear_of(&t, params[l], NULL);
    toy_tanh(&t);
  }
  *loss = toy_loss(&t, LAYERS);
  return t;
}

/* Starts a pipeline on the devices of the schedule. */
static inline gp_status start(rig *r, gp_param *const *params, int stages,
                              const gp_schedule *schedule) {
  int32_t stage_of[LAYERS + 1], layer_of[LAYERS];
  gp_device_spec devices[LAYERS];
  for (int l = 0; l <= LAYERS; l++) stage_of[l] = l < stages ? l : stages - 1;
  for (int l = 0; l < LAYERS; l++) {
    layer_of[l] = l;
    devices[l] = (gp_device_spec){.name = "cpu:0", .threads = 2};
  }
  gp_pipeline_spec spec = {.stage_count = stages,
                           .layer_count = LAYERS,
                           .device_count = stages,
                           .param_count = LAYERS,
                           .copy_count = schedule->copy_count,
                           .placement = schedule->placement,
                           .stage_of = stage_of,
                           .devices = devices,
                           .params = params,
                           .param_layer = layer_of,
                           .remat = GP_REMAT_ALWAYS};
  return gp_pipeline_new(&spec, &r->pipeline);
}

static inline gp_status plan(rig *r, const gp_schedule *schedule) {
  gp_plan_spec spec = {.kind = GP_PLAN_STEP, .schedule = schedule};
  for (int k = 0; k < 2; k++)
    spec.shapes[k] = (gp_traced_shape){.trace = k ? r->small.trace : r->large.trace,
                                       .rows = 3 - k,
                                       .micros = 1,

                                       .loss_sum = r->loss[k],
                                       .loss_count = GP_NONE,
                                       .constant_count = 3 - k};
  r->large.trace = r->small.trace = NULL; /* taken, also on failure */
  return gp_plan_build(r->pipeline, &spec, &r->plan);
}

static inline gp_status step(rig *r, double *loss) {
  gp_run_args args = {.inputs = &r->x, .targets = &r->y, .input_count = 1, .target_count = 1};
  gp_run_result result = {0};
  gp_status status = gp_pipeline_run(r->pipeline, r->plan, &args, &result);
  *loss = result.loss;
  return status;
}

/* Does everything from the pipeline to the first step; the n-th allocation fails (0: none). */
static inline gp_status attempt(gp_param *const *params, int stages, uint64_t n, double *loss) {
  rig r = {0};
  gp_schedule *schedule = toy_order_of(ONE_F_ONE_B, stages, MICROS);
  r.large = trace_of(params, 3, &r.loss[0]);
  r.small = trace_of(params, 2, &r.loss[1]);
  CHECK_STATUS(gp_tensor_new(GP_F32, &SHAPE(ROWS, TOY_WIDTH), &r.x), GP_OK);
  CHECK_STATUS(gp_tensor_new(GP_F32, &SHAPE(ROWS, TOY_WIDTH), &r.y), GP_OK);
  CHECK_STATUS(gp_tensor_fill(r.x, &(gp_init){GP_INIT_NORMAL, 0, 1}, 1, 1), GP_OK);
  gp_memory_fail_at(n);
  gp_status status = start(&r, params, stages, schedule);
  if (!status) status = plan(&r, schedule);
  if (!status) status = step(&r, loss);
  gp_memory_fail_at(0);
  gp_pipeline_free(r.pipeline);
  gp_schedule_free(schedule);
  gp_tensor_free(r.x);
  gp_tensor_free(r.y);
  toy_free(&r.large);
  toy_free(&r.small);
  return status;
}

static inline void make_params(gp_param **params) {
  for (int l = 0; l < LAYERS; l++) {
    gp_param_spec spec = {.dtype = GP_F32,
                          .shape = SHAPE(TOY_WIDTH, TOY_WIDTH),
                          .init = {GP_INIT_UNIFORM, -1, 1},
                          .number = (uint64_t)l};
    CHECK_STATUS(gp_param_new(&spec, &params[l]), GP_OK);
  }
}

static inline void free_params(gp_param **params) {
  for (int l = 0; l < LAYERS; l++) gp_param_free(params[l]);
}

/* Opens the rig with a schedule, which is taken. */
static inline void open_with(rig *r, gp_param *const *params, int stages, gp_schedule *schedule) {
  *r = (rig){0};
  r->large = trace_of(params, 3, &r->loss[0]);
  r->small = trace_of(params, 2, &r->loss[1]);
  CHECK_STATUS(gp_tensor_new(GP_F32, &SHAPE(ROWS, TOY_WIDTH), &r->x), GP_OK);
  CHECK_STATUS(gp_tensor_new(GP_F32, &SHAPE(ROWS, TOY_WIDTH), &r->y), GP_OK);
  CHECK_STATUS(gp_tensor_fill(r->x, &(gp_init){GP_INIT_NORMAL, 0, 1}, 1, 1), GP_OK);
  CHECK_STATUS(start(r, params, stages, schedule), GP_OK);
  CHECK_STATUS(plan(r, schedule), GP_OK);
  gp_schedule_free(schedule);
}

static inline void open_rig(rig *r, gp_param *const *params, int stages) {
  open_with(r, params, stages, toy_order_of(ONE_F_ONE_B, stages, MICROS));
}

static inline void close_rig(rig *r) {
  gp_pipeline_free(r->pipeline);
  gp_tensor_free(r->x);
  gp_tensor_free(r->y);
  toy_free(&r->large);
  toy_free(&r->small);
}

#endif
