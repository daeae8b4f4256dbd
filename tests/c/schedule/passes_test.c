/* tests/c/schedule/passes_test.c - what lowering adds to lists of actions, compared literally. */
#include "base/memory.h"
#include "schedule/passes.h"
#include "schedule_rows.h"
#include "test.h"

/* A schedule as text, one row per device; placement per stage and copy. */
typedef struct given {
  const char *rows[4];
  int devices, stages, copies, batch;
  int32_t placement[8];
} given;

static gp_schedule *schedule_of(const given *g) {
  gp_schedule *schedule = NULL;
  gp_schedule_spec spec = {.stage_count = g->stages,
                           .placement = g->placement,
                           .copy_count = g->copies ? g->copies : 1,
                           .batch = g->batch};
  CHECK_STATUS(schedule_of_rows(&spec, g->rows, g->devices, &schedule, NULL), GP_OK);
  return schedule;
}

/* "0F0 0F1 1R0 1B0", with the version where an action has one. */
static void write_row(const gp_lowered *lowered, int device, char *text, size_t room) {
  size_t used = 0;
  text[0] = 0;
  for (int32_t a = lowered->first[device]; a < lowered->first[device + 1] && used < room; a++) {
    const gp_action *x = &lowered->actions[a];
    used += (size_t)snprintf(text + used, room - used, "%s%d%s", used ? " " : "", (int)x->stage,
                             gp_act_name((gp_act)x->op));
    if (x->micro >= 0) used += (size_t)snprintf(text + used, room - used, "%d", (int)x->micro);
    if (x->version >= 0 && x->op != GP_ACT_U)
      used += (size_t)snprintf(text + used, room - used, "@%d", (int)x->version);
  }
}

static void check_rows(const given *g, gp_remat remat, gp_update_mode update,
                       const char *const *wanted) {
  gp_schedule *schedule = schedule_of(g);
  gp_lower_options options = {.remat = remat, .update = update};
  gp_lowered lowered;
  char made[1024];
  if (!schedule) return;
  CHECK_STATUS(gp_schedule_lower(schedule, &options, &lowered), GP_OK);
  for (int d = 0; d < g->devices; d++) {
    write_row(&lowered, d, made, sizeof made);
    if (strcmp(made, wanted[d])) printf("device %d: '%s', not '%s'\n", d, made, wanted[d]);
    CHECK(!strcmp(made, wanted[d]));
  }
  gp_lowered_free(&lowered);
  gp_schedule_free(schedule);
}

#define ROWS(...) ((const char *const[]){__VA_ARGS__})

/* ---- ascending weight gradients -------------------------------------------------------------- */

static const given lifo = {
    {"0F0,0F1,0F2,0B2,0B1,0B0", "1F0,1F1,1F2,1B2,1B1,1B0"}, 2, 2, 1, 0, {0, 1}};

TEST(descending_backward_passes_leave_their_weights_for_the_end) {
  check_rows(&lifo, GP_REMAT_NEVER, GP_UPDATE_NONE,
             ROWS("0F0 0F1 0F2 0I2 0I1 0I0 0W0 0W1 0W2", "1F0 1F1 1F2 1I2 1I1 1I0 1W0 1W1 1W2"));
  check_rows(&lifo, GP_REMAT_EXCEPT_LAST, GP_UPDATE_BARRIER,
             ROWS("0F0 0F1 0F2 0I2 0R1 0I1 0R0 0I0 0W0 0W1 0W2 0U0",
                  "1F0 1F1 1F2 1I2 1R1 1I1 1R0 1I0 1W0 1W1 1W2 1U0"));
}

TEST(looped_breadth_first_does_so_on_every_stage) {
  given g = {{"0F0,0F1,2F0,2F1,2B1,2B0,0B1,0B0", "1F0,1F1,3F0,3F1,3B1,3B0,1B1,1B0"},
             2,
             4,
             1,
             0,
             {0, 1, 0, 1}};
  check_rows(&g, GP_REMAT_NEVER, GP_UPDATE_BARRIER,
             ROWS("0F0 0F1 2F0 2F1 2I1 2I0 2W0 2W1 0I1 0I0 0W0 0W1 0U0 2U0",
                  "1F0 1F1 3F0 3F1 3I1 3I0 3W0 3W1 1I1 1I0 1W0 1W1 1U0 3U0"));
  check_rows(&g, GP_REMAT_NEVER, GP_UPDATE_FREE,
             ROWS("0F0 0F1 2F0 2F1 2I1 2I0 2W0 2W1 2U0 0I1 0I0 0W0 0W1 0U0",
                  "1F0 1F1 3F0 3F1 3I1 3I0 3W0 3W1 3U0 1I1 1I0 1W0 1W1 1U0"));
}

