/* plan/arrange/heuristics.h - ways to place and to improve; each writes the offsets of items. */
#ifndef GP_PLAN_ARRANGE_HEURISTICS_H
#define GP_PLAN_ARRANGE_HEURISTICS_H

#include "plan/arrange/placer.h"

/* Let items of one size share places, in the order of time. */
gp_status gp_place_on_shelves(const gp_arrangement *items);

/* Take the smallest free block that is large enough, in the order of time. Nothing may be fixed.
 * done (receives): false if the looks did not suffice. */
gp_status gp_place_online(const gp_arrangement *items, int64_t looks, bool *done);

/* An arrangement to improve: the placer holds its offsets and the looks that are left. */
typedef struct gp_improve {
  gp_placer *placer;
  int32_t *order; /* room for all items */
  size_t *kept;   /* room for all items */
  size_t peak, bound;
} gp_improve;

/* Push all to the top and back to the bottom. The peak never grows. done (receives): false if the
 * looks did not suffice; then offsets are not valid. */
gp_status gp_arrange_justify(gp_improve *improve, bool *done);

/* Move what makes the peak, and justify again, as long as there are looks. */
gp_status gp_arrange_climb(gp_improve *improve);

#endif
