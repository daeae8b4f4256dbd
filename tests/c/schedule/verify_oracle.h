/* tests/c/schedule/verify_oracle.h - a slow and simple judge of schedules: it runs them and looks
 * at what came out. */
#ifndef GP_TEST_VERIFY_ORACLE_H
#define GP_TEST_VERIFY_ORACLE_H

#include "verify_random.h"

/* How often each action was done, and in which of the stage's copies. */
typedef struct tally {
  int times[GP_ACT_COUNT][STAGES][MICROS], device[STAGES][MICROS];
  int updates[STAGES][DEVICES], reductions[STAGES][DEVICES];
  bool forward_only, any_update, any_reduction;
  int batches;
} tally;

static inline int highest_micro(const grid *g) {
  int micros = 0;
  for (int d = 0; d < g->devices; d++)
    for (int a = 0; a < g->count[d]; a++) {
      const gp_action *x = &g->rows[d][a];
      if (x->op != GP_ACT_U && x->op != GP_ACT_IDLE && x->micro >= micros) micros = x->micro + 1;
    }
  return micros;
}

static inline bool holds(const grid *g, int stage, int d) {
  return device_of(g, stage, 0) == d || device_of(g, stage, 1) == d;
}

/* Checks one action: it must be on a device of its stage, with the others of its (stage,
 * micro-batch). */
static inline bool count_action(const grid *g, tally *t, int d, int a) {
  const gp_action *x = &g->rows[d][a];
  bool last = a + 1 == g->count[d];
  if (x->joined && (last || x->op > GP_ACT_W || x[1].op > GP_ACT_W)) return false;
  if (x->op == GP_ACT_IDLE) return true;
  if ((x->op >= GP_ACT_C && x->op <= GP_ACT_DECIDE) || !holds(g, x->stage, d)) return false;
  if (x->op != GP_ACT_REDUCE && x->micro < 0) return false;
  if (!g->batch && x->version > 0 && (x->op != GP_ACT_U || x->version != 1)) return false;
  if (x->op <= GP_ACT_W && x->op != GP_ACT_F) t->forward_only = false;
  t->any_update |= x->op == GP_ACT_U;
  t->any_reduction |= x->op == GP_ACT_REDUCE;
  if (x->op == GP_ACT_REDUCE || x->op == GP_ACT_U) return true;
  int *where = &t->device[x->stage][x->micro];
  if (*where && *where != d + 1) return false;
  *where = d + 1;
  return ++t->times[x->op][x->stage][x->micro] == 1;
}

static inline bool pairs_up(const grid *g, const tally *t, gp_act send, gp_act receive, int s,
                            int to) {
  int any = 0;
  for (int i = 0; i < g->micros; i++) any += t->times[send][s][i] + t->times[receive][to][i];
  for (int i = 0; any && i < g->micros; i++) {
    int wanted = t->device[s][i] != t->device[to][i];
    if (t->times[send][s][i] != wanted || t->times[receive][to][i] != wanted) return false;
  }
  return true;
}

static inline bool complete_cell(const tally *t, int s, int i) {
  int b = t->times[GP_ACT_B][s][i], in = t->times[GP_ACT_I][s][i], w = t->times[GP_ACT_W][s][i];
  if (t->times[GP_ACT_F][s][i] != 1 || (t->forward_only && t->times[GP_ACT_R][s][i])) return false;
  return t->forward_only || (b ? !in && !w : in && w);
}

static inline bool complete_stage(const grid *g, const tally *t, int s) {
  bool last = s + 1 == g->stages;
  for (int i = 0; i < g->micros; i++) {
    if (!complete_cell(t, s, i)) return false;
    if (s == 0 && (t->times[GP_ACT_RECV_F][s][i] || t->times[GP_ACT_SEND_B][s][i])) return false;
    if (last && (t->times[GP_ACT_SEND_F][s][i] || t->times[GP_ACT_RECV_B][s][i])) return false;
    if (t->forward_only && (t->times[GP_ACT_SEND_B][s][i] || t->times[GP_ACT_RECV_B][s][i]))
      return false;
  }
  return last || (pairs_up(g, t, GP_ACT_SEND_F, GP_ACT_RECV_F, s, s + 1) &&
                  pairs_up(g, t, GP_ACT_SEND_B, GP_ACT_RECV_B, s + 1, s));
}

/* ---- running -------------------------------------------------------------------------------- */

typedef struct runner {
  const grid *g;
  const tally *t;
  bool done[GP_ACT_COUNT][STAGES][MICROS];
  int updates[STAGES][DEVICES], reductions[STAGES][DEVICES], version[STAGES][MICROS];
  bool wrong;
} runner;

static inline bool made_gradients(const runner *r, int s, int k) {
  int size = r->g->batch ? r->g->batch : r->g->micros;
  for (int i = k * size; i < (k + 1) * size && i < r->g->micros; i++)
    if (!r->done[GP_ACT_B][s][i] && !r->done[GP_ACT_W][s][i]) return false;
  return true;
}

