/* plan/arrange/arrangement.h - the buffers to place, in the order of time, as all heuristics read
 * them. */
#ifndef GP_PLAN_ARRANGE_ARRANGEMENT_H
#define GP_PLAN_ARRANGE_ARRANGEMENT_H

#include "plan/arrange/arrange.h"

/* Buffers with bytes. Offsets belong to the heuristic that runs; those of fixed ones stay. */
typedef struct gp_arrangement {
  gp_lifespan *at; /* ascending by `first`, then as the caller gave them */
  int32_t *from;   /* per item: its number among the caller's buffers */
  int32_t *ends;   /* items in the order in which they end */
  int32_t count;
  int32_t fixed; /* how many are */
  size_t bottom; /* end of the highest fixed one */
} gp_arrangement;

/* Errors: as gp_arrange, but fixed buffers may overlap. */
gp_status gp_arrangement_new(const gp_lifespan *buffers, int32_t count, gp_arrangement *items);
void gp_arrangement_free(gp_arrangement *items); /* what it holds; not the struct */

size_t gp_arrangement_peak(const gp_arrangement *items);
size_t gp_arrangement_bound(const gp_arrangement *items);

/* The orders in which items are placed: most first, by offset and by time the least first. */
typedef enum gp_place_order {
  GP_BY_SIZE,
  GP_BY_LIFETIME,
  GP_BY_AREA, /* size times lifetime */
  GP_BY_TIME,
  GP_BY_OFFSET
} gp_place_order;

/* Write the numbers of the items in an order. What is equal stays in the order of time. */
gp_status gp_arrangement_sort(const gp_arrangement *items, gp_place_order by, int32_t *order);
/* The same, in the order of time, what lives longer than a share of the longest life (1 / share);
 * then the others by size. So what a micro-batch keeps lies together, the next one lies as it did,
 * and what it leaves free in its backward pass is one piece, in which large temporaries fit. */
gp_status gp_arrangement_sort_stays(const gp_arrangement *items, int share, int32_t *order);

#endif
