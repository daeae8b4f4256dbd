/* plan/remat/column.h - the least time of a stage, when what a micro-batch parks and what it has
 * alive are given. */
#ifndef GP_PLAN_REMAT_COLUMN_H
#define GP_PLAN_REMAT_COLUMN_H

#include "plan/remat/least.h"
#include "plan/remat/table.h"

typedef struct gp_remat_column {
  const gp_remat_table *table; /* borrowed */
  int32_t first, end;
  gp_front *fronts; /* per value, and again per value that the rest owns: the least time of the rest
                       of the stage, by the bytes that may still be parked, owned ones included */
  gp_front_point *points;
  gp_front_maker maker;
  size_t spare; /* of the last solve */
} gp_remat_column;

gp_status gp_remat_column_new(const gp_remat_stage *stage, gp_remat_column *column);
void gp_remat_column_free(gp_remat_column *column); /* what it holds; not the struct */

/* Find the least time of a micro-batch that parks at most share.parked bytes and has at most
 * share.active >= share.parked alive; GP_REMAT_IMPOSSIBLE: there is none below `limit`. */
int64_t gp_remat_column_solve(gp_remat_column *column, gp_remat_share share, int64_t limit);
/* Add the steps of the last solve, which found something. */
gp_status gp_remat_column_trace(const gp_remat_column *column, gp_remat_share share,
                                gp_remat_list *list);

#endif
