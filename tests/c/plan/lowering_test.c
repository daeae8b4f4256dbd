/* tests/c/plan/lowering_test.c - lowering: which tasks there are, what they keep and where it lies,
 * and that failures leak nothing. */
#include <stdlib.h>

#include "plan/memory/work.h"
#include "toy_plan.h"

/* Writes the tasks of a device as text, k where F keeps everything: "P0 F0 F1k R0 B0 B1". */
static const char *tasks_of(const gp_plan *plan, int32_t device, char text[512]) {
  size_t used = 0;
  text[0] = 0;
  for (int32_t t = plan->first[device]; t < plan->first[device + 1] && used < 480; t++) {
    const gp_task *task = &plan->tasks[t];
    used += (size_t)snprintf(text + used, 512 - used, "%s%s%d%s", used ? " " : "",
                             gp_act_name(task->op), (int)task->micro,
                             task->op == GP_ACT_F && task->kept ? "k" : "");
  }
  return text;
}

static void check_tasks(const toy_spec *spec, const char *first, const char *last) {
  char made[512];
  toy_planned p;
  toy_plan(spec, &p);
  CHECK_STATUS(p.status, GP_OK);
  if (p.status) return;
  for (int k = 0; k < 2; k++) {
    const char *wanted = k ? last : first;
    tasks_of(p.plan, k ? spec->stages - 1 : 0, made);
    if (strcmp(made, wanted)) printf("tasks: '%s', not '%s'\n", made, wanted);
    CHECK(!strcmp(made, wanted));
  }
  toy_plan_free(&p);
}

TEST(recomputation_goes_before_the_backward_pass_that_needs_it) {
  toy_spec spec = {.order = ONE_F_ONE_B, .remat = GP_REMAT_NEVER, .stages = 2, .micros = 3};
  check_tasks(&spec, "P0 F0k F1k B0 F2k B1 B2", "P0 F0k B0 F1k B1 F2k B2");
  spec.remat = GP_REMAT_ALWAYS;
  check_tasks(&spec, "P0 F0 F1 R0 B0 F2 R1 B1 R2 B2", "P0 F0 R0 B0 F1 R1 B1 F2 R2 B2");
  spec.remat = GP_REMAT_EXCEPT_LAST;
  check_tasks(&spec, "P0 F0 F1 R0 B0 F2 R1 B1 R2 B2", "P0 F0k B0 F1k B1 F2k B2");
  spec.order = LIFO;
  check_tasks(&spec, "P0 F0 F1 F2k I2 R1 I1 R0 I0 W0 W1 W2",
              "P0 F0 F1 F2k I2 R1 I1 R0 I0 W0 W1 W2");
  spec.order = GPIPE;
  check_tasks(&spec, "P0 F0 F1 F2 R0 B0 R1 B1 R2 B2", "P0 F0 F1 F2 R0 B0 R1 B1 R2 B2");
}

TEST(weight_gradients_run_in_ascending_order) {
  toy_spec spec = {.order = WEIGHTS_LAST, .remat = GP_REMAT_NEVER, .stages = 2, .micros = 3};
  check_tasks(&spec, "P0 F0k F1k F2k I0 I1 I2 W0 W1 W2", "P0 F0k F1k F2k I0 I1 I2 W0 W1 W2");
}

TEST(forward_passes_alone_keep_nothing) {
  toy_spec spec = {.kind = GP_PLAN_EVALUATE, .order = FORWARD, .stages = 2, .micros = 2};
  toy_planned p;
  check_tasks(&spec, "P0 F0 F1", "P0 F0 F1");
  toy_plan(&spec, &p);
  for (int32_t t = 0; t < toy_tasks(p.plan); t++)
    for (int slot = 0; slot < GP_SLOT_BASES; slot++) CHECK(p.plan->tasks[t].slot[slot] < 0);
  for (int32_t s = 0; s < 2; s++) CHECK(!p.plan->slots[s].bytes[GP_SLOT_KEPT]);
  toy_plan_free(&p);
}

/* ---- every plan ------------------------------------------------------------------------------ */

/* Tasks are numbered 0, 1, ... in an order that respects every device's list and every wait. */
static void check_numbers(const gp_plan *plan) {
  bool seen[1024] = {0};
  for (int32_t t = 0; t < toy_tasks(plan); t++) {
    int32_t order = plan->tasks[t].order;
    CHECK(order >= 0 && order < 1024 && !seen[order]);
    seen[order] = true;
    if (t > plan->first[toy_device(plan, t)]) CHECK(plan->tasks[t - 1].order < order);
  }
}

/* Each edge has, per micro-batch, one publication, one wait per reader and one release per party,
 * in this order. */
