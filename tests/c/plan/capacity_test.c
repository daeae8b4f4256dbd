/* tests/c/plan/capacity_test.c - edges have never too few slots and never more than needed, by
 * brute force.
 *
 * The test searches the graph of tasks for everything that must have happened before a task starts:
 * the tasks before it on its device, and those that published the values it waits for. */
#include <stdlib.h>

#include "plan/channels.h"
#include "toy_plan.h"

enum { TASKS = 512 };

typedef struct past {
  const gp_plan *plan;
  bool known[TASKS][TASKS]; /* [t][p]: p is over before t starts */
  bool seen[TASKS];
} past;

/* A step edge has one value in a step. */
static int32_t maker_of(const gp_plan *plan, int32_t edge, int32_t micro) {
  const bool once = edge >= plan->edge_count;
  for (int32_t t = 0; t < toy_tasks(plan); t++)
    for (int32_t u = 0; u < plan->tasks[t].use_count; u++) {
      const gp_edge_use *use = &plan->tasks[t].uses[u];
      const bool mine = use->edge == edge && (once || plan->tasks[t].micro == micro);
      if (mine && use->publish) return t;
    }
  return -1;
}

static void add(past *p, int32_t t, int32_t before) {
  p->known[t][before] = true;
  for (int32_t k = 0; k < toy_tasks(p->plan); k++) p->known[t][k] |= p->known[before][k];
}

/* Searches depth first: the past of what a task waits for is found before its own. */
static void visit(past *p, int32_t t) {
  const gp_task *task = &p->plan->tasks[t];
  if (p->seen[t]) return;
  p->seen[t] = true;
  if (t > p->plan->first[toy_device(p->plan, t)]) visit(p, t - 1), add(p, t, t - 1);
  for (int32_t u = 0; u < task->use_count; u++) {
    if (!task->uses[u].wait) continue;
    int32_t maker = maker_of(p->plan, task->uses[u].edge, task->micro);
    visit(p, maker);
    add(p, t, maker);
  }
}

/* Is every use of a value over before the value of another micro-batch is written? */
static bool is_over(const past *p, int32_t edge, int32_t before, int32_t micro) {
  const gp_plan *plan = p->plan;
  int32_t maker = maker_of(plan, edge, micro);
  for (int32_t t = 0; t < toy_tasks(plan); t++)
    for (int32_t u = 0; u < plan->tasks[t].use_count; u++) {
      const gp_edge_use *use = &plan->tasks[t].uses[u];
      bool mine = use->release && use->edge == edge && plan->tasks[t].micro == before;
      if (mine && !p->known[maker][t]) return false;
    }
  return true;
}

/* With this many slots, is every use of a slot over before it is written again? */
static bool enough(const past *p, int32_t channel, int32_t slots) {
  int32_t micros[16], count = gp_plan_channel_micros(p->plan, channel, micros);
  for (int32_t i = slots; i < count; i++)
    if (!is_over(p, gp_plan_channel_edge(p->plan, channel), micros[i - slots], micros[i]))
      return false;
  return true;
}

/* Where a value lies in the block of its channel's device. */
static size_t place_of(const gp_plan *plan, int32_t edge, int32_t micro) {
  const gp_channel *own = gp_plan_channel_of(plan, edge, micro);
  const int64_t slot = gp_plan_turn(plan, edge, micro) % own->slots;
  return own->made.offset + (size_t)slot * own->bytes;
}

/* No two values of an edge lie in the same place at the same time, whichever copy makes them. */
static void check_places(const past *p, int32_t edge) {
  const gp_plan *plan = p->plan;
  for (int32_t i = 0; i < plan->micro_count; i++)
    for (int32_t k = 0; k < i; k++) {
      const bool both = maker_of(plan, edge, i) >= 0 && maker_of(plan, edge, k) >= 0;
      const int32_t homes[] = {gp_plan_channel_of(plan, edge, i)->home,
                               gp_plan_channel_of(plan, edge, k)->home};
      if (both && homes[0] == homes[1] && place_of(plan, edge, i) == place_of(plan, edge, k))
        CHECK(is_over(p, edge, i, k) || is_over(p, edge, k, i));
    }
}

