/* tests/c/schedule/schedule_test.c - the verifier against a brute-force interpreter, on good
 * schedules and mutants. */
#include <stdlib.h>

#include "schedule_rows.h"
#include "test.h"

enum { DEVICES = 4, ROW = 128, STAGES = 4, MICROS = 6 };

/* Rows as lists of actions, easier to change than text. */
typedef struct grid {
  int stages, count[DEVICES];
  gp_action rows[DEVICES][ROW];
  int32_t placement[STAGES];
} grid;

static uint32_t state = 1;

static int draw(int below) {
  state = state * 1664525 + 1013904223;
  return (int)((state >> 8) % (uint32_t)below);
}

static void push(grid *g, int device, gp_act op, int stage, int micro) {
  g->rows[device][g->count[device]++] =
      (gp_action){.op = (uint8_t)op, .stage = stage, .micro = micro, .version = -1};
}

/* Makes GPipe or 1F1B with one stage a device. apart: I and W replace B, and W comes one action
 * later. */
static grid make(int stages, int micros, bool one, bool apart) {
  grid g = {.stages = stages};
  for (int r = 0; r < stages; r++) {
    int ahead = one ? stages - 1 - r : micros;
    g.placement[r] = r;
    if (ahead > micros) ahead = micros;
    for (int i = 0; i < ahead; i++) push(&g, r, GP_ACT_F, r, i);
    for (int i = 0; i < micros; i++) {
      if (ahead + i < micros) push(&g, r, GP_ACT_F, r, ahead + i);
      push(&g, r, apart ? GP_ACT_I : GP_ACT_B, r, i);
      if (apart && i > 0) push(&g, r, GP_ACT_W, r, i - 1);
    }
    if (apart) push(&g, r, GP_ACT_W, r, micros - 1);
  }
  return g;
}

static gp_status parse(const grid *g, gp_schedule **schedule, gp_schedule_fault *fault) {
  static char text[DEVICES][ROW * 12];
  const char *rows[DEVICES];
  for (int d = 0; d < g->stages; d++) {
    size_t used = 0;
    text[d][0] = 0;
    for (int a = 0; a < g->count[d]; a++) {
      const gp_action *x = &g->rows[d][a];
      used += (size_t)snprintf(text[d] + used, sizeof text[d] - used, a ? ",%s" : "%s",
                               gp_action_print(x, (char[GP_ACTION_TEXT]){0}));
    }
    rows[d] = text[d];
  }
  gp_schedule_spec spec = {.stage_count = g->stages, .placement = g->placement};
  return schedule_of_rows(&spec, rows, g->stages, schedule, fault);
}

/* ---- the interpreter ------------------------------------------------------------------------ */

typedef struct done {
  bool f[STAGES][MICROS], i[STAGES][MICROS], w[STAGES][MICROS];
} done;

static bool can_run(const grid *g, const done *d, const gp_action *x) {
  int s = x->stage, m = x->micro;
  bool below = s == 0 || d->f[s - 1][m], above = s == g->stages - 1 || d->i[s + 1][m];
  if (x->op == GP_ACT_F) return below;
  if (x->op == GP_ACT_W) return d->i[s][m];
  return d->f[s][m] && above;
}

static bool forward_only(const grid *g) {
  bool only = true;
  for (int r = 0; r < g->stages; r++)
    for (int a = 0; a < g->count[r]; a++) only &= g->rows[r][a].op == GP_ACT_F;
  return only;
}

