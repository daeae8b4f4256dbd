/* plan/remat/moves.h - the first decision about a range of layers: keep the first one, or run and
 * forget some and keep the value behind them.
 *
 * All programmes of this folder are built from the same moves. A move splits the work on layers
 * first .. end - 1, which begin with value `first`:
 *   keep        layer `first` runs and keeps what an option says; the layers behind it are done
 *               while that stays parked, or waits in the host's memory; then its backward runs.
 *   checkpoint  layers first .. stop - 1 run and keep nothing; the layers from `stop` on are done;
 *               then layers first .. stop - 1 are done again, from value `first`.
 *
 * A range owns its input if nothing else reads it: a checkpoint, or what a stage receives. Then the
 * budget of the range pays for it, and it goes early when the first layer is kept and its backward
 * does not read it. Otherwise the input is part of what the layer before keeps, and is paid for
 * there.
 *
 * Source: shared/reference/rematerialization-and-memory.md, sections 3.2 and 3.3, with the bounds
 * derived again: C2 and A are `keep`, C1 and B are `checkpoint`. C3 and C3', dropped layers before
 * a layer that is kept without its input, follow from ranges that own their input, and so do cases
 * that the source leaves out. */
#ifndef GP_PLAN_REMAT_MOVES_H
#define GP_PLAN_REMAT_MOVES_H

#include "plan/remat/chain.h"

enum { GP_REMAT_NO_OPTION = -1 };

typedef struct gp_remat_range {
  int32_t first, end; /* layers first .. end - 1 */
  bool owned;         /* it owns its input */
} gp_remat_range;

typedef struct gp_remat_move {
  int32_t stop;   /* keep: first; checkpoint: the first layer that is not dropped */
  int32_t option; /* of layer `first`; GP_REMAT_NO_OPTION: a checkpoint */
  size_t
      parked; /* bytes that stay while the rest is done, beside a checkpoint, which the rest owns */
  size_t bytes; /* the least budget with which the move itself runs */
  int64_t time; /* of its forward passes, and of the backward of the layer that it keeps */
} gp_remat_move;

typedef struct gp_remat_moves {
  const gp_remat_chain *chain; /* borrowed */
  gp_remat_range range;
  size_t input;    /* bytes of value `first` if the range owns it; 0 otherwise */
  size_t gradient; /* bytes of gradient `end`, which is there in a backward pass */
  bool whole;      /* all layers may be dropped: in the forward pass of a stage */
  /* where the iteration stands */
  int32_t stop, option;
  size_t forward_bytes; /* the worst moment of running layers first .. stop - 1 */
  int64_t forward_time;
} gp_remat_moves;

/* Begin to list the moves of a range that is run again in a backward pass. */
gp_remat_moves gp_remat_moves_again(const gp_remat_chain *chain, gp_remat_range range);
/* Begin to list the moves of the rest of a stage, in its forward pass. */
gp_remat_moves gp_remat_moves_stage(const gp_remat_chain *chain, gp_remat_range range);
/* The next move, the options first and then checkpoints by ascending stop; false: there is none. */
bool gp_remat_next_move(gp_remat_moves *moves, gp_remat_move *move);

/* The two parts that a move leaves of a range: the rest, and the layers that it dropped. */
static inline gp_remat_range gp_remat_rest(gp_remat_range range, const gp_remat_move *move) {
  const bool checkpoint = move->option == GP_REMAT_NO_OPTION;
  const int32_t next = checkpoint ? move->stop : move->stop + 1;
  return (gp_remat_range){.first = next, .end = range.end, .owned = checkpoint && next < range.end};
}

static inline gp_remat_range gp_remat_dropped(gp_remat_range range, const gp_remat_move *move) {
  return (gp_remat_range){
      .first = range.first, .end = move->stop, .owned = range.owned && move->stop > range.first};
}

/* Where a table of ranges has one; it has 2 x (layers + 1)^2 places. */
static inline size_t gp_remat_place(const gp_remat_chain *chain, gp_remat_range range) {
  const size_t values = (size_t)chain->count + 1;
  return ((size_t)range.owned * values + (size_t)range.first) * values + (size_t)range.end;
}

/* If the first layer's backward reads the input of a range that owns it, the input never goes
 * early, and the range costs what one that does not own it costs, and the input's bytes. Returns
 * that one and those bytes; else the range and 0. */
gp_remat_range gp_remat_plain_range(const gp_remat_chain *chain, gp_remat_range range,
                                    size_t *more);

#endif