static void check_capacities(const gp_plan *plan) {
  past *p = calloc(1, sizeof *p);
  p->plan = plan;
  CHECK(toy_tasks(plan) <= TASKS);
  for (int32_t t = 0; t < toy_tasks(plan); t++) visit(p, t);
  for (int32_t c = 0; c < gp_plan_value_channels(plan); c++) {
    CHECK(enough(p, c, plan->channels[c].slots));
    CHECK(plan->channels[c].slots <= 1 || !enough(p, c, plan->channels[c].slots - 1));
  }
  for (int32_t e = 0; e < plan->edge_count; e++) check_places(p, e);
  free(p);
}

/* ---- running with any timing ---------------------------------------------------------------- */

static uint32_t state = 1;

static uint32_t draw(uint32_t below) {
  state = state * 1664525 + 1013904223;
  return (state >> 8) % below;
}

/* Rounds published and last uses so far, per channel and slot. */
typedef struct slot_state {
  uint32_t published, released;
} slot_state;

static slot_state states[64][16];

/* Returns the slot of a use, and how often it was used before. */
static slot_state *slot_of(const gp_plan *plan, const gp_task *task, const gp_edge_use *use,
                           uint32_t *round) {
  const int32_t c = gp_plan_channel_at(plan, use->edge, task->micro);
  const gp_channel *channel = &plan->channels[c];
  *round = 0;
  if (use->edge >= plan->edge_count) return &states[c][0];
  int64_t turn = gp_plan_turn(plan, use->edge, task->micro);
  int64_t first = gp_plan_micro_before(plan, use->edge, task->micro, turn);
  CHECK(gp_plan_turn(plan, use->edge, first) == 0);
  CHECK(gp_plan_micro_before(plan, use->edge, task->micro, turn + 1) == -1);
  *round = (uint32_t)(turn / channel->slots);
  return &states[c][turn % channel->slots];
}

static bool waits_met(const gp_plan *plan, const gp_task *task) {
  uint32_t round;
  for (int32_t u = 0; u < task->use_count; u++) {
    const slot_state *slot = slot_of(plan, task, &task->uses[u], &round);
    if (task->uses[u].wait && slot->published < round + 1) return false;
  }
  return true;
}

static bool slots_free(const gp_plan *plan, const gp_task *task) {
  uint32_t round;
  for (int32_t u = 0; u < task->use_count; u++) {
    const gp_edge_use *use = &task->uses[u];
    const slot_state *slot = slot_of(plan, task, use, &round);
    if (!use->acquire || !round) continue;
    uint32_t parties = (uint32_t)gp_plan_channel_of(plan, use->edge, task->micro)->parties;
    if (slot->released < round * parties) return false;
  }
  return true;
}

static void finish(const gp_plan *plan, const gp_task *task) {
  uint32_t round;
  for (int32_t u = 0; u < task->use_count; u++) {
    slot_state *slot = slot_of(plan, task, &task->uses[u], &round);
    if (task->uses[u].publish) slot->published = round + 1;
    if (task->uses[u].release) slot->released++;
  }
}

/* Moves devices in random order. In a step no task ever waits for a slot; in forward passes none
 * waits forever. */
static void check_timing(const gp_plan *plan) {
  int32_t next[TOY_LAYERS], left = toy_tasks(plan);
  bool forward = plan->kind == GP_PLAN_EVALUATE;
  memset(states, 0, sizeof states);
  CHECK(gp_plan_channel_count(plan) <= 64);
  for (int32_t c = 0; c < gp_plan_value_channels(plan); c++) CHECK(plan->channels[c].slots <= 16);
  for (int32_t d = 0; d < plan->device_count; d++) next[d] = plan->first[d];
  for (int32_t tries = 0; left > 0 && tries < 100000; tries++) {
    int32_t d = (int32_t)draw((uint32_t)plan->device_count);
    const gp_task *task = &plan->tasks[next[d]];
    if (next[d] == plan->first[d + 1] || !waits_met(plan, task)) continue;
    CHECK(forward || slots_free(plan, task));
    if (!slots_free(plan, task)) continue;
    finish(plan, task);
    next[d]++;
    left--;
  }
  CHECK(left == 0);
}

static void check(const toy_spec *spec) {
  toy_planned made;
  toy_plan(spec, &made);
  CHECK_STATUS(made.status, GP_OK);
  if (made.status) return;
  if (spec->kind == GP_PLAN_STEP) check_capacities(made.plan);
  check_timing(made.plan);
  toy_plan_free(&made);
}

