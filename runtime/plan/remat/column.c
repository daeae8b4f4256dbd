/* plan/remat/column.c - see column.h.
 *
 * The layers are taken from the last one on. With c bytes still to park before layer l, what is
 * parked already is share.parked - c, so a range that is run again has
 * share.active - share.parked + c bytes: the spare bytes are the same everywhere. */
#include "plan/remat/column.h"

#include "base/memory.h"

static const gp_front_point NOTHING = {0};

/* Take fewer points for a stage of many layers: a search solves some thirty columns. */
static int32_t fit_quanta(const gp_remat_column *c) {
  enum { WORK = 64 << 20, FEWEST = 64 };
  const int32_t layers = c->end - c->first;
  const int32_t quanta = WORK / (layers * layers);
  if (quanta > c->table->quanta) return c->table->quanta;
  return quanta > FEWEST ? quanta : FEWEST;
}

gp_status gp_remat_column_new(const gp_remat_stage *stage, gp_remat_column *column) {
  const gp_remat_table *t = stage->table;
  gp_remat_column c = {.table = t, .first = stage->first, .end = stage->end};
  const size_t values = (size_t)t->chain.count + 1, built = 2 * (size_t)(c.end - c.first);
  c.maker.room = fit_quanta(&c);
  const size_t slots = (size_t)c.maker.room + 1;
  gp_status status = gp_alloc_array(2 * values, sizeof *c.fronts, (void **)&c.fronts);
  if (!status) status = gp_alloc_array(slots, sizeof *c.points, (void **)&c.maker.slots);
  if (!status) status = gp_alloc_array(built * slots, sizeof *c.points, (void **)&c.points);
  if (status) return gp_remat_column_free(&c), status;
  c.fronts[c.end] = (gp_front){.points = &NOTHING, .count = 1};
  *column = c;
  return GP_OK;
}

void gp_remat_column_free(gp_remat_column *c) {
  gp_free(c->fronts);
  gp_free(c->maker.slots);
  gp_free(c->points);
  *c = (gp_remat_column){0};
}

static gp_remat_row row_of(const gp_remat_column *c, gp_remat_range rest) {
  return (gp_remat_row){.table = c->table,
                        .moves = gp_remat_moves_stage(&c->table->chain, rest),
                        .column = c->fronts,
                        .spare = c->spare};
}

/* Build the curve of the rest of the stage from a value on. */
static const gp_front *build(gp_remat_column *c, gp_remat_range rest, gp_remat_window window) {
  const size_t slots = (size_t)c->maker.room + 1;
  const gp_remat_row row = row_of(c, rest);
  const int64_t *fastest = c->table->fastest;
  gp_front_point *points = c->points + (2 * (size_t)(rest.first - c->first) + rest.owned) * slots;
  gp_front *front = &c->fronts[gp_remat_column_place(&c->table->chain, rest)];
  if (window.limit != GP_REMAT_IMPOSSIBLE) window.limit -= fastest[rest.first] - fastest[c->first];
  front->points = points;
  front->count = gp_remat_row_build(&row, &c->maker, window, points);
  return front;
}

int64_t gp_remat_column_solve(gp_remat_column *c, gp_remat_share share, int64_t limit) {
  const gp_remat_window window = {.low = SIZE_MAX, .high = share.parked, .limit = limit};
  c->spare = share.active - share.parked;
  for (int32_t at = c->end - 1; at > c->first; at--) {
    build(c, (gp_remat_range){at, c->end, false}, window);
    if (!c->table->chain.layers[at].needs_input)
      build(c, (gp_remat_range){at, c->end, true}, window);
  }
  return gp_front_time(build(c, (gp_remat_range){c->first, c->end, true}, window), share.parked);
}

gp_status gp_remat_column_trace(const gp_remat_column *c, gp_remat_share share,
                                gp_remat_list *list) {
  const gp_remat_row row = row_of(c, (gp_remat_range){c->first, c->end, true});
  return gp_remat_trace(&row, share.parked, list);
}
