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

/* The least bytes of any move. */
static size_t find_low(const gp_remat_row *row) {
  gp_remat_moves moves = row->moves;
  gp_remat_move move;
  gp_front_sum sum;
  gp_front_point first, last;
  size_t low = SIZE_MAX;
  while (gp_remat_row_next(row, &moves, &move, &sum))
    if (gp_front_sum_ends(&sum, &first, &last) && first.bytes < low) low = first.bytes;
  return low;
}

/* The bytes with which all layers are kept by their fastest options, beyond which the curve cannot
 * fall; SIZE_MAX: the curves of the parts do not reach that far. */
static size_t find_high(const gp_remat_row *row) {
  const gp_remat_range range = row->moves.range;
  const int64_t *fastest = row->table->fastest;
  gp_remat_moves moves = row->moves;
  gp_remat_move move;
  gp_front_sum sum;
  gp_front_point first, last;
  size_t high = SIZE_MAX;
  while (gp_remat_row_next(row, &moves, &move, &sum) && move.option != GP_REMAT_NO_OPTION) {
    if (!gp_front_sum_ends(&sum, &first, &last)) continue;
    if (last.time > fastest[range.end] - fastest[range.first]) continue;
    if (last.bytes < high) high = last.bytes;
  }
  return high;
}

int32_t gp_remat_row_build(const gp_remat_row *row, gp_front_maker *maker, gp_remat_window window,
                           gp_front_point *points) {
  if (window.low == SIZE_MAX) window.low = find_low(row);
  if (window.low > window.high) return 0;
  const size_t high = find_high(row);
  gp_front_begin(maker, window.low, high < window.high ? high : window.high, window.limit);
  gp_remat_moves moves = row->moves;
  gp_remat_move move;
  gp_front_sum sum;
  while (gp_remat_row_next(row, &moves, &move, &sum)) gp_front_add(maker, &sum);
  return gp_front_finish(maker, points);
}
