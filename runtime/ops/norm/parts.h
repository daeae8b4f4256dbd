/* ops/norm/parts.h - the runs of neighbouring rows over which layer_norm_parts_dx sums: every
 * device has the same parts, since they decide the order of the sums. */
#ifndef GP_OPS_NORM_PARTS_H
#define GP_OPS_NORM_PARTS_H

#include <stdint.h>

enum {
  GP_NORM_PARTS = 528, /* at most: four blocks for each of an H200's 132 multiprocessors */
  GP_NORM_ROWS = 4     /* rows that a block reads at once */
};

/* Count the rows of a part; the last part may have fewer. */
static inline int64_t gp_norm_part_rows(int64_t rows) {
  const int64_t each = (rows + GP_NORM_PARTS - 1) / GP_NORM_PARTS;
  const int64_t whole = (each + GP_NORM_ROWS - 1) / GP_NORM_ROWS * GP_NORM_ROWS;
  return whole > 0 ? whole : (int64_t)GP_NORM_ROWS;
}

static inline int64_t gp_norm_parts(int64_t rows) {
  const int64_t each = gp_norm_part_rows(rows);
  return (rows + each - 1) / each;
}

#endif
