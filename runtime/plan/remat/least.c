/* plan/remat/least.c - see least.h.
 *
 * The least bytes of a range follow from the moves as its times do, with maxima instead of sums. In
 * the forward pass of a stage, fewer parked bytes are always better, so one number per value is
 * enough once the active micro-batch's bytes are given. What is parked falls as those rise; the
 * least total is searched by halving ranges that may hold it. */
#include "plan/remat/least.h"

#include "base/memory.h"
#include "plan/remat/table.h"

static size_t most(size_t a, size_t b) { return a > b ? a : b; }

/* ---- ranges ---------------------------------------------------------------------------------- */

static size_t add(size_t a, size_t b) { return a == SIZE_MAX || b == SIZE_MAX ? SIZE_MAX : a + b; }

static size_t nested_bytes(const gp_remat_chain *chain, const size_t *least, gp_remat_range range) {
  gp_remat_moves moves = gp_remat_moves_again(chain, range);
  gp_remat_move move;
  size_t fewest = SIZE_MAX;
  while (gp_remat_next_move(&moves, &move)) {
    const gp_remat_range rest = gp_remat_rest(range, &move);
    const gp_remat_range dropped = gp_remat_dropped(range, &move);
    size_t bytes = move.bytes;
    if (rest.first < rest.end)
      bytes = most(bytes, add(move.parked, least[gp_remat_place(chain, rest)]));
    if (dropped.first < dropped.end) bytes = most(bytes, least[gp_remat_place(chain, dropped)]);
    if (bytes < fewest) fewest = bytes;
  }
  return fewest;
}

/* All layers of a range that owns its input are kept and then run back. The forward of the last and
 * the backward of any layer may be the worst moment. */
static size_t once_bytes(const gp_remat_chain *chain, gp_remat_range range) {
  const size_t gradient = gp_remat_gradient(chain, range.end);
  size_t input = gp_remat_value(chain, range.first), kept = 0, bytes = 0;
  for (int32_t l = range.first; l < range.end; l++) {
    const gp_remat_layer *layer = &chain->layers[l];
    const gp_remat_option *all = &layer->options[0];
    kept += all->kept;
    bytes = most(bytes, input + gradient + kept + all->forward_extra);
    if (l == range.first && !layer->needs_input) input = 0;
    const size_t gradients = layer->gradient + gp_remat_gradient(chain, l);
    bytes = most(bytes, input + gradients + kept + all->backward_extra);
  }
  return bytes;
}

static void fill(const gp_remat_chain *chain, bool once, size_t *least) {
  for (int32_t n = 1; n <= chain->count; n++)
    for (int32_t first = 0; first + n <= chain->count; first++)
      for (int32_t owned = once; owned < 2; owned++) {
        const gp_remat_range range = {first, first + n, owned};
        least[gp_remat_place(chain, range)] =
            once ? once_bytes(chain, range) : nested_bytes(chain, least, range);
      }
}

gp_status gp_remat_least_ranges(const gp_remat_chain *chain, bool once, size_t **least) {
  const size_t values = (size_t)chain->count + 1;
  size_t *found;
  GP_TRY(gp_alloc_array(2 * values * values, sizeof *found, (void **)&found));
  for (size_t i = 0; i < 2 * values * values; i++) found[i] = SIZE_MAX;
  fill(chain, once, found);
  *least = found;
  return GP_OK;
}

/* ---- the forward pass ------------------------------------------------------------------------ */

gp_status gp_remat_path_new(gp_remat_path *p) {
  const size_t places = 2 * ((size_t)p->chain->count + 1);
  p->parked = NULL;
  p->from = NULL;
  GP_TRY(gp_alloc_array(places, sizeof *p->parked, (void **)&p->parked));
  const gp_status status = gp_alloc_array(places, sizeof *p->from, (void **)&p->from);
  if (status) gp_remat_path_free(p);
  return status;
}

