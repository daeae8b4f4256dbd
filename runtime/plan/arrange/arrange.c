/* plan/arrange/arrange.c - tries the heuristics and keeps the best arrangement.
 *
 * Largest first into the lowest gap comes first: it often reaches the bound, and then nothing else
 * is tried. The others follow in the order of what they gain on stages of transformers.
 */
#include "plan/arrange/arrange.h"

#include "base/memory.h"
#include "plan/arrange/heuristics.h"

const gp_arrange_effort gp_arrange_quick = {.looks = 1 << 25, .more = 1 << 14};
const gp_arrange_effort gp_arrange_thorough = {.looks = 1 << 28, .more = 1 << 24};

typedef struct greedy {
  gp_place_order by;
  gp_fit fit;
} greedy;

typedef struct search {
  gp_arrangement items;
  gp_placer placer;
  gp_improve improve;
  int32_t *order;
  size_t *best, *kept; /* offsets */
  size_t peak, bound;  /* peak: of the best */
} search;

static bool is_over(const search *s) { return s->peak <= s->bound || s->placer.looks < 0; }

static void keep_if_better(search *s) {
  const size_t peak = gp_arrangement_peak(&s->items);
  if (peak >= s->peak) return;
  s->peak = peak;
  for (int32_t i = 0; i < s->items.count; i++) s->best[i] = s->items.at[i].offset;
}

/* Keep what a heuristic has placed, and justify it. */
static gp_status keep_justified(search *s) {
  bool done;
  keep_if_better(s);
  if (is_over(s)) return GP_OK;
  GP_TRY(gp_arrange_justify(&s->improve, &done));
  if (done) keep_if_better(s);
  return GP_OK;
}

static gp_status try_greedy(search *s, greedy how, bool *done) {
  GP_TRY(gp_arrangement_sort(&s->items, how.by, s->order));
  *done = gp_placer_fill(&s->placer, s->order, how.fit);
  return GP_OK;
}

static gp_status try_online(search *s, int64_t looks) {
  bool done;
  if (s->items.fixed) return GP_OK;
  GP_TRY(gp_place_online(&s->items, looks, &done));
  return done ? keep_justified(s) : GP_OK;
}

static gp_status try_others(search *s) {
  static const greedy others[] = {{GP_BY_TIME, GP_FIT_LOWEST},
                                  {GP_BY_LIFETIME, GP_FIT_LOWEST},
                                  {GP_BY_AREA, GP_FIT_LOWEST},
                                  {GP_BY_SIZE, GP_FIT_SMALLEST}};
  bool done;
  for (size_t k = 0; k < sizeof others / sizeof *others && !is_over(s); k++) {
    GP_TRY(try_greedy(s, others[k], &done));
    if (done) GP_TRY(keep_justified(s));
  }
  return GP_OK;
}

/* What stays first, then what is over soon. Which share of the longest life is long differs. */
static gp_status try_stays(search *s) {
  static const int shares[] = {4, 2, 64};
  for (size_t k = 0; k < sizeof shares / sizeof *shares && !is_over(s); k++) {
    GP_TRY(gp_arrangement_sort_stays(&s->items, shares[k], s->order));
    if (gp_placer_fill(&s->placer, s->order, GP_FIT_LOWEST)) GP_TRY(keep_justified(s));
  }
  return GP_OK;
}

static gp_status try_all(search *s, const gp_arrange_effort *effort) {
  bool done;
  s->placer.looks = effort->looks;
  GP_TRY(try_greedy(s, (greedy){GP_BY_SIZE, GP_FIT_LOWEST}, &done));
  s->placer.looks = done ? effort->more : -1;
  if (done) GP_TRY(keep_justified(s));
  if (s->peak > s->bound) GP_TRY(try_online(s, effort->looks));
  if (s->peak > s->bound) {
    GP_TRY(gp_place_on_shelves(&s->items));
    GP_TRY(keep_justified(s));
  }
  GP_TRY(try_stays(s));
  GP_TRY(try_others(s));
  for (int32_t i = 0; i < s->items.count; i++) s->items.at[i].offset = s->best[i];
  s->improve.peak = s->peak;
  if (!is_over(s)) GP_TRY(gp_arrange_climb(&s->improve));
  keep_if_better(s);
  return GP_OK;
}

/* Only fixed buffers keep their bytes, so that an error has the caller's numbers. */
static gp_status check_fixed(const gp_lifespan *buffers, int32_t count) {
  gp_lifespan *fixed;
  GP_TRY(gp_alloc_array((size_t)count, sizeof *fixed, (void **)&fixed));
  for (int32_t i = 0; i < count; i++) {
    fixed[i] = buffers[i];
    if (!fixed[i].fixed) fixed[i].bytes = 0;
  }
  gp_status status = gp_arrange_check(fixed, count, NULL);
  gp_free(fixed);
  return status ? gp_fail_prefix(status, "fixed") : GP_OK;
}

static gp_status start(search *s) {
  const size_t room = (size_t)s->items.count + 1;
  GP_TRY(gp_alloc_array(room, sizeof *s->order, (void **)&s->order));
  GP_TRY(gp_alloc_array(2 * room, sizeof *s->best, (void **)&s->best));
  GP_TRY(gp_placer_new(&s->items, &s->placer));
  s->kept = s->best + room;
  s->bound = gp_arrangement_bound(&s->items);
  s->peak = SIZE_MAX;
  s->improve =
      (gp_improve){.placer = &s->placer, .order = s->order, .kept = s->kept, .bound = s->bound};
  return GP_OK;
}

gp_status gp_arrange(gp_lifespan *buffers, int32_t count, const gp_arrange_effort *effort,
                     size_t *peak) {
  search s = {.peak = 0};
  GP_TRY(gp_arrangement_new(buffers, count, &s.items));
  gp_status status = s.items.fixed > 1 ? check_fixed(buffers, count) : GP_OK;
  if (!status) status = start(&s);
  if (!status) status = try_all(&s, effort);
  if (!status) {
    for (int32_t i = 0; i < count; i++)
      if (!buffers[i].bytes && !buffers[i].fixed) buffers[i].offset = 0;
    for (int32_t i = 0; i < s.items.count; i++) buffers[s.items.from[i]].offset = s.best[i];
    *peak = s.peak;
  }
  gp_placer_free(&s.placer);
  gp_arrangement_free(&s.items);
  gp_free(s.order);
  gp_free(s.best);
  return status;
}
