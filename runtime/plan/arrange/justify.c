/* plan/arrange/justify.c - pushes an arrangement to the top and back to the bottom.
 *
 * If items are placed in the order of their offsets, each into the lowest gap, none comes to lie
 * higher than it did. So a turn upside down, a placement and the same again never make the peak
 * grow, and what was stuck below a hole often falls into it: on stages of transformers that halves
 * the waste of every heuristic. Source of the idea: the double justification of project schedules,
 * Valls, Ballestin and Quintanilla 2005.
 */
#include "plan/arrange/heuristics.h"

static void turn(const gp_arrangement *items, size_t peak) {
  for (int32_t i = 0; i < items->count; i++) {
    gp_lifespan *b = &items->at[i];
    b->offset = peak - b->offset - b->bytes;
  }
}

gp_status gp_arrange_justify(gp_improve *improve, bool *done) {
  gp_placer *placer = improve->placer;
  const gp_arrangement *items = placer->items;
  const size_t peak = gp_arrangement_peak(items);
  *done = true;
  for (int side = 0; side < 2; side++) {
    turn(items, peak);
    GP_TRY(gp_arrangement_sort(items, GP_BY_OFFSET, improve->order));
    if (*done) *done = gp_placer_fill(placer, improve->order, GP_FIT_LOWEST);
  }
  return GP_OK;
}