TEST(each_copy_of_a_stage_adds_its_own_in_ascending_order) {
  given g = {{"0F0,1F2,1B2,0B0,0F1,1F3,1B3,0B1", "0F2,1F0,1B0,0B2,0F3,1F1,1B1,0B3"},
             2,
             2,
             2,
             0,
             {0, 1, 1, 0}};
  check_rows(&g, GP_REMAT_NEVER, GP_UPDATE_NONE,
             ROWS("0F0 1F2 1B2 0B0 0F1 1F3 1B3 0B1 0REDUCE_GRAD 1REDUCE_GRAD",
                  "0F2 1F0 1B0 0B2 0F3 1F1 1B1 0B3 0REDUCE_GRAD 1REDUCE_GRAD"));
  given down = {{"0F1,0F0,1F3,1F2,1B2,1B3,0B0,0B1", "0F3,0F2,1F1,1F0,1B0,1B1,0B3,0B2"},
                2,
                2,
                2,
                0,
                {0, 1, 1, 0}};
  check_rows(&down, GP_REMAT_NEVER, GP_UPDATE_BARRIER,
             ROWS("0F1 0F0 1F3 1F2 1B2 1B3 0B0 0B1 0REDUCE_GRAD 1REDUCE_GRAD 0U0 1U0",
                  "0F3 0F2 1F1 1F0 1B0 1B1 0I3 0I2 0W2 0W3 0REDUCE_GRAD 1REDUCE_GRAD 0U0 1U0"));
}

/* ---- recomputation and split backward passes ------------------------------------------------- */

TEST(zero_bubble_h1_keeps_its_own_split) {
  given g = {{"0F0,0F1,0F2,0I0,0W0,0F3,0I1,0W1,0I2,0W2,0I3,0W3",
              "1F0,1F1,1I0,1F2,1I1,1W0,1F3,1I2,1W1,1I3,1W2,1W3",
              "2F0,2I0,2F1,2I1,2F2,2I2,2W0,2F3,2I3,2W1,2W2,2W3"},
             3,
             3,
             1,
             0,
             {0, 1, 2}};
  check_rows(&g, GP_REMAT_EXCEPT_LAST, GP_UPDATE_BARRIER,
             ROWS("0F0 0F1 0F2 0R0 0B0 0F3 0R1 0B1 0R2 0B2 0R3 0B3 0U0",
                  "1F0 1F1 1R0 1I0 1F2 1R1 1I1 1W0 1F3 1R2 1I2 1W1 1R3 1I3 1W2 1W3 1U0",
                  "2F0 2I0 2F1 2I1 2F2 2I2 2W0 2F3 2I3 2W1 2W2 2W3 2U0"));
}

/* ---- asynchronous ---------------------------------------------------------------------------- */

TEST(updates_of_asynchronous_schedules_stay_where_they_are) {
  given g = {{"0F0@0,0F1@0,0B0@0,0U0,0F2@1,0B1@0,0U1,0B2@1,0U2",
              "1F0@0,1B0@0,1U0,1F1@1,1B1@1,1U1,1F2@2,1B2@2,1U2"},
             2,
             2,
             1,
             1,
             {0, 1}};
  check_rows(&g, GP_REMAT_ALWAYS, GP_UPDATE_FREE,
             ROWS("0F0@0 0F1@0 0R0@0 0B0@0 0U0 0F2@1 0R1@0 0B1@0 0U1 0R2@1 0B2@1 0U2",
                  "1F0@0 1R0@0 1B0@0 1U0 1F1@1 1R1@1 1B1@1 1U1 1F2@2 1R2@2 1B2@2 1U2"));
}

TEST(gradients_of_the_next_mini_batch_wait_for_the_update_before) {
  given g = {{"0F0@0,0F1@0,0B0@0,0B1@0,0U0,0U1,0F2@2,0F3@2,0B3@2,0B2@2,0U2,0U3"}, 1, 1, 1, 1, {0}};
  check_rows(&g, GP_REMAT_NEVER, GP_UPDATE_FREE,
             ROWS("0F0@0 0F1@0 0I0@0 0W0@0 0I1@0 0U0 0W1@0 0U1 "
                  "0F2@2 0F3@2 0I3@2 0I2@2 0W2@2 0U2 0W3@2 0U3"));
}

TEST_MAIN(descending_backward_passes_leave_their_weights_for_the_end,
          looped_breadth_first_does_so_on_every_stage,
          each_copy_of_a_stage_adds_its_own_in_ascending_order, zero_bubble_h1_keeps_its_own_split,
          updates_of_asynchronous_schedules_stay_where_they_are,
          gradients_of_the_next_mini_batch_wait_for_the_update_before)