static void check_uses(const gp_plan *plan) {
  const gp_stages *stages = plan->shapes[0].stages;
  for (int32_t e = 0; e < plan->edge_count; e++)
    for (int32_t m = 0; m < plan->micro_count; m++) {
      int published = 0, waited = 0, released = 0, acquired = 0, at = -1;
      for (int32_t t = 0; t < toy_tasks(plan); t++)
        for (int32_t u = 0; u < plan->tasks[t].use_count; u++) {
          const gp_edge_use *use = &plan->tasks[t].uses[u];
          if (use->edge != e || plan->tasks[t].micro != m) continue;
          published += use->publish, waited += use->wait, released += use->release,
              acquired += use->acquire;
          if (use->publish) at = plan->tasks[t].order;
          if (use->publish) CHECK(plan->tasks[t].stage == stages->edges[e].from);
        }
      CHECK(published == 1 && acquired == 1 && waited == stages->edges[e].to_count);
      CHECK(released == stages->edges[e].to_count + 1);
      for (int32_t t = 0; t < toy_tasks(plan); t++)
        for (int32_t u = 0; u < plan->tasks[t].use_count; u++)
          if (plan->tasks[t].uses[u].edge == e && plan->tasks[t].micro == m &&
              plan->tasks[t].uses[u].wait)
            CHECK(plan->tasks[t].order > at);
    }
}

/* The memory of one kind, by offset, that a micro-batch holds between two tasks of its stage. */
typedef struct span {
  size_t from;
  size_t bytes;
  int32_t first, last;
} span;

static size_t offset_of(const gp_plan *plan, const gp_task *task, int slot) {
  const gp_slots *slots = &plan->slots[gp_plan_holder(plan, task->stage, task->copy)];
  const int kind = gp_task_slot_kind(task, slot);
  if (!plan->batch) return task->place[slot];
  return slots->first[kind] + (size_t)task->slot[slot] * slots->bytes[kind];
}

/* Adds the temporaries of a stage's tasks: each holds them while it runs. */
static int temps_of(const gp_plan *plan, int32_t stage, span *spans, int count) {
  for (int32_t t = 0; t < toy_tasks(plan); t++) {
    const gp_task *task = &plan->tasks[t];
    const size_t bytes = gp_plan_temp_bytes(plan, task, plan->placement[stage]);
    if (task->stage == stage && bytes) spans[count++] = (span){task->temp, bytes, t, t};
  }
  return count;
}

/* The task's slot of a kind; -1: it has none. */
static int slot_of_kind(const gp_task *task, int kind) {
  for (int slot = 0; slot < GP_SLOT_BASES; slot++)
    if (task->slot[slot] >= 0 && gp_task_slot_kind(task, slot) == kind) return slot;
  return -1;
}

static int spans_of(const gp_plan *plan, int32_t stage, span *spans) {
  int count = 0;
  for (int32_t m = 0; m < plan->micro_count; m++)
    for (int kind = 0; kind < GP_SLOT_KINDS; kind++) {
      span s = {.first = -1};
      for (int32_t t = 0; t < toy_tasks(plan); t++) {
        const gp_task *task = &plan->tasks[t];
        const int slot = slot_of_kind(task, kind);
        if (task->stage != stage || task->micro != m || slot < 0) continue;
        if (s.first < 0) s.first = t, s.from = offset_of(plan, task, slot);
        s.bytes = gp_plan_slot_bytes(plan, task, kind);
        CHECK(s.from ==
              offset_of(plan, task, slot)); /* the memory is the same from the first to the last */
        s.last = t;
      }
      if (s.first >= 0 && s.bytes) spans[count++] = s;
    }
  return temps_of(plan, stage, spans, count);
}

static void check_slots(const gp_plan *plan) {
  static span spans[512];
  for (int32_t stage = 0; stage < plan->stage_count; stage++) {
    int count = spans_of(plan, stage, spans);
    for (int a = 0; a < count; a++)
      for (int b = 0; b < a; b++) {
        bool together = spans[a].first <= spans[b].last && spans[b].first <= spans[a].last;
        bool apart = spans[a].from + spans[a].bytes <= spans[b].from ||
                     spans[b].from + spans[b].bytes <= spans[a].from;
        CHECK(!together || apart);
      }
  }
}

static void check_ascending(const gp_plan *plan) {
  for (int32_t stage = 0; stage < plan->stage_count; stage++) {
    int32_t next = 0;
    for (int32_t t = 0; t < toy_tasks(plan); t++) {
      const gp_task *task = &plan->tasks[t];
      if (task->stage == stage && (task->op == GP_ACT_B || task->op == GP_ACT_W))
        CHECK(task->micro == next++);
    }
    CHECK(next == plan->micro_count);
  }
}

static void check_plan(const toy_spec *spec) {
  toy_planned p;
  toy_plan(spec, &p);
  CHECK_STATUS(p.status, GP_OK);
  if (p.status) return;
  check_numbers(p.plan);
  check_uses(p.plan);
  check_slots(p.plan);
  check_ascending(p.plan);
  toy_plan_free(&p);
}

