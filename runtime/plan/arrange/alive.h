/* plan/arrange/alive.h - finds the placed items that are alive with another one, without a look at
 * the rest.
 *
 * Items are in the order in which they begin. Those alive with one are the placed ones before a
 * certain item that end late enough: a tree of the latest ends leads to them.
 */
#ifndef GP_PLAN_ARRANGE_ALIVE_H
#define GP_PLAN_ARRANGE_ALIVE_H

#include "plan/arrange/cell.h"
#include "plan/arrange/arrangement.h"

typedef struct gp_alive {
  const gp_arrangement *items; /* borrowed */
  int64_t *last;               /* per item; INT64_MIN: not placed */
  int64_t *most;               /* latest end below each node; most[1] is the root */
  int32_t leaves;              /* a power of two */
} gp_alive;

gp_status gp_alive_new(const gp_arrangement *items, gp_alive *alive);
void gp_alive_free(gp_alive *alive);
void gp_alive_clear(gp_alive *alive);
void gp_alive_put(gp_alive *alive, int32_t item);
/* Write the cells of what is placed and alive with an item, ascending by offset, and return how
 * many there are. cells (receives): room for all items. */
int32_t gp_alive_find(const gp_alive *alive, int32_t item, gp_cell *cells);

#endif
