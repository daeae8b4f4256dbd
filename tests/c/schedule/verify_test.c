/* tests/c/schedule/verify_test.c - all that the verifier finds, compared with slow and simple
 * judges: good schedules of every kind and their mutants; limits, slots and versions counted by
 * hand. */
#include <stdlib.h>

#include "test.h"
#include "verify_oracle.h"

enum { HOLDERS = 2 * STAGES };

static void print(const grid *g) {
  char text[4096];
  printf("copies %d batch %d placement", g->copies, g->batch);
  for (int i = 0; i < g->stages * g->copies; i++) printf(" %d", (int)g->placement[i]);
  for (int d = 0; d < g->devices; d++) {
    gp_rows_print(g->rows[d], g->count[d], text, sizeof text);
    printf("\n  %s", text);
  }
  printf("\n");
}

/* ---- schedules and mutants ------------------------------------------------------------------ */

/* The names of the checks that refused something. */
typedef struct bites {
  const char *names[16];
  int count[16], kinds;
} bites;

static void note(bites *b, const char *name) {
  int i = 0;
  while (i < b->kinds && strcmp(b->names[i], name) != 0) i++;
  if (i == b->kinds) b->names[b->kinds++] = name;
  b->count[i]++;
}

static int count_of(const bites *b, const char *name) {
  for (int i = 0; i < b->kinds; i++)
    if (!strcmp(b->names[i], name)) return b->count[i];
  return 0;
}

/* The order is a permutation in which every row ascends and joined actions are neighbours. */
static void check_order(const gp_schedule *s) {
  int32_t total = s->first[s->device_count];
  bool *seen = calloc((size_t)total + 1, 1);
  for (int32_t d = 0; d < s->device_count; d++)
    for (int32_t a = s->first[d]; a < s->first[d + 1]; a++) {
      CHECK(s->order[a] >= 0 && s->order[a] < total && !seen[s->order[a]]);
      seen[s->order[a]] = true;
      if (a > s->first[d]) CHECK(s->order[a - 1] < s->order[a]);
      if (s->actions[a].joined) CHECK(s->order[a] + 1 == s->order[a + 1]);
    }
  free(seen);
}

static void check_report(const grid *g, const gp_schedule_fault *fault) {
  char marked[GP_ACTION_TEXT + 2] = ">", one[GP_ACTION_TEXT];
  CHECK(fault->check && fault->device >= 0 && fault->device < g->devices);
  CHECK_TEXT(gp_error_text(), "schedule: ");
  CHECK(strlen(gp_error_text()) < 2000);
  if (fault->position < 0) return;
  CHECK(fault->position < g->count[fault->device]);
  const gp_action *x = &g->rows[fault->device][fault->position];
  strcat(strcat(marked, x->op == GP_ACT_IDLE ? "." : gp_action_print(x, one)), "<");
  CHECK_TEXT(gp_error_text(), marked);
  CHECK_TEXT(gp_error_text(), "^");
}

TEST(the_verifier_agrees_with_a_simple_judge) {
  int good = 0, refused = 0;
  bites b = {.kinds = 0};
  size_t live = gp_memory().live;
  for (random_state = 1; good + refused < 30000;) {
    grid g = random_grid();
    for (int k = draw(3); k > 0; k--) mutate(&g);
    gp_schedule *s = NULL;
    gp_schedule_fault fault = {0};
    bool wanted = is_good(&g), accepted = make(&g, &s, &fault) == GP_OK;
    if (accepted != wanted) printf("%s\n", accepted ? "accepted" : gp_error_text()), print(&g);
    CHECK(accepted == wanted);
    if (accepted != wanted) return;
    if (accepted) check_order(s);
    if (!accepted && highest_micro(&g)) check_report(&g, &fault), note(&b, fault.check);
    gp_schedule_free(s);
    *(accepted ? &good : &refused) += 1;
  }
  CHECK(good > 8000 && refused > 8000);
  const char *names[] = {"op",    "placement", "unique",   "complete", "order",
                         "cycle", "pairing",   "versions", "updates"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) CHECK(count_of(&b, names[i]) > 20);
  CHECK(gp_memory().live == live);
}

/* ---- memory --------------------------------------------------------------------------------- */

/* Values are live from F on, or from R on and during F, to B or W; found by looking at every pair
 * of positions. */
