/* plan/remat/table.c - computes the curves of all ranges of layers, short ones first. */
#include "plan/remat/table.h"

#include "base/memory.h"
#include "plan/remat/least.h"

enum { DEFAULT_QUANTA = 500, FEWEST_QUANTA = 24, MOST_QUANTA = 1 << 16 };
/* Points that all curves together may hold (16 bytes each), and that may be looked at: about a
 * second. */
static const int64_t MOST_POINTS = 6 << 20, MOST_WORK = 400 << 20;

static const size_t MOST_MEMORY = SIZE_MAX / 4; /* more than any list needs */

static const gp_front_point NOTHING = {0}; /* to run no layer takes no bytes and no time */

/* A range that owns its input has a curve of its own if the input may go early. */
static int32_t count_curves(const gp_remat_chain *chain, int32_t first) {
  return chain->layers[first].needs_input ? 1 : 2;
}

/* Take fewer points when there are many different ranges. */
static int32_t fit_quanta(const gp_remat_chain *chain, const int32_t *same, int32_t wanted) {
  int64_t ranges = 0, work = 0, quanta = wanted;
  for (int32_t first = 0; first < chain->count; first++)
    for (int32_t n = 1; first + n <= chain->count; n++) {
      if (same[(size_t)first * (size_t)chain->count + (size_t)n - 1] != first) continue;
      const int32_t curves = count_curves(chain, first);
      ranges += curves;
      work += curves * 2 * n;
    }
  if (quanta > MOST_POINTS / ranges) quanta = MOST_POINTS / ranges;
  if (quanta > MOST_WORK / work) quanta = MOST_WORK / work;
  if (quanta < FEWEST_QUANTA) quanta = FEWEST_QUANTA;
  return (int32_t)(quanta < wanted ? quanta : wanted);
}

static gp_status build_range(gp_remat_table *t, gp_remat_range range) {
  const gp_remat_row row = gp_remat_row_again(t, range);
  const gp_remat_window window = {
      .low = t->least[gp_remat_place(&t->chain, range)],
      .high = t->memory,
      .limit = GP_REMAT_IMPOSSIBLE,
  };
  gp_front *front = &t->fronts[gp_remat_place(&t->chain, range)];
  const int32_t count = gp_remat_row_build(&row, &t->maker, window, t->points);
  if (!count) return GP_OK;
  gp_front_point *points;
  GP_TRY(gp_grow_array(t->owned_count, &t->owned_room, sizeof *t->owned, (void **)&t->owned));
  GP_TRY(gp_alloc_array((size_t)count, sizeof *points, (void **)&points));
  t->owned[t->owned_count++] = points;
  for (int32_t p = 0; p < count; p++) points[p] = t->points[p];
  *front = (gp_front){.points = points, .count = count};
  return GP_OK;
}

/* Build the curves of a range, or take those of one that is like it. */
static gp_status add_range(gp_remat_table *t, gp_remat_range range, int32_t like) {
  const gp_remat_range other = {like, like + range.end - range.first, range.owned};
  if (like == range.first) return build_range(t, range);
  t->fronts[gp_remat_place(&t->chain, range)] = *gp_remat_front(t, other);
  return GP_OK;
}

static gp_status build(gp_remat_table *t, const int32_t *same) {
  const int32_t layers = t->chain.count;
  for (int32_t i = 0; i <= layers; i++)
    t->fronts[gp_remat_place(&t->chain, (gp_remat_range){i, i, false})] =
        (gp_front){.points = &NOTHING, .count = 1};
  for (int32_t n = 1; n <= layers; n++)
    for (int32_t first = 0; first + n <= layers; first++) {
      const int32_t like = same[(size_t)first * (size_t)layers + (size_t)n - 1];
      for (int32_t owned = 0; owned < count_curves(&t->chain, first); owned++)
        GP_TRY(add_range(t, (gp_remat_range){first, first + n, owned}, like));
    }
  return GP_OK;
}

static gp_status fill(gp_remat_table *t, int32_t wanted, int32_t *same) {
  const size_t values = (size_t)t->chain.count + 1;
  t->quanta = fit_quanta(&t->chain, same, wanted ? wanted : DEFAULT_QUANTA);
  t->maker.room = t->quanta;
  const size_t slots = (size_t)t->quanta + 1;
  GP_TRY(gp_alloc_array(slots, sizeof *t->points, (void **)&t->points));
  GP_TRY(gp_alloc_array(slots, sizeof *t->points, (void **)&t->maker.slots));
  GP_TRY(gp_alloc_array(values, sizeof *t->fastest, (void **)&t->fastest));
  for (int32_t l = 0; l < t->chain.count; l++)
    t->fastest[l + 1] = t->fastest[l] + gp_remat_layer_time(&t->chain.layers[l]);
  GP_TRY(gp_alloc_array(2 * values * values, sizeof *t->fronts, (void **)&t->fronts));
  return build(t, same);
}

gp_status gp_remat_table_new(const gp_remat_table_spec *spec, gp_remat_table **table) {
  GP_TRY(gp_remat_chain_check(spec->chain));
  if (spec->quanta < 0 || spec->quanta > MOST_QUANTA)
    return gp_fail(GP_EINVAL, "remat: %d quanta, expected 0 to %d", (int)spec->quanta,
                   (int)MOST_QUANTA);
  gp_remat_table *t;
  int32_t *same = NULL;
  GP_TRY(gp_alloc(sizeof *t, (void **)&t));
  t->chain = *spec->chain;
  t->memory = spec->memory < MOST_MEMORY ? spec->memory : MOST_MEMORY;
  gp_status status = gp_remat_find_repeats(&t->chain, &same);
  if (!status) status = gp_remat_least_ranges(&t->chain, false, &t->least);
  if (!status) status = fill(t, spec->quanta, same);
  gp_free(same);
  if (status) return gp_remat_table_free(t), status;
  *table = t;
  return GP_OK;
}

void gp_remat_table_free(gp_remat_table *t) {
  if (!t) return;
  for (size_t i = 0; i < t->owned_count; i++) gp_free(t->owned[i]);
  gp_free(t->owned);
  gp_free(t->fronts);
  gp_free(t->least);
  gp_free(t->fastest);
  gp_free(t->maker.slots);
  gp_free(t->points);
  gp_free(t);
}

int32_t gp_remat_table_quanta(const gp_remat_table *table) { return table->quanta; }
