/* tests/c/engine/profile_test.c - a profile has every instruction of the plan once for each time it
 * ran, in order, and leaves nothing behind. */
#include "engine/rig.h"

#include "gpipe/profile.h"
#include "plan/plan.h"

/* Walks through what the tasks of a device run, in order: each must be the next entry of the
 * profile. */
typedef struct reader {
  const gp_pipeline *pipeline;
  int device;
  size_t at;
} reader;

static gp_profile_entry next_in_action(reader *r) {
  gp_profile_entry e = {.op = "none is left"};
  while (r->at < gp_pipeline_profile_count(r->pipeline, r->device)) {
    gp_pipeline_profile_entry(r->pipeline, r->device, r->at++, &e);
    if (e.in_action) return e;
  }
  e.op = "none is left";
  return e;
}

static gp_profile_phase phase_of(const gp_task *task, gp_phase phase) {
  if (task->op == GP_ACT_F) return GP_PROFILE_FORWARD;
  if (task->op == GP_ACT_R) return GP_PROFILE_RECOMPUTE;
  if (task->op == GP_ACT_P) return GP_PROFILE_PREPARE;
  if (task->op == GP_ACT_C) return GP_PROFILE_COUNT;
  return phase == GP_BACKWARD ? GP_PROFILE_BACKWARD : GP_PROFILE_RECOMPUTE;
}

/* Compares a task's instructions with the profile; returns how many there are. */
static int check_task(reader *r, const gp_task *task) {
  for (int32_t n = 0; task->program && n < task->program->instr_count; n++) {
    const gp_instr *instr = &task->program->instrs[n];
    const gp_node *node = &task->program->graph->nodes[instr->node];
    gp_cost cost = gp_node_cost(task->program->graph, node);
    gp_profile_entry e = next_in_action(r);
    CHECK(strcmp(e.op, gp_op_name(instr->op)) == 0);
    CHECK(e.phase == phase_of(task, node->phase));
    CHECK(e.action.op == task->op && e.action.stage == task->stage);
    CHECK(e.flop == cost.flop && e.bytes == cost.bytes && e.seconds >= 0);
  }
  return task->program ? task->program->instr_count : 0;
}

static void check_profile(const rig *r) {
  const gp_plan *plan = r->plan;
  for (int d = 0; d < plan->device_count; d++) {
    reader read = {.pipeline = r->pipeline, .device = d};
    int count = 0;
    for (int32_t t = plan->first[d]; t < plan->first[d + 1]; t++)
      count += check_task(&read, &plan->tasks[t]);
    CHECK(count > 0 && strcmp(next_in_action(&read).op, "none is left") == 0);
  }
}

TEST(every_instruction_is_there_once_in_order) {
  gp_param *params[LAYERS];
  double wanted, loss;
  make_params(params);
  CHECK_STATUS(attempt(params, 2, 0, &wanted), GP_OK);
  for (int stages = 1; stages <= LAYERS; stages++) {
    gp_profile_info info;
    rig r;
    open_rig(&r, params, stages);
    CHECK_STATUS(gp_pipeline_profile_begin(r.pipeline, false), GP_OK);
    CHECK_STATUS(step(&r, &loss), GP_OK);
    CHECK_STATUS(gp_pipeline_profile_end(r.pipeline, &info), GP_OK);
    CHECK(loss == wanted && info.runs == 1 && info.one_plan);
    check_profile(&r);
    close_rig(&r);
  }
  free_params(params);
}

TEST(profiles_do_not_nest_and_want_to_be_begun) {
  gp_param *params[LAYERS];
  gp_profile_info info;
  double loss;
  rig r;
  make_params(params);
  open_rig(&r, params, 2);
  CHECK_STATUS(gp_pipeline_profile_end(r.pipeline, &info), GP_ESTATE);
  CHECK_STATUS(gp_pipeline_profile_begin(r.pipeline, false), GP_OK);
  CHECK_STATUS(gp_pipeline_profile_begin(r.pipeline, false), GP_ESTATE);
  CHECK(gp_pipeline_profile_count(r.pipeline, 0) == 0); /* empty before the end */
  gp_pipeline_profile_drop(r.pipeline);
  CHECK_STATUS(gp_pipeline_profile_end(r.pipeline, &info), GP_ESTATE);
  CHECK_STATUS(step(&r, &loss), GP_OK);
  CHECK(gp_pipeline_profile_count(r.pipeline, 0) == 0);
  close_rig(&r);
  free_params(params);
}

/* Takes a profile while the n-th allocation fails (0: none). */
static gp_status profile(rig *r, uint64_t n, double *loss) {
  gp_profile_info info;
  gp_memory_fail_at(n);
  gp_status status = gp_pipeline_profile_begin(r->pipeline, false);
  if (!status) status = step(r, loss);
  gp_memory_fail_at(0);
  gp_status ended = gp_pipeline_profile_end(r->pipeline, &info);
  gp_pipeline_profile_drop(r->pipeline);
  return status ? status : ended;
}

TEST(a_failed_allocation_leaves_nothing_and_the_next_profile_works) {
  gp_param *params[LAYERS];
  double wanted, loss = 0;
  int failures = 0;
  rig r;
  make_params(params);
  open_rig(&r, params, 2);
  CHECK_STATUS(step(&r, &wanted), GP_OK);
  size_t live = gp_memory().live;
  for (uint64_t n = 1;; n++, failures++) {
    gp_status status = profile(&r, n, &loss);
    CHECK(gp_memory().live == live);
    if (status == GP_OK) break;
    CHECK(status == GP_ENOMEM);
    CHECK_STATUS(step(&r, &loss), GP_OK);
    CHECK(loss == wanted);
  }
  CHECK(failures > 2 && loss == wanted);
  close_rig(&r);
  free_params(params);
}

TEST(a_closed_pipeline_gives_back_a_profile_that_is_under_way) {
  gp_param *params[LAYERS];
  size_t live;
  double loss;
  rig r;
  make_params(params);
  CHECK_STATUS(attempt(params, 2, 0, &loss), GP_OK);
  live = gp_memory().live;
  open_rig(&r, params, 2);
  CHECK_STATUS(gp_pipeline_profile_begin(r.pipeline, false), GP_OK);
  CHECK_STATUS(step(&r, &loss), GP_OK);
  close_rig(&r);
  CHECK(gp_memory().live == live);
  free_params(params);
}

TEST_MAIN(every_instruction_is_there_once_in_order, profiles_do_not_nest_and_want_to_be_begun,
          a_failed_allocation_leaves_nothing_and_the_next_profile_works,
          a_closed_pipeline_gives_back_a_profile_that_is_under_way)