TEST(steps_have_as_many_slots_as_they_need) {
  for (toy_order order = 0; order < TOY_ORDERS; order++)
    for (int stages = 1; stages <= 4; stages++)
      for (int micros = 1; micros <= 7; micros += 2)
        for (int kind = 0; kind < 3; kind++)
          check(&(toy_spec){.kind = GP_PLAN_STEP,
                            .order = order,
                            .remat = GP_REMAT_EXCEPT_LAST,
                            .stages = stages,
                            .micros = micros,
                            .smaller = micros / 2,
                            .skips = kind == 1,
                            .frozen = kind == 2});
}

/* Neither copy of a stage needs room for the values of the other. */
TEST(two_copies_have_as_many_slots_as_they_need) {
  for (int stages = 2; stages <= 4; stages += 2)
    for (int micros = 1; micros <= 13; micros += 2)
      for (int kind = 0; kind < 4; kind++)
        check(&(toy_spec){.kind = GP_PLAN_STEP,
                          .order = BOTH_WAYS,
                          .stages = stages,
                          .micros = micros,
                          .smaller = micros / 3,
                          .skips = kind == 1,
                          .frozen = kind == 2,
                          .apart = kind == 3});
}

/* Values of one copy lie where those of the other were: as many slots as one ring for both took. */
TEST(copies_in_one_memory_share_slots) {
  toy_planned made;
  toy_plan(&(toy_spec){.order = BOTH_WAYS, .stages = 2, .micros = 2}, &made);
  CHECK_STATUS(made.status, GP_OK);
  const gp_plan *plan = made.plan;
  const gp_channel *down = &plan->channels[0], *up = &plan->channels[plan->edge_count];
  CHECK(down->slots == 1 && up->slots == 1 && down->home == up->home);
  toy_plan_free(&made);
}

TEST(forward_passes_never_stop) {
  for (int stages = 1; stages <= 4; stages++)
    for (int micros = 1; micros <= 9; micros += 2)
      for (int skips = 0; skips < 2; skips++)
        check(&(toy_spec){.kind = GP_PLAN_EVALUATE,
                          .order = FORWARD,
                          .stages = stages,
                          .micros = micros,
                          .skips = skips});
}

/* Under 1F1B the values between two neighbours wait for at most one round trip. */
TEST(one_f_one_b_needs_few_slots) {
  toy_planned made;
  toy_plan(&(toy_spec){.order = ONE_F_ONE_B, .stages = 4, .micros = 16}, &made);
  CHECK_STATUS(made.status, GP_OK);
  for (int32_t e = 0; e < made.plan->edge_count; e++) CHECK(made.plan->channels[e].slots <= 5);
  toy_plan_free(&made);
  toy_plan(&(toy_spec){.order = GPIPE, .stages = 4, .micros = 16}, &made);
  CHECK(made.plan->channels[0].slots == 16);
  toy_plan_free(&made);
}

static int slots_of(const toy_spec *spec) {
  toy_planned made;
  toy_plan(spec, &made);
  CHECK_STATUS(made.status, GP_OK);
  const int slots = made.plan ? made.plan->channels[0].slots : 0;
  toy_plan_free(&made);
  return slots;
}

/* A credit comes back from another process when it has crossed the network. */
TEST(makers_that_wait_for_slots_have_more_of_them_between_processes) {
  toy_spec spec = {.kind = GP_PLAN_EVALUATE, .order = FORWARD, .stages = 2, .micros = 64};
  CHECK(slots_of(&spec) == 3);
  spec.apart = true;
  CHECK(slots_of(&spec) == 3 + 16);
  spec.micros = 5;
  CHECK(slots_of(&spec) == 5);
}

/* They wait for no credit, so that is true of any latency. */
TEST(steps_have_no_more_slots_between_processes) {
  toy_spec spec = {.order = ONE_F_ONE_B, .stages = 4, .micros = 16};
  const int slots = slots_of(&spec);
  spec.apart = true;
  CHECK(slots_of(&spec) == slots);
}

TEST_MAIN(steps_have_as_many_slots_as_they_need, two_copies_have_as_many_slots_as_they_need,
          copies_in_one_memory_share_slots, forward_passes_never_stop, one_f_one_b_needs_few_slots,
          makers_that_wait_for_slots_have_more_of_them_between_processes,
          steps_have_no_more_slots_between_processes)
