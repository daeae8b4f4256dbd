/* plan/arrange/cell.h - a placed item: when it is alive, and the bytes that it covers. */
#ifndef GP_PLAN_ARRANGE_CELL_H
#define GP_PLAN_ARRANGE_CELL_H

#include <stddef.h>
#include <stdint.h>

typedef struct gp_cell {
  int64_t first, last;
  size_t offset, end;
} gp_cell;

#endif