/* Runs device after device as long as any of them advances: does every action run, each once? */
static bool works(const grid *g, int micros) {
  done d = {0};
  bool only = forward_only(g);
  int next[DEVICES] = {0};
  for (bool moved = true; moved;) {
    moved = false;
    for (int r = 0; r < g->stages; r++)
      while (next[r] < g->count[r]) {
        const gp_action *x = &g->rows[r][next[r]];
        int s = x->stage, m = x->micro;
        if (g->placement[s] != r || !can_run(g, &d, x)) break;
        bool *mine = x->op == GP_ACT_F ? &d.f[s][m] : x->op == GP_ACT_W ? &d.w[s][m] : &d.i[s][m];
        if (*mine || (x->op == GP_ACT_B && d.w[s][m])) return false;
        *mine = true;
        if (x->op == GP_ACT_B) d.w[s][m] = true;
        next[r]++;
        moved = true;
      }
  }
  for (int r = 0; r < g->stages; r++)
    if (next[r] < g->count[r]) return false;
  for (int s = 0; s < g->stages; s++)
    for (int m = 0; m < micros; m++)
      if (!d.f[s][m] || (!only && (!d.i[s][m] || !d.w[s][m]))) return false;
  return true;
}

static int highest_micro(const grid *g) {
  int micros = 0;
  for (int d = 0; d < g->stages; d++)
    for (int a = 0; a < g->count[d]; a++)
      if (g->rows[d][a].micro >= micros) micros = g->rows[d][a].micro + 1;
  return micros;
}

/* ---- the order ------------------------------------------------------------------------------ */

/* Returns the position of an action in the order, or -1. */
static int32_t order_of(const gp_schedule *s, gp_act op, int stage, int micro) {
  for (int32_t a = 0; a < s->first[s->device_count]; a++)
    if (s->actions[a].op == op && s->actions[a].stage == stage && s->actions[a].micro == micro)
      return s->order[a];
  return -1;
}

static void check_order(const gp_schedule *s) {
  for (int32_t d = 0; d < s->device_count; d++)
    for (int32_t a = s->first[d] + 1; a < s->first[d + 1]; a++)
      CHECK(s->order[a - 1] < s->order[a]);
  for (int32_t stage = 0; stage + 1 < s->stage_count; stage++)
    for (int32_t m = 0; m < s->micro_count; m++) {
      CHECK(order_of(s, GP_ACT_F, stage, m) < order_of(s, GP_ACT_F, stage + 1, m));
      gp_act back = order_of(s, GP_ACT_B, stage, m) < 0 ? GP_ACT_I : GP_ACT_B;
      CHECK(order_of(s, back, stage + 1, m) < order_of(s, back, stage, m));
    }
}

TEST(good_schedules_have_a_topological_order) {
  for (int kind = 0; kind < 4; kind++)
    for (int stages = 1; stages <= STAGES; stages++)
      for (int micros = 1; micros <= MICROS; micros++) {
        grid g = make(stages, micros, kind & 1, kind & 2);
        gp_schedule *s = NULL;
        CHECK(works(&g, micros));
        CHECK_STATUS(parse(&g, &s, NULL), GP_OK);
        if (s) check_order(s);
        CHECK(s && s->micro_count == micros && s->stage_count == stages);
        gp_schedule_free(s);
      }
}

/* ---- mutants -------------------------------------------------------------------------------- */

static void drop(grid *g, int d, int a) {
  for (int k = a; k + 1 < g->count[d]; k++) g->rows[d][k] = g->rows[d][k + 1];
  g->count[d]--;
}

/* Swaps two actions, drops or doubles one, or changes its stage, micro-batch or op. */
static void mutate(grid *g) {
  int d = draw(g->stages), a = draw(g->count[d]), b = draw(g->count[d]);
  gp_action *x = &g->rows[d][a], copy = *x;
  switch (draw(6)) {
  case 0: *x = g->rows[d][b], g->rows[d][b] = copy; break;
  case 1: drop(g, d, a); break;
  case 2: g->rows[d][g->count[d]++] = copy; break;
  case 3: x->stage = draw(g->stages); break;
  case 4: x->micro = draw(MICROS); break;
  default: x->op = (uint8_t)draw(GP_ACT_W + 1);
  }
}

/* The schedule is refused: the message marks the faulty action in its grid, where the fault
 * says. */
