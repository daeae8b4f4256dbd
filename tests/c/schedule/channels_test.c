/* tests/c/schedule/channels_test.c - capacities of channels, compared with devices that send and
 * receive one message at a time. */
#include "test.h"
#include "verify_oracle.h"

/* One send or receive of a device: direction, sending stage and micro-batch identify the
 * message. */
typedef struct deed {
  bool sends;
  int direction, stage, micro, peer;
} deed;

typedef struct program {
  deed deeds[DEVICES][4 * ROW];
  int count[DEVICES], next[DEVICES];
  bool sent[2][STAGES][MICROS], taken[2][STAGES][MICROS];
} program;

/* Finds the device of a (stage, micro-batch); returns whether the rows hold such an action. */
static bool find(const grid *g, gp_act op, int stage, int micro, int *device) {
  for (int d = 0; d < g->devices; d++)
    for (int a = 0; a < g->count[d]; a++) {
      const gp_action *x = &g->rows[d][a];
      if (x->op != op || x->stage != stage || x->micro != micro) continue;
      *device = d;
      return true;
    }
  return false;
}

static void add(program *p, int d, deed x) { p->deeds[d][p->count[d]++] = x; }

/* Adds the receive before an action, or the send after it. Messages that the rows name are in them
 * already. */
static void add_deed(const grid *g, program *p, int d, const gp_action *x, bool sends) {
  bool forward = x->op == GP_ACT_F || x->op == GP_ACT_SEND_F || x->op == GP_ACT_RECV_F;
  bool computes = x->op == GP_ACT_F || x->op == GP_ACT_B || x->op == GP_ACT_I;
  gp_act mine =
      sends ? (forward ? GP_ACT_SEND_F : GP_ACT_SEND_B) : (forward ? GP_ACT_RECV_F : GP_ACT_RECV_B);
  int other = x->stage + (forward == sends ? 1 : -1), peer, ignored;
  if (x->op != mine && (!computes || find(g, mine, x->stage, x->micro, &ignored))) return;
  if (!find(g, GP_ACT_F, other, x->micro, &peer) || peer == d) return;
  add(p, d, (deed){sends, !forward, sends ? x->stage : other, x->micro, peer});
}

static program program_of(const grid *g) {
  program p = {.count = {0}};
  for (int d = 0; d < g->devices; d++)
    for (int a = 0, end; a < g->count[d]; a = end) {
      for (end = a + 1; g->rows[d][end - 1].joined;) end++;
      for (int k = a; k < end; k++) add_deed(g, &p, d, &g->rows[d][k], false);
      for (int k = a; k < end; k++) add_deed(g, &p, d, &g->rows[d][k], true);
    }
  return p;
}

/* Counts the messages that lie in this one's channel: same edge, same direction, same two
 * devices. */
static int waiting(const program *p, int d, const deed *x) {
  int n = 0;
  for (int e = 0; e < p->next[d]; e++) {
    const deed *y = &p->deeds[d][e];
    n += y->sends && y->direction == x->direction && y->stage == x->stage && y->peer == x->peer &&
         !p->taken[y->direction][y->stage][y->micro];
  }
  return n;
}

/* Is the peer about to receive this message? */
static bool is_met(const program *p, int d, const deed *x) {
  const deed *y = &p->deeds[x->peer][p->next[x->peer]];
  return p->next[x->peer] < p->count[x->peer] && !y->sends && y->peer == d &&
         y->direction == x->direction && y->stage == x->stage && y->micro == x->micro;
}

static bool act(program *p, int d, int capacity) {
  if (p->next[d] == p->count[d]) return false;
  const deed *x = &p->deeds[d][p->next[d]];
  bool *sent = &p->sent[x->direction][x->stage][x->micro];
  if (!x->sends && !*sent) return false;
  if (!x->sends) {
    p->taken[x->direction][x->stage][x->micro] = true;
    p->next[d]++;
    return true;
  }
  if (capacity == 0 ? !is_met(p, d, x) : waiting(p, d, x) >= capacity) return false;
  *sent = true;
  p->next[d]++;
  if (capacity == 0) act(p, x->peer, 0);
  return true;
}

static bool ends(const grid *g, int capacity) {
  program p = program_of(g);
  for (bool moved = true; moved;) {
    moved = false;
    for (int d = 0; d < g->devices; d++) moved |= act(&p, d, capacity);
  }
  for (int d = 0; d < g->devices; d++)
    if (p.next[d] < p.count[d]) return false;
  return true;
}

TEST(the_smallest_capacity_is_that_of_a_slow_run) {
  int deadlocks = 0;
  random_state = 5;
  for (int n = 0; n < 4000; n++) {
    grid g = random_grid();
    gp_schedule *s = NULL;
    int works, fast, wanted = 0;
    while (!ends(&g, wanted)) wanted++;
    CHECK_STATUS(make(&g, &s, NULL), GP_OK);
    CHECK_STATUS(gp_schedule_capacity(s, &works, &fast), GP_OK);
    CHECK(works == wanted && fast >= works && fast <= g.micros);
    for (int c = 0; c <= wanted; c++) {
      gp_schedule_fault fault = {0};
      gp_status status = gp_schedule_limit(s, &(gp_schedule_limits){c, -1, -1, NULL}, &fault);
      CHECK((status == GP_OK) == (c == wanted));
      if (status) CHECK_TEXT(gp_error_text(), ": a deadlock with channels of capacity");
    }
    deadlocks += wanted > 0;
    gp_schedule_free(s);
  }
  CHECK(deadlocks > 300);
}

