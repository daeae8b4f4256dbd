/* plan/remat/table.h - the curves of all ranges of layers, and rows, from which curves are built
 * and lists are traced. */
#ifndef GP_PLAN_REMAT_TABLE_H
#define GP_PLAN_REMAT_TABLE_H

#include "plan/remat/front.h"
#include "plan/remat/moves.h"
#include "plan/remat/stage_dp.h"

struct gp_remat_table {
  gp_remat_chain chain;
  size_t memory;
  int32_t quanta;
  gp_front *fronts; /* per range (gp_remat_place): the least time to run its layers forward and
                       back, by bytes, gradient `end` included. Empty where a range owns an input
                       that its first layer's backward reads, so that it never goes early. */
  int64_t *fastest; /* per value: the least time of all layers before it */
  size_t *least;    /* per range: the least bytes with which that is possible at all */
  gp_front_point **owned; /* the points of fronts; equal ranges share some */
  size_t owned_count, owned_room;
  gp_front_maker maker;
  gp_front_point *points; /* quanta + 1: a front in the making */
};

static inline const gp_front *gp_remat_front(const gp_remat_table *table, gp_remat_range range) {
  return &table->fronts[gp_remat_place(&table->chain, range)];
}

/* The moves of a range, each with the curves of the two parts that it leaves. */
typedef struct gp_remat_row {
  const gp_remat_table *table;
  gp_remat_moves moves; /* at its begin */
  const gp_front
      *column;  /* per value, and again per value that the rest owns: the rest of the stage
                             from there on; NULL: the range is run again in a backward pass, so its
                             rest is another range */
  size_t spare; /* bytes that a range run again may use beyond the budget of what is parked */
} gp_remat_row;

static inline size_t gp_remat_column_place(const gp_remat_chain *chain, gp_remat_range rest) {
  return (size_t)rest.owned * ((size_t)chain->count + 1) + (size_t)rest.first;
}

/* The row of a range that is run again. */
gp_remat_row gp_remat_row_again(const gp_remat_table *table, gp_remat_range range);
/* The next move of `moves`, a copy of row->moves, and what it costs. */
bool gp_remat_row_next(const gp_remat_row *row, gp_remat_moves *moves, gp_remat_move *move,
                       gp_front_sum *sum);
/* The part of a curve that is wanted. */
typedef struct gp_remat_window {
  size_t low;    /* the bytes at which it begins; SIZE_MAX: not known yet */
  size_t high;   /* no point above */
  int64_t limit; /* no point that takes so long */
} gp_remat_window;

/* Build the curve of a row in maker->slots. points: room for maker->room + 1. Returns their
 * number. */
int32_t gp_remat_row_build(const gp_remat_row *row, gp_front_maker *maker, gp_remat_window window,
                           gp_front_point *points);

/* Add the steps of the fastest list of a row with so many bytes; there is one (trace.c). */
gp_status gp_remat_trace(const gp_remat_row *row, size_t bytes, gp_remat_list *list);

/* Find for each (first, end) the lowest first layer of a range that is the same layer by layer;
 * same: per (first, layers - 1) (repeat.c). */
gp_status gp_remat_find_repeats(const gp_remat_chain *chain, int32_t **same);

#endif
