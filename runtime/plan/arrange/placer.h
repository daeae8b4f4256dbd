/* plan/arrange/placer.h - puts items, one after another, into gaps between those placed before. */
#ifndef GP_PLAN_ARRANGE_PLACER_H
#define GP_PLAN_ARRANGE_PLACER_H

#include "plan/arrange/alive.h"
#include "plan/arrange/cell.h"
#include "plan/arrange/arrangement.h"

typedef enum gp_fit {
  GP_FIT_LOWEST,  /* the lowest gap that is large enough */
  GP_FIT_SMALLEST /* the smallest one, or where there is none, above what is in the way */
} gp_fit;

typedef struct gp_placer {
  const gp_arrangement *items; /* borrowed; their offsets are written */
  gp_cell *cells; /* of all placed items, or of those found last; ascending by offset */
  int32_t count;
  bool many;      /* more items than a scan should visit: `alive` finds those in the way */
  gp_alive alive; /* if many */
  int64_t looks;  /* left to the caller's budget; below 0: used up */
} gp_placer;

gp_status gp_placer_new(const gp_arrangement *items, gp_placer *placer);
void gp_placer_free(gp_placer *placer);

/* Place all items in an order; fixed ones are there from the beginning. Returns false once no
 * looks are left: then offsets are not valid. */
bool gp_placer_fill(gp_placer *placer, const int32_t *order, gp_fit fit);

#endif
