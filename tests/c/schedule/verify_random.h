/* tests/c/schedule/verify_random.h - random schedules that are right by construction, and ways to
 * spoil them.
 *
 * Actions whose needs are met are appended to the rows of their devices in a random order, so that
 * the rows have an order in which everything runs. */
#ifndef GP_TEST_VERIFY_RANDOM_H
#define GP_TEST_VERIFY_RANDOM_H

#include <string.h>

#include "schedule/schedule.h"

enum { DEVICES = 4, STAGES = 5, MICROS = 4, ROW = 160 };

typedef struct grid {
  int devices, stages, micros, copies, batch;
  int32_t placement[2 * STAGES];
  int count[DEVICES];
  gp_action rows[DEVICES][ROW];
} grid;

/* What a random schedule is made of. */
typedef struct choice {
  bool forward_only, updates, reductions, recompute, pairs, idle;
  bool named[2][STAGES];       /* per direction and sending stage: its messages are in the rows */
  int copy[STAGES][MICROS];    /* which device of the stage runs it */
  bool split[STAGES][MICROS];  /* I and W for B */
  bool again[STAGES][MICROS];  /* recomputed by R */
  int version[STAGES][MICROS]; /* the version that F took */
  bool done[GP_ACT_COUNT][STAGES][2][MICROS];
} choice;

static uint32_t random_state = 1;

static inline int draw(int below) {
  random_state = random_state * 1664525 + 1013904223;
  return (int)((random_state >> 8) % (uint32_t)below);
}

static inline int device_of(const grid *g, int stage, int copy) {
  return g->placement[stage * g->copies + (g->copies == 2 ? copy : 0)];
}

static inline bool local(const grid *g, const choice *c, int stage, int other, int micro) {
  return device_of(g, stage, c->copy[stage][micro]) == device_of(g, other, c->copy[other][micro]);
}

static inline int batch_count(const grid *g) { return g->batch ? g->micros / g->batch : 1; }

/* Returns B or I; the function below returns B or W. */
static inline gp_act back_op(const choice *c, int s, int i) {
  return c->split[s][i] ? GP_ACT_I : GP_ACT_B;
}
static inline gp_act weight_op(const choice *c, int s, int i) {
  return c->split[s][i] ? GP_ACT_W : GP_ACT_B;
}

static inline bool did(const choice *c, gp_act op, int s, int i) {
  return c->done[op][s][c->copy[s][i]][i];
}

/* Is the action part of this schedule? */
static inline bool belongs(const grid *g, const choice *c, gp_act op, int s, int copy, int i) {
  bool mine = i < g->micros && copy == c->copy[s][i], train = !c->forward_only;
  bool up = s + 1 < g->stages, down = s > 0;
  switch (op) {
  case GP_ACT_F: return mine;
  case GP_ACT_B: return mine && train && !c->split[s][i];
  case GP_ACT_I:
  case GP_ACT_W: return mine && train && c->split[s][i];
  case GP_ACT_R: return mine && train && c->again[s][i];
  case GP_ACT_SEND_F: return mine && up && c->named[0][s] && !local(g, c, s, s + 1, i);
  case GP_ACT_RECV_F: return mine && down && c->named[0][s - 1] && !local(g, c, s, s - 1, i);
  case GP_ACT_SEND_B: return mine && train && down && c->named[1][s] && !local(g, c, s, s - 1, i);
  case GP_ACT_RECV_B: return mine && train && up && c->named[1][s + 1] && !local(g, c, s, s + 1, i);
  case GP_ACT_U: return train && c->updates && copy < g->copies && i < batch_count(g);
  case GP_ACT_REDUCE: return train && c->reductions && copy < g->copies && i < batch_count(g);
  default: return false;
  }
}

static inline bool gradients(const grid *g, const choice *c, int s, int k) {
  int size = g->batch ? g->batch : g->micros;
  for (int i = k * size; i < (k + 1) * size; i++)
    if (!did(c, weight_op(c, s, i), s, i)) return false;
  return true;
}