void gp_remat_path_free(gp_remat_path *p) {
  gp_free(p->parked);
  gp_free(p->from);
  p->parked = NULL;
  p->from = NULL;
}

size_t gp_remat_path_place(const gp_remat_path *p, int32_t value, bool owned) {
  return (size_t)owned * ((size_t)p->chain->count + 1) + (size_t)value;
}

static void extend(gp_remat_path *p, gp_remat_range range, size_t active) {
  const size_t before = p->parked[gp_remat_path_place(p, range.first, range.owned)];
  gp_remat_moves moves = gp_remat_moves_stage(p->chain, range);
  gp_remat_move move;
  if (before == SIZE_MAX) return;
  while (gp_remat_next_move(&moves, &move)) {
    const gp_remat_range rest = gp_remat_rest(range, &move);
    const gp_remat_range dropped = gp_remat_dropped(range, &move);
    const size_t at = gp_remat_path_place(p, rest.first, rest.owned);
    size_t bytes = move.bytes;
    if (p->once && move.option != GP_REMAT_NO_OPTION) continue;
    if (dropped.first < dropped.end)
      bytes = most(bytes, p->ranges[gp_remat_place(p->chain, dropped)]);
    if (add(before, bytes) > active || before + move.parked >= p->parked[at]) continue;
    p->parked[at] = before + move.parked;
    p->from[at] = range.first;
  }
}

size_t gp_remat_path_parked(gp_remat_path *p, size_t active) {
  for (size_t i = 0; i < 2 * ((size_t)p->chain->count + 1); i++) p->parked[i] = SIZE_MAX;
  p->parked[gp_remat_path_place(p, p->first, true)] = 0;
  for (int32_t v = p->first; v < p->end; v++)
    for (int32_t owned = 0; owned < 2; owned++)
      extend(p, (gp_remat_range){v, p->end, owned}, active);
  return p->parked[gp_remat_path_place(p, p->end, false)];
}

/* ---- the least total ------------------------------------------------------------------------- */

/* Between two bounds of the active bytes: what is parked at each. */
typedef struct interval {
  gp_remat_share low, high;
} interval;

/* A search of a wild chain ends after so many steps with the best that it has found. */
enum { DEPTH = 64, STEPS = 4096 };

static size_t total(gp_remat_share share, int32_t in_flight) {
  return (size_t)(in_flight - 1) * share.parked + share.active;
}

static gp_remat_share share_at(gp_remat_path *p, size_t active) {
  return (gp_remat_share){.parked = gp_remat_path_parked(p, active), .active = active};
}

/* The least active bytes with which anything fits. */
static gp_remat_share least_active(gp_remat_path *p, size_t enough) {
  size_t low = 0, high = enough;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (gp_remat_path_parked(p, middle) == SIZE_MAX)
      low = middle + 1;
    else
      high = middle;
  }
  return share_at(p, low);
}

gp_remat_share gp_remat_least_share(gp_remat_path *p, int32_t in_flight) {
  interval todo[DEPTH + 2];
  int32_t count = 1;
  const size_t enough = SIZE_MAX / 2;
  todo[0] = (interval){.low = least_active(p, enough), .high = share_at(p, enough)};
  gp_remat_share best = todo[0].low;
  for (int32_t step = 0; count > 0 && step < STEPS; step++) {
    const interval i = todo[--count];
    if (i.low.parked == i.high.parked || i.high.active - i.low.active < 2) continue;
    /* Nothing between parks less than its high end, or has less alive than its low end. */
    const gp_remat_share bound = {.parked = i.high.parked, .active = i.low.active + 1};
    if (total(bound, in_flight) >= total(best, in_flight)) continue;
    const gp_remat_share middle = share_at(p, i.low.active + (i.high.active - i.low.active) / 2);
    if (total(middle, in_flight) < total(best, in_flight)) best = middle;
    todo[count++] = (interval){.low = middle, .high = i.high};
    todo[count++] = (interval){.low = i.low, .high = middle};
  }
  return best;
}
