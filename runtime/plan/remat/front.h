/* plan/remat/front.h - a step function from bytes to the least time that they allow.
 *
 * It holds the points at which the time falls: bytes ascend, times descend. Below the first point
 * nothing fits. */
#ifndef GP_PLAN_REMAT_FRONT_H
#define GP_PLAN_REMAT_FRONT_H

#include "base/status.h"

#define GP_REMAT_IMPOSSIBLE INT64_MAX

typedef struct gp_front_point {
  size_t bytes;
  int64_t time;
} gp_front_point;

typedef struct gp_front {
  const gp_front_point *points; /* borrowed */
  int32_t count;
} gp_front;

/* The least time with so many bytes; GP_REMAT_IMPOSSIBLE: nothing fits. */
int64_t gp_front_time(const gp_front *front, size_t bytes);

/* A sum of two step functions of a budget m: time + inner(m - parked) + outer(m + spare - held),
 * for m + spare >= bytes. */
typedef struct gp_front_sum {
  const gp_front *inner, *outer; /* borrowed */
  size_t parked, held, bytes, spare;
  int64_t time;
} gp_front_sum;

int64_t gp_front_sum_time(const gp_front_sum *sum, size_t budget);
/* Its first point (the least bytes) and its last one (the least time); false: it has none. */
bool gp_front_sum_ends(const gp_front_sum *sum, gp_front_point *first, gp_front_point *last);

/* The least of many sums, in the making. The range low .. high is divided into equal slots, and a
 * slot keeps its fastest point: no bytes are rounded. `low` has a slot of its own, so that what
 * fits with the least bytes is never lost. */
typedef struct gp_front_maker {
  gp_front_point *slots; /* borrowed: room + 1 */
  int32_t room;
  int32_t used, added; /* slots, and sums so far */
  int shift;
  size_t low, high; /* points outside are left out */
  int64_t limit;    /* points that take that long or longer are left out */
} gp_front_maker;

/* Begin a front between low and high, low <= high. */
void gp_front_begin(gp_front_maker *maker, size_t low, size_t high, int64_t limit);
void gp_front_add(gp_front_maker *maker, const gp_front_sum *sum);
/* Write the points to room + 1 places; returns their number. */
int32_t gp_front_finish(const gp_front_maker *maker, gp_front_point *points);

#endif
