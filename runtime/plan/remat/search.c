/* plan/remat/search.c - searches how much each micro-batch may park.
 *
 * With k in flight, the k - 1 that wait pay for what is parked, so a higher cap on it leaves less
 * to the active one. Caps are sampled, ever closer around the best of them. The time that a cap and
 * the bytes of the active one allow falls with both, so between two caps the upper one together
 * with the bytes that the lower one leaves bounds the time from below. Solves that are left go to
 * intervals of caps, the most promising first, which are halved unless their bound is hardly below
 * the best list; for few layers that proves the list to be the best. */
#include "plan/remat/search.h"

#include "plan/remat/column.h"

/* Solves of a column that one stage may take; a stage of many layers gets fewer, so that it takes
 * seconds at most. A list that is better by less than 1/TOLERANCE of the time is not worth one. */
enum { SAMPLES = 8, HALVINGS = 8, SOLVES = 36, FEWEST_SOLVES = 16, TOLERANCE = 4096 };
static const int64_t WORK = 200 << 20; /* layers^2 x points of all solves */

typedef struct interval {
  size_t low, high; /* caps on what is parked */
  int64_t bound;    /* no list takes less time */
} interval;

typedef struct search {
  gp_remat_limits limits;
  gp_remat_chain part; /* the stage's layers */
  gp_remat_column column;
  gp_remat_list best; /* no steps: none yet */
  interval todo[SOLVES + 2];
  int32_t todo_count;
  int32_t solves; /* left */
} search;

static int32_t count_solves(const gp_remat_column *column) {
  const int64_t layers = column->end - column->first;
  const int64_t solves = WORK / (layers * layers * column->maker.room);
  if (solves > SOLVES) return SOLVES;
  return solves > FEWEST_SOLVES ? (int32_t)solves : FEWEST_SOLVES;
}

/* What a list takes beside what goes to the host, which the caller has set aside. */
static size_t peak_of(const gp_remat_cost *cost) { return cost->peak - 2 * cost->away; }

static size_t left_to_active(const search *s, size_t parked) {
  return s->limits.memory - (size_t)(s->limits.in_flight - 1) * parked;
}

/* What a list could not take less time than, to be worth looking for. */
static int64_t worthwhile(const search *s) {
  return s->best.count ? s->best.time - s->best.time / TOLERANCE : GP_REMAT_IMPOSSIBLE;
}

/* Solve for a share and take the list if it fits. *time: the least that the share allows,
 * GP_REMAT_IMPOSSIBLE if that is hardly better than the best; *cost: of its list, if there is
 * one. */
static gp_status try_share(search *s, gp_remat_share share, int64_t *time, gp_remat_cost *cost) {
  gp_remat_list list = {0};
  s->solves--;
  *time = gp_remat_column_solve(&s->column, share, worthwhile(s));
  if (*time == GP_REMAT_IMPOSSIBLE) return GP_OK;
  gp_status status = gp_remat_column_trace(&s->column, share, &list);
  if (!status) status = gp_remat_simulate(&s->part, &list, s->limits.in_flight, cost);
  if (status || peak_of(cost) > s->limits.memory) return gp_remat_list_free(&list), status;
  gp_remat_list_free(&s->best);
  s->best = list;
  s->best.time = cost->time - cost->exposed;
  s->best.parked = cost->parked;
  s->best.away = cost->away;
  s->best.peak = cost->peak;
  return GP_OK;
}

/* Try a cap with what it leaves: such a list always fits. */
static gp_status try_cap(search *s, size_t cap) {
  int64_t time;
  gp_remat_cost cost;
  return try_share(s, (gp_remat_share){.parked = cap, .active = left_to_active(s, cap)}, &time,
                   &cost);
}

/* Try a cap; *best becomes it if its list is faster than all before. */
static gp_status try_better(search *s, size_t cap, size_t *best) {
  const int64_t before = worthwhile(s);
  GP_TRY(try_cap(s, cap));
  if (worthwhile(s) < before) *best = cap;
  return GP_OK;
}