/* Do the rows hold everything that the action needs? */
static inline bool may_follow(const grid *g, const choice *c, gp_act op, int s, int copy, int i) {
  switch (op) {
  case GP_ACT_F:
    if (belongs(g, c, GP_ACT_RECV_F, s, copy, i)) return did(c, GP_ACT_RECV_F, s, i);
    return s == 0 || did(c, GP_ACT_F, s - 1, i);
  case GP_ACT_B:
  case GP_ACT_I:
    if (!did(c, GP_ACT_F, s, i) || (c->again[s][i] && !did(c, GP_ACT_R, s, i))) return false;
    if (belongs(g, c, GP_ACT_RECV_B, s, copy, i)) return did(c, GP_ACT_RECV_B, s, i);
    return s + 1 == g->stages || did(c, back_op(c, s + 1, i), s + 1, i);
  case GP_ACT_W: return did(c, GP_ACT_I, s, i);
  case GP_ACT_R:
  case GP_ACT_SEND_F: return did(c, GP_ACT_F, s, i);
  case GP_ACT_SEND_B: return did(c, back_op(c, s, i), s, i);
  case GP_ACT_RECV_F: return did(c, GP_ACT_SEND_F, s - 1, i);
  case GP_ACT_RECV_B: return did(c, GP_ACT_SEND_B, s + 1, i);
  case GP_ACT_REDUCE:
    return gradients(g, c, s, i) && (i == 0 || c->done[GP_ACT_REDUCE][s][copy][i - 1]);
  default:
    return gradients(g, c, s, i) && (i == 0 || c->done[GP_ACT_U][s][copy][i - 1]) &&
           (!c->reductions || c->done[GP_ACT_REDUCE][s][copy][i]);
  }
}

/* A forward pass takes any version there is; the other actions take that of their forward pass. */
static inline int version_for(const grid *g, choice *c, gp_act op, int s, int copy, int i) {
  int newest = 0;
  if (!g->batch || op > GP_ACT_R) return -1;
  while (newest < MICROS && c->done[GP_ACT_U][s][copy][newest]) newest++;
  if (op == GP_ACT_F) c->version[s][i] = newest - draw(newest + 1);
  return c->version[s][i];
}

static inline void append(grid *g, int device, gp_action action) {
  g->rows[device][g->count[device]++] = action;
}

/* Draws one action that may follow, all with equal chance, on `device` only if that is >= 0; false:
 * there is none. */
static inline bool draw_ready(const grid *g, const choice *c, int device, int found[4]) {
  int seen = 0;
  for (int op = 0; op < GP_ACT_COUNT; op++)
    for (int s = 0; s < g->stages; s++)
      for (int copy = 0; copy < 2; copy++)
        for (int i = 0; i < g->micros; i++) {
          if (!belongs(g, c, (gp_act)op, s, copy, i) || c->done[op][s][copy][i]) continue;
          if (device >= 0 && (device_of(g, s, copy) != device || op > GP_ACT_W)) continue;
          if (!may_follow(g, c, (gp_act)op, s, copy, i) || draw(++seen)) continue;
          memcpy(found, (int[]){op, s, copy, i}, 4 * sizeof *found);
        }
  return seen > 0;
}

static inline void place(grid *g, choice *c, const int x[4], bool joined) {
  bool numbered = x[0] != GP_ACT_REDUCE;
  append(g, device_of(g, x[1], x[2]),
         (gp_action){.op = (uint8_t)x[0],
                     .joined = joined,
                     .stage = x[1],
                     .micro = numbered ? x[3] : -1,
                     .version = version_for(g, c, (gp_act)x[0], x[1], x[2], x[3])});
  if (!joined) c->done[x[0]][x[1]][x[2]][x[3]] = true;
}

static inline void choose(grid *g, choice *c) {
  *c = (choice){.forward_only = draw(12) == 0, .recompute = draw(2), .pairs = draw(2)};
  c->updates = g->batch > 0 || draw(2);
  c->reductions = draw(3) == 0;
  c->idle = draw(3) == 0;
  for (int s = 0; s < g->stages; s++) {
    c->named[0][s] = draw(2), c->named[1][s] = draw(2);
    for (int i = 0; i < g->micros; i++) {
      c->copy[s][i] = g->copies == 2 ? draw(2) : 0;
      c->split[s][i] = draw(2);
      c->again[s][i] = c->recompute && draw(2);
    }
  }
}