static inline bool came(const runner *r, gp_act receive, const gp_action *x, int from) {
  int s = x->stage, i = x->micro;
  if (r->t->times[receive][s][i]) return r->done[receive][s][i];
  if (from < 0 || from == r->g->stages) return true;
  if (x->op == GP_ACT_F) return r->done[GP_ACT_F][from][i];
  return r->done[GP_ACT_B][from][i] || r->done[GP_ACT_I][from][i];
}

static inline bool can_run(const runner *r, int d, const gp_action *x) {
  int s = x->stage, i = x->micro;
  switch ((gp_act)x->op) {
  case GP_ACT_F: return came(r, GP_ACT_RECV_F, x, s - 1);
  case GP_ACT_B:
  case GP_ACT_I:
    return r->done[GP_ACT_F][s][i] && came(r, GP_ACT_RECV_B, x, s + 1) &&
           r->done[GP_ACT_R][s][i] == r->t->times[GP_ACT_R][s][i];
  case GP_ACT_W: return r->done[GP_ACT_I][s][i];
  case GP_ACT_R:
  case GP_ACT_SEND_F: return r->done[GP_ACT_F][s][i];
  case GP_ACT_SEND_B: return r->done[GP_ACT_B][s][i] || r->done[GP_ACT_I][s][i];
  case GP_ACT_RECV_F: return r->done[GP_ACT_SEND_F][s - 1][i];
  case GP_ACT_RECV_B: return r->done[GP_ACT_SEND_B][s + 1][i];
  case GP_ACT_U: return made_gradients(r, s, i);
  case GP_ACT_REDUCE: return made_gradients(r, s, r->reductions[s][d]);
  default: return true;
  }
}

/* Runs one action. Updates come in turn, each after its reduction; a pass reads a version that
 * exists, the same one in both directions. */
static inline void run_action(runner *r, int d, const gp_action *x) {
  int s = x->stage, i = x->micro;
  if (x->op == GP_ACT_IDLE) return;
  if (x->op == GP_ACT_REDUCE) {
    r->wrong |= r->reductions[s][d]++ >= r->t->batches;
    r->wrong |= r->updates[s][d] >= r->reductions[s][d];
    return;
  }
  if (x->op == GP_ACT_U) {
    r->wrong |= i != r->updates[s][d]++ || (x->version >= 0 && x->version != i + 1);
    return;
  }
  r->done[x->op][s][i] = true;
  if (!r->g->batch || x->op > GP_ACT_R || (x->op == GP_ACT_R && x->version < 0)) return;
  r->wrong |= x->version < 0 || x->version > r->updates[s][d];
  if (x->op == GP_ACT_F) r->version[s][i] = x->version;
  r->wrong |= r->version[s][i] != x->version;
}

static inline bool run_head(runner *r, int d, int *next) {
  const gp_action *row = r->g->rows[d];
  int begin = *next, end = begin;
  if (begin == r->g->count[d]) return false;
  while (row[end].joined) end++;
  for (int a = begin; a <= end; a++)
    if (!can_run(r, d, &row[a])) return false;
  for (int a = begin; a <= end; a++) run_action(r, d, &row[a]);
  *next = end + 1;
  return true;
}

/* Either every copy has the updates of the whole stream, or none has any; copies reduce equally
 * often. */
static inline bool updated(const runner *r) {
  const grid *g = r->g;
  for (int s = 0; s < g->stages; s++)
    for (int copy = 0; copy < g->copies; copy++) {
      int d = device_of(g, s, copy);
      if (r->t->any_update && r->updates[s][d] != r->t->batches) return false;
      if (r->reductions[s][d] != r->reductions[s][device_of(g, s, 0)]) return false;
    }
  return true;
}

static inline bool works(const grid *g, tally *t) {
  runner r = {.g = g, .t = t};
  int next[DEVICES] = {0};
  if (g->batch && (g->micros % g->batch || (!t->any_update && !t->forward_only))) return false;
  if (t->forward_only && (t->any_update || t->any_reduction)) return false;
  for (bool moved = true; moved;) {
    moved = false;
    for (int d = 0; d < g->devices; d++) moved |= run_head(&r, d, &next[d]);
  }
  for (int d = 0; d < g->devices; d++)
    if (next[d] < g->count[d]) return false;
  return !r.wrong && updated(&r);
}

/* Is it a schedule? */
static inline bool is_good(const grid *given) {
  grid g = *given;
  tally t = {.forward_only = true};
  g.micros = highest_micro(given);
  t.batches = g.batch ? (g.micros + g.batch - 1) / g.batch : 1;
  if (!g.micros) return false;
  for (int d = 0; d < g.devices; d++)
    for (int a = 0; a < g.count[d]; a++)
      if (!count_action(&g, &t, d, a)) return false;
  for (int s = 0; s < g.stages; s++)
    if (!complete_stage(&g, &t, s)) return false;
  return works(&g, &t);
}

#endif