static bool is_live(const grid *g, int d, int stage, int micro, int at, bool train) {
  bool live = false, again = false, dropped = false;
  for (int a = 0; a < g->count[d]; a++) {
    const gp_action *x = &g->rows[d][a];
    again |= x->op == GP_ACT_R && x->stage == stage && x->micro == micro;
  }
  for (int a = 0; a < g->count[d]; a++) {
    const gp_action *x = &g->rows[d][a];
    bool mine = x->stage == stage && x->micro == micro;
    bool begins = mine && (x->op == GP_ACT_F || x->op == GP_ACT_R);
    bool ends = mine && (x->op == GP_ACT_B || x->op == GP_ACT_W ||
                         (x->op == GP_ACT_F && (again || !train)));
    live |= begins;
    dropped |= ends;
    if (x->joined) continue; /* both parts begin, then both end */
    if (a >= at) return live;
    live &= !dropped;
    dropped = false;
  }
  return false;
}

static int count_live(const grid *g, int d, int stage, int at, bool train) {
  int live = 0;
  for (int s = 0; s < g->stages; s++)
    for (int i = 0; (stage < 0 || s == stage) && i < g->micros; i++)
      live += is_live(g, d, s, i, at, train);
  return live;
}

static bool trains(const grid *g) {
  for (int d = 0; d < g->devices; d++)
    for (int a = 0; a < g->count[d]; a++)
      if (g->rows[d][a].op == GP_ACT_B || g->rows[d][a].op == GP_ACT_I) return true;
  return false;
}

static int most_live(const grid *g, int d, int stage) {
  int most = 0;
  for (int a = 0; a < g->count[d]; a++) {
    int live = count_live(g, d, stage, a, trains(g));
    if (live > most) most = live;
  }
  return most;
}

/* Values are in their slot while they are live, except during an F whose values R makes again:
 * those lie elsewhere until then. */
static bool is_held(const grid *g, int d, int cell, int at) {
  int stage = cell / g->micros, micro = cell % g->micros;
  for (int a = at + 1; a < g->count[d]; a++) {
    const gp_action *x = &g->rows[d][a];
    if (x->op == GP_ACT_R && x->stage == stage && x->micro == micro) return false;
  }
  return is_live(g, d, stage, micro, at, trains(g));
}

static void check_slots(const grid *g, const gp_schedule *s, const int32_t *per_stage) {
  int32_t slot[STAGES * MICROS], count[HOLDERS];
  int cells = g->stages * g->micros;
  CHECK_STATUS(gp_schedule_slots(s, slot, count), GP_OK);
  CHECK(!memcmp(count, per_stage, sizeof *count * (size_t)(g->stages * g->copies)));
  for (int d = 0; d < g->devices; d++)
    for (int a = 0; a < g->count[d]; a++)
      for (int k = 0; k < cells; k++)
        for (int j = k + 1; j < (k / g->micros + 1) * g->micros; j++)
          CHECK(slot[k] != slot[j] || !is_held(g, d, k, a) || !is_held(g, d, j, a));
}

static void check_limit(const gp_schedule *s, gp_schedule_limits limits, bool within,
                        const char *check) {
  gp_schedule_fault fault = {0};
  gp_status status = gp_schedule_limit(s, &limits, &fault);
  CHECK((status == GP_OK) == within);
  if (status && !within) CHECK(!strcmp(fault.check, check));
}

static void check_peaks(const grid *g, const gp_schedule *s) {
  int32_t device[DEVICES], stage[HOLDERS];
  CHECK_STATUS(gp_schedule_peaks(s, device, stage), GP_OK);
  for (int d = 0; d < g->devices; d++) CHECK(device[d] == most_live(g, d, -1));
  for (int h = 0; h < g->stages * g->copies; h++)
    CHECK(stage[h] == most_live(g, g->placement[h], h / g->copies));
  check_limit(s, (gp_schedule_limits){-1, -1, -1, device}, true, "");
  for (int d = 0; d < g->devices; d++) {
    if (device[d]-- == 0) continue;
    check_limit(s, (gp_schedule_limits){-1, -1, -1, device}, false, "liveness");
    device[d]++;
  }
  check_slots(g, s, stage);
}

TEST(what_is_alive_is_counted_and_has_a_slot_of_its_own) {
  random_state = 7;
  for (int n = 0; n < 600; n++) {
    grid g = random_grid();
    gp_schedule *s = NULL;
    CHECK_STATUS(make(&g, &s, NULL), GP_OK);
    if (!s) return;
    check_peaks(&g, s);
    gp_schedule_free(s);
  }
}

/* ---- versions ------------------------------------------------------------------------------- */

/* Counts the versions of the stage's weights that are needed behind action `at`: the newest, and
 * those used later. */
