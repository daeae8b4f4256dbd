/* plan/remat/trace.c - turns curves back into steps.
 *
 * No decision is stored: at a given budget, each move is evaluated again and the first of the
 * fastest is taken. As a curve may have left points out, that is as fast as the curve says, or
 * faster. */
#include "plan/remat/table.h"

typedef struct tracer {
  gp_remat_list *list;
  size_t room;
  int32_t base; /* the layer that the list calls 0 */
} tracer;

static gp_status add(tracer *t, gp_remat_act act, int32_t layer, int32_t option) {
  return gp_remat_append(t->list, &t->room,
                         (gp_remat_step){.act = act, .layer = layer - t->base, .option = option});
}

static gp_remat_move choose(const gp_remat_row *row, size_t bytes) {
  gp_remat_moves moves = row->moves;
  gp_remat_move move, best = {0};
  gp_front_sum sum;
  int64_t least = GP_REMAT_IMPOSSIBLE;
  while (gp_remat_row_next(row, &moves, &move, &sum)) {
    const int64_t time = gp_front_sum_time(&sum, bytes);
    if (time >= least) continue;
    least = time;
    best = move;
  }
  GP_ASSERT(least != GP_REMAT_IMPOSSIBLE);
  return best;
}

static gp_status add_forward(tracer *t, int32_t first, const gp_remat_move *move) {
  if (move->option != GP_REMAT_NO_OPTION) return add(t, GP_REMAT_KEEP, first, move->option);
  for (int32_t l = first; l < move->stop; l++)
    GP_TRY(add(t, l == first ? GP_REMAT_CHECKPOINT : GP_REMAT_FORWARD, l, 0));
  return GP_OK;
}

/* The depth is at most twice the number of layers: each part of a range is shorter than it. */
static gp_status trace(tracer *t, const gp_remat_row *row, size_t bytes) {
  const gp_remat_range range = row->moves.range;
  if (range.first == range.end) {
    if (row->column) t->list->backward_begins = t->list->count;
    return GP_OK;
  }
  const gp_remat_move move = choose(row, bytes);
  const gp_remat_range part = gp_remat_rest(range, &move);
  gp_remat_row rest = *row;
  rest.moves = row->column ? gp_remat_moves_stage(row->moves.chain, part)
                           : gp_remat_moves_again(row->moves.chain, part);
  GP_TRY(add_forward(t, range.first, &move));
  GP_TRY(trace(t, &rest, bytes - move.parked));
  if (move.option != GP_REMAT_NO_OPTION) return add(t, GP_REMAT_BACKWARD, range.first, move.option);
  const gp_remat_row dropped = gp_remat_row_again(row->table, gp_remat_dropped(range, &move));
  return trace(t, &dropped, bytes + row->spare);
}

gp_status gp_remat_trace(const gp_remat_row *row, size_t bytes, gp_remat_list *list) {
  tracer t = {.list = list, .room = (size_t)list->count, .base = row->moves.range.first};
  return trace(&t, row, bytes);
}