static interval take_best(search *s) {
  int32_t best = 0;
  for (int32_t i = 1; i < s->todo_count; i++)
    if (s->todo[i].bound < s->todo[best].bound) best = i;
  const interval taken = s->todo[best];
  s->todo[best] = s->todo[--s->todo_count];
  return taken;
}

static void add_interval(search *s, size_t low, size_t high, int64_t bound) {
  if (low <= high) s->todo[s->todo_count++] = (interval){.low = low, .high = high, .bound = bound};
}

/* Look where the best cap lies: at evenly spaced ones, then ever closer around the best of them. */
static gp_status sample_caps(search *s, size_t low, size_t high) {
  if (low > high) return GP_OK;
  size_t gap = (high - low) / SAMPLES, best = low;
  for (int32_t i = 0; i <= SAMPLES; i++) GP_TRY(try_better(s, high - (size_t)i * gap, &best));
  for (int32_t i = 0; i < HALVINGS && gap > 1 && s->solves > 1; i++) {
    gap = (gap + 1) / 2;
    const size_t middle = best;
    if (middle + gap <= high) GP_TRY(try_better(s, middle + gap, &best));
    if (middle >= low + gap) GP_TRY(try_better(s, middle - gap, &best));
  }
  return GP_OK;
}

static gp_status search_caps(search *s, size_t low, size_t high) {
  add_interval(s, low, high, 0);
  while (s->todo_count > 0 && s->solves > 0) {
    const interval i = take_best(s);
    if (i.bound >= worthwhile(s)) break;
    int64_t bound;
    gp_remat_cost cost;
    const gp_remat_share share = {.parked = i.high, .active = left_to_active(s, i.low)};
    GP_TRY(try_share(s, share, &bound, &cost));
    if (bound == GP_REMAT_IMPOSSIBLE || peak_of(&cost) <= s->limits.memory) continue;
    if (i.low == i.high) continue;
    const size_t cap = i.low + (i.high - i.low) / 2;
    GP_TRY(try_cap(s, cap));
    add_interval(s, i.low, cap, bound);
    add_interval(s, cap + 1, i.high, bound);
  }
  return GP_OK;
}

static gp_status search_path(search *s, gp_remat_path *path) {
  const int32_t waiting = s->limits.in_flight - 1;
  const gp_remat_share least = gp_remat_least_share(path, s->limits.in_flight);
  const size_t bytes = (size_t)waiting * least.parked + least.active;
  if (bytes > s->limits.memory) return gp_remat_refuse(&s->limits, bytes);
  if (waiting == 0) return try_cap(s, s->limits.memory);
  GP_TRY(try_cap(s, least.parked));
  const size_t low = gp_remat_path_parked(path, s->limits.memory);
  const size_t high = s->limits.memory / (size_t)s->limits.in_flight;
  GP_TRY(sample_caps(s, low, high));
  return search_caps(s, low, high);
}

gp_status gp_remat_search(const gp_remat_stage *stage, const gp_remat_limits *limits,
                          gp_remat_list *list) {
  const gp_remat_table *t = stage->table;
  search s = {.limits = *limits, .part = gp_remat_part(&t->chain, stage->first, stage->end)};
  gp_remat_path path = {
      .chain = &t->chain, .ranges = t->least, .first = stage->first, .end = stage->end};
  GP_TRY(gp_remat_path_new(&path));
  gp_status status = gp_remat_column_new(stage, &s.column);
  if (!status) {
    s.solves = count_solves(&s.column);
    status = search_path(&s, &path);
  }
  gp_remat_column_free(&s.column);
  gp_remat_path_free(&path);
  if (status) return gp_remat_list_free(&s.best), status;
  s.best.time += gp_remat_exposed(&s.part, s.best.away);
  *list = s.best;
  return GP_OK;
}