static int versions_behind(const grid *g, int d, int stage, int at) {
  int newest = 0, live = 1;
  for (int a = 0; a <= at; a++)
    newest += g->rows[d][a].op == GP_ACT_U && g->rows[d][a].stage == stage;
  for (int version = 0; version < newest; version++)
    for (int a = at + 1; a < g->count[d]; a++) {
      const gp_action *x = &g->rows[d][a];
      if (x->stage != stage || x->op > GP_ACT_R || x->version != version) continue;
      live++;
      break;
    }
  return live;
}

TEST(versions_that_are_alive_are_counted) {
  random_state = 9;
  int stashed = 0;
  for (int n = 0; n < 3000; n++) {
    grid g = random_grid();
    gp_schedule *s = NULL;
    int32_t live[HOLDERS], most = 1;
    CHECK_STATUS(make(&g, &s, NULL), GP_OK);
    CHECK_STATUS(gp_schedule_versions(s, live), GP_OK);
    for (int h = 0; h < g.stages * g.copies; h++) {
      int wanted = 1, d = g.placement[h];
      for (int a = 0; a < g.count[d]; a++) {
        int now = versions_behind(&g, d, h / g.copies, a);
        if (now > wanted) wanted = now;
      }
      CHECK(live[h] == wanted);
      if (wanted > most) most = wanted;
    }
    check_limit(s, (gp_schedule_limits){-1, most, -1, NULL}, true, "");
    if (most > 1)
      check_limit(s, (gp_schedule_limits){-1, most - 1, -1, NULL}, false, "versions"), stashed++;
    gp_schedule_free(s);
  }
  CHECK(stashed > 100);
}

/* ---- buffers -------------------------------------------------------------------------------- */

/* Do two micro-batches of a stage, on one device, meet in one buffer between F and the last
 * backward action? */
static bool buffers_clash(const grid *g, int buffers) {
  for (int d = 0; d < g->devices; d++) {
    bool live[STAGES][MICROS] = {{false}}, train = trains(g);
    for (int a = 0, group = 0; a < g->count[d]; a++) {
      const gp_action *x = &g->rows[d][a];
      for (int i = 0; x->op == GP_ACT_F && i < g->micros; i++)
        if (live[x->stage][i] && i % buffers == x->micro % buffers) return true;
      if (x->op == GP_ACT_F) live[x->stage][x->micro] = true;
      if (x->joined) continue;
      for (; group <= a; group++) {
        const gp_action *y = &g->rows[d][group];
        if (y->op == GP_ACT_B || y->op == GP_ACT_W || (!train && y->op == GP_ACT_F))
          live[y->stage][y->micro] = false;
      }
    }
  }
  return false;
}

TEST(buffers_in_turn_are_not_shared_by_two_that_live) {
  random_state = 11;
  int clashes = 0;
  for (int n = 0; n < 3000; n++) {
    grid g = random_grid();
    gp_schedule *s = NULL;
    int buffers = 1 + draw(MICROS);
    bool clash = buffers_clash(&g, buffers);
    CHECK_STATUS(make(&g, &s, NULL), GP_OK);
    check_limit(s, (gp_schedule_limits){-1, -1, buffers, NULL}, !clash, "buffers");
    clashes += clash;
    gp_schedule_free(s);
  }
  CHECK(clashes > 100 && clashes < 2900);
}

TEST(no_failed_allocation_leaks) {
  random_state = 3;
  size_t live = gp_memory().live;
  for (int n = 0; n < 12; n++) {
    grid g = random_grid();
    for (uint64_t k = 1;; k++) {
      gp_schedule *s = NULL;
      gp_schedule_fault fault;
      int32_t peak[DEVICES] = {MICROS * STAGES, MICROS * STAGES, MICROS * STAGES, MICROS * STAGES};
      gp_memory_fail_at(k);
      gp_status status = make(&g, &s, &fault);
      if (!status)
        status = gp_schedule_limit(s, &(gp_schedule_limits){MICROS, MICROS, MICROS, peak}, &fault);
      gp_memory_fail_at(0);
      gp_schedule_free(s);
      CHECK(gp_memory().live == live);
      if (status == GP_OK) break;
      CHECK(status == GP_ENOMEM);
      if (status != GP_ENOMEM) return;
    }
  }
}

TEST_MAIN(the_verifier_agrees_with_a_simple_judge,
          what_is_alive_is_counted_and_has_a_slot_of_its_own, versions_that_are_alive_are_counted,
          buffers_in_turn_are_not_shared_by_two_that_live, no_failed_allocation_leaks)
