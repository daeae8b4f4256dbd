/* plan/remat/row.c - builds the curve of a range from the curves of its parts. */
#include "plan/remat/table.h"

gp_remat_row gp_remat_row_again(const gp_remat_table *table, gp_remat_range range) {
  return (gp_remat_row){.table = table, .moves = gp_remat_moves_again(&table->chain, range)};
}

bool gp_remat_row_next(const gp_remat_row *row, gp_remat_moves *moves, gp_remat_move *move,
                       gp_front_sum *sum) {
  const gp_remat_chain *chain = &row->table->chain;
  if (!gp_remat_next_move(moves, move)) return false;
  *sum = (gp_front_sum){.bytes = move->bytes, .spare = row->spare, .time = move->time};
  size_t more;
  gp_remat_range part = gp_remat_rest(moves->range, move);
  part = gp_remat_plain_range(chain, part, &more);
  sum->inner = row->column ? &row->column[gp_remat_column_place(chain, part)]
                           : gp_remat_front(row->table, part);
  sum->parked = move->parked + more;
  part = gp_remat_dropped(moves->range, move);
  sum->outer = gp_remat_front(row->table, gp_remat_plain_range(chain, part, &sum->held));
  return true;
}

/* Where the curve begins, and where it cannot fall any more. */
static bool find_ends(const gp_remat_row *row, size_t *low, gp_front_point *high) {
  gp_remat_moves moves = row->moves;
  gp_remat_move move;
  gp_front_sum sum;
  gp_front_point first, last, best = {.time = GP_REMAT_NEVER};
  *low = SIZE_MAX;
  while (gp_remat_row_next(row, &moves, &move, &sum)) {
    if (!gp_front_sum_ends(&sum, &first, &last)) continue;
    if (first.bytes < *low) *low = first.bytes;
    if (last.time < best.time || (last.time == best.time && last.bytes < best.bytes)) best = last;
  }
  if (best.time == GP_REMAT_NEVER || best.time >= high->time || *low > high->bytes) return false;
  if (best.bytes < high->bytes) high->bytes = best.bytes;
  return true;
}

int32_t gp_remat_row_build(const gp_remat_row *row, gp_front_maker *maker, gp_front_point high,
                           gp_front_point *points) {
  size_t low;
  if (!find_ends(row, &low, &high)) return 0;
  gp_front_begin(maker, low, high.bytes, high.time);
  gp_remat_moves moves = row->moves;
  gp_remat_move move;
  gp_front_sum sum;
  while (gp_remat_row_next(row, &moves, &move, &sum)) gp_front_add(maker, &sum);
  return gp_front_finish(maker, points);
}