/* ---- the passes keep a schedule a schedule --------------------------------------------------- */

static gp_status remake(const grid *g, const gp_schedule *s,
                        gp_status (*pass)(const gp_schedule *s, gp_rows **rows),
                        gp_schedule **made) {
  gp_rows *rows;
  GP_TRY(pass(s, &rows));
  gp_schedule_spec spec = spec_of(g, rows);
  gp_status status = gp_schedule_new(&spec, made, NULL);
  gp_rows_free(rows);
  return status;
}

static int count_ops(const gp_schedule *s, gp_act first, gp_act last) {
  int n = 0;
  for (int d = 0; d < gp_schedule_device_count(s); d++) {
    int count;
    const gp_action *row = gp_schedule_get(s, d, &count);
    for (int a = 0; a < count; a++) n += row[a].op >= first && row[a].op <= last;
  }
  return n;
}

TEST(sends_and_receives_that_are_added_make_a_schedule_too) {
  random_state = 6;
  for (int n = 0; n < 3000; n++) {
    grid g = random_grid();
    program p = program_of(&g);
    gp_schedule *s = NULL, *lowered = NULL, *again = NULL, *bare = NULL;
    int messages = 0, steps, longest = 0;
    for (int d = 0; d < g.devices; d++) messages += p.count[d];
    CHECK_STATUS(make(&g, &s, NULL), GP_OK);
    CHECK_STATUS(remake(&g, s, gp_schedule_comms, &lowered), GP_OK);
    CHECK(count_ops(lowered, GP_ACT_SEND_F, GP_ACT_RECV_B) == messages);
    CHECK(count_ops(lowered, GP_ACT_IDLE, GP_ACT_IDLE) == 0);
    CHECK_STATUS(gp_schedule_steps(lowered, NULL, &steps), GP_OK);
    for (int d = 0; d < g.devices; d++) {
      int count, cells = 0;
      const gp_action *row = gp_schedule_get(lowered, d, &count);
      for (int a = 0; a < count; a++) cells += !row[a].joined;
      if (cells > longest) longest = cells;
    }
    CHECK(steps >= longest && steps <= g.devices * (longest + 1) * 4);
    CHECK_STATUS(remake(&g, lowered, gp_schedule_comms, &again), GP_OK);
    CHECK(count_ops(again, GP_ACT_SEND_F, GP_ACT_RECV_B) == messages);
    CHECK_STATUS(remake(&g, lowered, gp_schedule_compute, &bare), GP_OK);
    CHECK(count_ops(bare, GP_ACT_SEND_F, GP_ACT_RECV_B) == 0);
    CHECK(count_ops(bare, GP_ACT_F, GP_ACT_U) == count_ops(s, GP_ACT_F, GP_ACT_U));
    gp_schedule_free(s);
    gp_schedule_free(lowered);
    gp_schedule_free(again);
    gp_schedule_free(bare);
  }
}

TEST(merging_makes_one_action_of_neighbours) {
  int merged = 0;
  random_state = 8;
  for (int n = 0; n < 2000; n++) {
    grid g = random_grid();
    gp_schedule *s = NULL, *made = NULL;
    CHECK_STATUS(make(&g, &s, NULL), GP_OK);
    CHECK_STATUS(remake(&g, s, gp_schedule_merged, &made), GP_OK);
    int halves = count_ops(s, GP_ACT_I, GP_ACT_I), left = count_ops(made, GP_ACT_I, GP_ACT_I);
    CHECK(count_ops(made, GP_ACT_W, GP_ACT_W) == left);
    CHECK(count_ops(made, GP_ACT_B, GP_ACT_B) == count_ops(s, GP_ACT_B, GP_ACT_B) + halves - left);
    merged += halves - left;
    gp_schedule_free(s);
    gp_schedule_free(made);
  }
  CHECK(merged > 500);
}

TEST(no_failed_allocation_leaks) {
  random_state = 4;
  grid g = random_grid();
  gp_schedule *s = NULL, *made = NULL;
  CHECK_STATUS(make(&g, &s, NULL), GP_OK);
  size_t live = gp_memory().live;
  for (uint64_t k = 1;; k++) {
    int works, fast;
    gp_memory_fail_at(k);
    gp_status status = remake(&g, s, gp_schedule_comms, &made);
    if (!status) status = gp_schedule_steps(made, NULL, &fast);
    if (!status) status = gp_schedule_capacity(s, &works, &fast);
    gp_memory_fail_at(0);
    gp_schedule_free(made);
    made = NULL;
    CHECK(gp_memory().live == live);
    if (status != GP_ENOMEM) break;
  }
  gp_schedule_free(s);
}

TEST_MAIN(the_smallest_capacity_is_that_of_a_slow_run,
          sends_and_receives_that_are_added_make_a_schedule_too,
          merging_makes_one_action_of_neighbours, no_failed_allocation_leaks)