TEST(plans_keep_their_invariants) {
  static const gp_remat modes[] = {GP_REMAT_NEVER, GP_REMAT_ALWAYS, GP_REMAT_EXCEPT_LAST};
  for (toy_order order = 0; order < TOY_ORDERS; order++)
    for (int stages = 1; stages <= 4; stages++)
      for (int micros = 1; micros <= 5; micros += 2)
        for (int kind = 0; kind < 9; kind++)
          check_plan(&(toy_spec){.kind = GP_PLAN_STEP,
                                 .order = order,
                                 .remat = modes[kind % 3],
                                 .stages = stages,
                                 .micros = micros,
                                 .smaller = micros / 2,
                                 .skips = kind / 3 == 1,
                                 .frozen = kind / 3 == 2});
}

/* ---- rows ------------------------------------------------------------------------------------ */

TEST(larger_micro_batches_come_first) {
  toy_planned p;
  toy_plan(&(toy_spec){.order = GPIPE, .stages = 1, .micros = 5, .smaller = 3}, &p);
  static const int64_t first[] = {0, 3, 6, 8, 10, 12}; /* rows 3, 3, 2, 2, 2 */
  for (int32_t m = 0; m <= 5; m++) CHECK(gp_plan_first_row(p.plan, m) == first[m]);
  for (int32_t m = 0; m < 5; m++) CHECK(gp_plan_shape_of(p.plan, m) == (m >= 2));
  toy_plan_free(&p);
}

/* ---- what cannot be planned ------------------------------------------------------------------ */

TEST(schedules_of_another_size_are_refused) {
  toy_planned p = {0};
  gp_ref loss;
  toy_space_set(&p.space, (int[]){1, 1}, 2);
  toy t = toy_tower(3, 2, &loss);
  gp_schedule *schedule = toy_order_of(GPIPE, 2, 4);
  gp_plan_spec spec = {
      .schedule = schedule,
      .shapes = {
          {.trace = t.trace, .rows = 3, .micros = 3, .loss_sum = loss, .loss_count = GP_NONE}}};
  toy_space_add(&p.space, &t);
  CHECK_STATUS(toy_space_plan(&p.space, &spec, &p.plan), GP_ESCHEDULE);
  CHECK_TEXT(gp_error_text(),
             "it has 2 stages, 4 micro-batches and 2 devices, expected 2, 3 and at most 2");
  gp_schedule_free(schedule);
  gp_layout_free(&p.space.layout);
  t.trace = NULL; /* taken, also on failure */
  toy_free(&t);
}

TEST(no_failed_allocation_leaks) {
  toy_spec spec = {.order = WEIGHTS_LAST,
                   .remat = GP_REMAT_EXCEPT_LAST,
                   .stages = 2,
                   .micros = 3,
                   .smaller = 1,
                   .skips = true};
  size_t live = gp_memory().live;
  toy_planned p;
  toy_plan(&spec, &p); /* counts how many allocations the plan itself makes */
  toy_plan_free(&p);
  int failures = 0;
  for (uint64_t n = 1;; n++, failures++) {
    int layers[] = {1, 1};
    gp_ref loss[2];
    toy models[2] = {toy_model(&spec, 3, &loss[0]), toy_model(&spec, 2, &loss[1])};
    gp_schedule *schedule = toy_order_of(spec.order, 2, 3);
    gp_plan_spec plan = {.schedule = schedule};
    toy_space_set(&p.space, layers, 2);
    for (int k = 0; k < 2; k++)
      plan.shapes[k] = (gp_traced_shape){.trace = models[k].trace,
                                         .rows = 3 - k,
                                         .micros = k ? 1 : 2,
                                         .loss_sum = loss[k],
                                         .loss_count = GP_NONE,
                                         .constant_count = 1};
    p.plan = NULL;
    for (int k = 0; k < 2; k++) toy_space_add(&p.space, &models[k]);
    gp_memory_fail_at(n);
    gp_status status = toy_space_plan(&p.space, &plan, &p.plan);
    gp_memory_fail_at(0);
    gp_plan_free(p.plan);
    gp_layout_free(&p.space.layout);
    gp_schedule_free(schedule);
    for (int k = 0; k < 2; k++) models[k].trace = NULL, toy_free(&models[k]);
    CHECK(gp_memory().live == live);
    if (status == GP_OK) break;
    CHECK(status == GP_ENOMEM || status == GP_EINVAL); /* a parameter that could not be drawn */
  }
  CHECK(failures > 100);
}

TEST_MAIN(recomputation_goes_before_the_backward_pass_that_needs_it,
          weight_gradients_run_in_ascending_order, forward_passes_alone_keep_nothing,
          plans_keep_their_invariants, larger_micro_batches_come_first,
          schedules_of_another_size_are_refused, no_failed_allocation_leaks)