/* Makes a grid; the copies of a stage are on two different devices. */
static inline grid random_grid(void) {
  static const int sizes[] = {0, 0, 1, 2};
  grid g = {.devices = 1 + draw(DEVICES), .stages = 1 + draw(STAGES), .micros = 1 + draw(MICROS)};
  choice c;
  int x[4], y[4];
  g.copies = g.devices > 1 ? 1 + draw(2) : 1;
  g.batch = sizes[draw(4)];
  if (g.batch && g.micros % g.batch) g.micros++;
  for (int s = 0; s < g.stages; s++) {
    int first = draw(g.devices);
    g.placement[s * g.copies] = first;
    if (g.copies == 2) g.placement[s * 2 + 1] = (first + 1 + draw(g.devices - 1)) % g.devices;
  }
  choose(&g, &c);
  while (draw_ready(&g, &c, -1, x)) {
    int device = device_of(&g, x[1], x[2]);
    if (c.idle && draw(4) == 0) append(&g, device, (gp_action){GP_ACT_IDLE, 0, -1, -1, -1});
    bool paired =
        c.pairs && x[0] <= GP_ACT_W && draw_ready(&g, &c, device, y) && memcmp(x, y, sizeof x) != 0;
    place(&g, &c, x, paired);
    if (!paired) continue;
    place(&g, &c, y, false);
    c.done[x[0]][x[1]][x[2]][x[3]] = true;
  }
  return g;
}

static inline gp_schedule_spec spec_of(const grid *g, const gp_rows *rows) {
  return (gp_schedule_spec){.rows = rows,
                            .stage_count = g->stages,
                            .copy_count = g->copies,
                            .placement = g->placement,
                            .batch = g->batch};
}

/* Builds and verifies the schedule of a grid. */
static inline gp_status make(const grid *g, gp_schedule **schedule, gp_schedule_fault *fault) {
  gp_rows *rows;
  GP_TRY(gp_rows_new(g->devices, &rows));
  gp_status status = GP_OK;
  for (int d = 0; d < g->devices; d++)
    for (int a = 0; !status && a < g->count[d]; a++) status = gp_rows_add(rows, d, &g->rows[d][a]);
  gp_schedule_spec spec = spec_of(g, rows);
  if (!status) status = gp_schedule_new(&spec, schedule, fault);
  gp_rows_free(rows);
  return status;
}

/* ---- mutants -------------------------------------------------------------------------------- */

static inline void drop(grid *g, int d, int a) {
  for (int k = a; k + 1 < g->count[d]; k++) g->rows[d][k] = g->rows[d][k + 1];
  g->count[d]--;
}

/* Swaps two actions, drops, doubles or moves one, or changes its stage, micro-batch, op, version or
 * pairing. */
static inline void mutate(grid *g) {
  int d = draw(g->devices), other = draw(g->devices);
  if (!g->count[d]) return;
  int a = draw(g->count[d]), b = draw(g->count[d]);
  gp_action *x = &g->rows[d][a], copy = *x;
  switch (draw(9)) {
  case 0: *x = g->rows[d][b], g->rows[d][b] = copy; break;
  case 1: drop(g, d, a); break;
  case 2: append(g, d, copy); break;
  case 3: x->stage = copy.op == GP_ACT_IDLE ? -1 : draw(g->stages); break;
  case 4: x->micro = copy.op == GP_ACT_IDLE ? -1 : draw(MICROS); break;
  case 5: x->op = copy.op == GP_ACT_IDLE ? copy.op : (uint8_t)draw(GP_ACT_REDUCE); break;
  case 6: x->version = draw(4) - 1; break;
  case 7: drop(g, d, a), append(g, other, copy); break;
  default: x->joined = !x->joined;
  }
}

#endif