static void check_report(const grid *g, const gp_schedule_fault *fault) {
  char marked[32];
  CHECK(fault->check && fault->device >= 0 && fault->device < g->stages);
  CHECK_TEXT(gp_error_text(), "schedule: ");
  if (fault->position < 0) return;
  CHECK(fault->position < g->count[fault->device]);
  const gp_action *x = &g->rows[fault->device][fault->position];
  snprintf(marked, sizeof marked, ">%s<", gp_action_print(x, (char[GP_ACTION_TEXT]){0}));
  CHECK_TEXT(gp_error_text(), marked);
}

TEST(the_verifier_agrees_with_an_interpreter_on_mutants) {
  int good = 0, refused = 0;
  size_t live = gp_memory().live;
  for (state = 1; good + refused < 6000;) {
    int micros = 1 + draw(MICROS);
    grid g = make(1 + draw(STAGES), micros, draw(2), draw(2));
    for (int k = 1 + draw(2); k > 0; k--) mutate(&g);
    gp_schedule *s = NULL;
    gp_schedule_fault fault = {0};
    gp_status status = parse(&g, &s, &fault);
    bool wanted = highest_micro(&g) > 0 && works(&g, highest_micro(&g));
    if ((status == GP_OK) != wanted) printf("%s\n", status ? gp_error_text() : "accepted");
    CHECK((status == GP_OK) == wanted);
    if (status == GP_OK) check_order(s);
    if (status != GP_OK && highest_micro(&g) > 0) check_report(&g, &fault);
    gp_schedule_free(s);
    *(status == GP_OK ? &good : &refused) += 1;
  }
  CHECK(good > 300 && refused > 3000);
  CHECK(gp_memory().live == live);
}

/* ---- forward only, refusals, failing allocations --------------------------------------------- */

TEST(forward_passes_alone_are_a_schedule) {
  grid g = {.stages = 2, .placement = {0, 1}};
  for (int r = 0; r < 2; r++)
    for (int i = 0; i < 3; i++) push(&g, r, GP_ACT_F, r, i);
  gp_schedule *s = NULL;
  CHECK_STATUS(parse(&g, &s, NULL), GP_OK);
  gp_schedule_free(s);
  push(&g, 0, GP_ACT_B, 0, 0); /* a backward pass makes it a step */
  CHECK_STATUS(parse(&g, &s, NULL), GP_ESCHEDULE);
}

TEST(texts_that_are_no_schedule_are_refused) {
  static const struct {
    const char *row, *text;
  } cases[] = {{"0F", "'0F' is not an action"},
               {"F0", "'F0' is not an action"},
               {"0f0", "'0f0' is not an action"},
               {"0F0 0B0", "'0F0 0B0' is not an action"},
               {"-1F0", "'-1F0' is not an action"},
               {"0F1000000", "'0F1000000' is not an action"},
               {"1F0", "stage 1 of 1F0 has no placement (1 stages)"},
               {"0C0", "0C0 is not an action of a schedule"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    gp_schedule *s = NULL;
    int32_t placement = 0;
    const char *rows[] = {cases[i].row};
    gp_schedule_spec spec = {.stage_count = 1, .placement = &placement};
    CHECK_STATUS(schedule_of_rows(&spec, rows, 1, &s, NULL), GP_ESCHEDULE);
    CHECK_TEXT(gp_error_text(), cases[i].text);
  }
}

TEST(no_failed_allocation_leaks) {
  grid g = make(4, 4, true, false);
  size_t live = gp_memory().live;
  for (uint64_t n = 1;; n++) {
    gp_schedule *s = NULL;
    gp_memory_fail_at(n);
    gp_status status = parse(&g, &s, NULL);
    gp_memory_fail_at(0);
    gp_schedule_free(s);
    CHECK(gp_memory().live == live);
    if (status == GP_OK) break;
    CHECK(status == GP_ENOMEM);
  }
}

TEST_MAIN(good_schedules_have_a_topological_order,
          the_verifier_agrees_with_an_interpreter_on_mutants, forward_passes_alone_are_a_schedule,
          texts_that_are_no_schedule_are_refused, no_failed_allocation_leaks)
