/* plan/arrange/climb.c - improves an arrangement by moving what makes the peak.
 *
 * Some of the items that end at the peak are put earlier in the order of offsets, all is placed
 * anew in that order and justified, and the result stays unless its peak is larger. Equal peaks
 * stay, too, so that the search walks on where several changes are needed. Source of the idea:
 * hill_climb of TVM's unified static memory planner.
 */
#include "plan/arrange/heuristics.h"

/* Draw a number below n. The generator is fixed: the same buffers get the same offsets. Source:
 * Knuth, MMIX; the upper bits of a linear congruence are the better ones. */
static uint64_t draw(uint64_t *seed, uint64_t n) {
  *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (*seed >> 33) % n;
}

enum { PARTS = 64 }; /* of its height, to which an item may be lowered */

/* What a step costs beside placing, in looks: copies and three sorts of all items. */
static int64_t cost_of_step(const gp_arrangement *items) {
  return 1000 + 100 * (int64_t)items->count;
}

/* Lower some of the items at the peak. The offsets are an order now, no arrangement. */
static void lower(const gp_improve *improve, uint64_t *seed) {
  const gp_arrangement *items = improve->placer->items;
  const uint64_t share = 2 + draw(seed, 7); /* of 8 */
  for (int32_t i = 0; i < items->count; i++) {
    gp_lifespan *b = &items->at[i];
    if (b->fixed || b->offset + b->bytes < improve->peak || draw(seed, 8) >= share) continue;
    b->offset = b->offset / PARTS * draw(seed, PARTS);
  }
}

static gp_status step(gp_improve *improve, uint64_t *seed) {
  gp_placer *placer = improve->placer;
  const gp_arrangement *items = placer->items;
  bool done;
  for (int32_t i = 0; i < items->count; i++) improve->kept[i] = items->at[i].offset;
  placer->looks -= cost_of_step(items);
  lower(improve, seed);
  GP_TRY(gp_arrangement_sort(items, GP_BY_OFFSET, improve->order));
  done = gp_placer_fill(placer, improve->order, GP_FIT_LOWEST);
  if (done) GP_TRY(gp_arrange_justify(improve, &done));
  const size_t peak = gp_arrangement_peak(items);
  if (done && peak <= improve->peak)
    improve->peak = peak;
  else
    for (int32_t i = 0; i < items->count; i++) items->at[i].offset = improve->kept[i];
  return GP_OK;
}

gp_status gp_arrange_climb(gp_improve *improve) {
  uint64_t seed = 1;
  while (improve->placer->looks >= 0 && improve->peak > improve->bound)
    GP_TRY(step(improve, &seed));
  return GP_OK;
}
