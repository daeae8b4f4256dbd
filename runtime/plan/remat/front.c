/* plan/remat/front.c - see front.h. */
#include "plan/remat/front.h"

enum { SETTLE = 4 }; /* sums that are added before slots are settled again */

static size_t most(size_t a, size_t b) { return a > b ? a : b; }
static size_t less(size_t a, size_t b) { return a > b ? a - b : 0; }

/* The last point that needs no more than `bytes`; -1: none. */
static int32_t find(const gp_front *front, size_t bytes) {
  int32_t low = 0, high = front->count;
  while (low < high) {
    const int32_t middle = low + (high - low) / 2;
    if (front->points[middle].bytes <= bytes)
      low = middle + 1;
    else
      high = middle;
  }
  return low - 1;
}

int64_t gp_front_time(const gp_front *front, size_t bytes) {
  const int32_t at = find(front, bytes);
  return at < 0 ? GP_REMAT_IMPOSSIBLE : front->points[at].time;
}

/* ---- a sum ----------------------------------------------------------------------------------- */

/* The budget from which on a point of a term holds. */
static size_t inner_from(const gp_front_sum *s, int32_t at) {
  return s->inner->points[at].bytes + s->parked;
}

static size_t outer_from(const gp_front_sum *s, int32_t at) {
  return less(s->outer->points[at].bytes + s->held, s->spare);
}

int64_t gp_front_sum_time(const gp_front_sum *s, size_t budget) {
  const size_t all = budget + s->spare;
  if (all < s->bytes || budget < s->parked || all < s->held) return GP_REMAT_IMPOSSIBLE;
  const int64_t inner = gp_front_time(s->inner, budget - s->parked);
  if (inner == GP_REMAT_IMPOSSIBLE) return GP_REMAT_IMPOSSIBLE;
  const int64_t outer = gp_front_time(s->outer, all - s->held);
  return outer == GP_REMAT_IMPOSSIBLE ? GP_REMAT_IMPOSSIBLE : s->time + inner + outer;
}

static gp_front_point point_of(const gp_front_sum *s, int32_t i, int32_t o) {
  const size_t both = most(inner_from(s, i), outer_from(s, o));
  return (gp_front_point){.bytes = most(both, less(s->bytes, s->spare)),
                          .time = s->time + s->inner->points[i].time + s->outer->points[o].time};
}

bool gp_front_sum_ends(const gp_front_sum *s, gp_front_point *first, gp_front_point *last) {
  if (!s->inner->count || !s->outer->count) return false;
  *first = point_of(s, 0, 0);
  *last = point_of(s, s->inner->count - 1, s->outer->count - 1);
  return true;
}

/* ---- the least of many ----------------------------------------------------------------------- */

void gp_front_begin(gp_front_maker *m, size_t low, size_t high, int64_t limit) {
  m->low = low;
  m->high = high;
  m->limit = limit;
  m->shift = 0;
  m->added = 0;
  while ((high - low) >> m->shift >= (size_t)m->room) m->shift++;
  m->used = (int32_t)((high - low) >> m->shift) + 2;
  for (int32_t i = 0; i < m->used; i++) m->slots[i] = (gp_front_point){.time = GP_REMAT_IMPOSSIBLE};
}

/* Let each slot know the fastest point up to it. */
static void settle(gp_front_maker *m) {
  for (int32_t i = 1; i < m->used; i++)
    if (m->slots[i - 1].time <= m->slots[i].time) m->slots[i] = m->slots[i - 1];
}

/* The bytes from which on no point of a sum is faster than what is there already; `time` is the
 * sum's last. Any slot with a time that low is right; among settled ones the first is found. */
static size_t find_cut(const gp_front_maker *m, int64_t time) {
  int32_t low = 0, high = m->used;
  while (low < high) {
    const int32_t middle = low + (high - low) / 2;
    if (m->slots[middle].time <= time)
      high = middle;
    else
      low = middle + 1;
  }
  return low < m->used ? m->slots[low].bytes : SIZE_MAX;
}

/* Walks along both terms: each budget at which one of them falls is a point of the sum. Nearly all
 * time goes into this loop, so what it needs are locals. */
static void walk(gp_front_maker *m, const gp_front_sum *s, size_t begin, size_t end) {
  const gp_front_point *inner = s->inner->points, *outer = s->outer->points;
  const gp_front_point *inner_last = inner + s->inner->count - 1;
  const gp_front_point *outer_last = outer + s->outer->count - 1;
  gp_front_point *const slots = m->slots;
  const size_t low = m->low, parked = s->parked, held = s->held, spare = s->spare;
  const int64_t limit = m->limit;
  const int shift = m->shift;
  for (size_t budget = begin; budget < end;) {
    while (inner < inner_last && inner[1].bytes + parked <= budget) inner++;
    while (outer < outer_last && less(outer[1].bytes + held, spare) <= budget) outer++;
    const int64_t time = s->time + inner->time + outer->time;
    gp_front_point *slot = budget == low ? slots : slots + 1 + ((budget - low) >> shift);
    if (time < limit && (time < slot->time || (time == slot->time && budget < slot->bytes)))
      *slot = (gp_front_point){.bytes = budget, .time = time};
    const size_t next_inner = inner < inner_last ? inner[1].bytes + parked : SIZE_MAX;
    const size_t next_outer = outer < outer_last ? less(outer[1].bytes + held, spare) : SIZE_MAX;
    budget = next_inner < next_outer ? next_inner : next_outer;
  }
}

void gp_front_add(gp_front_maker *m, const gp_front_sum *s) {
  gp_front_point first, last;
  if (!gp_front_sum_ends(s, &first, &last) || last.time >= m->limit) return;
  const size_t cut = find_cut(m, last.time);
  walk(m, s, first.bytes, cut <= m->high ? cut : m->high + 1);
  if (++m->added % SETTLE == 0) settle(m);
}

int32_t gp_front_finish(const gp_front_maker *m, gp_front_point *points) {
  int32_t count = 0;
  int64_t least = GP_REMAT_IMPOSSIBLE;
  for (int32_t i = 0; i < m->used; i++) {
    if (m->slots[i].time >= least) continue;
    least = m->slots[i].time;
    points[count++] = m->slots[i];
  }
  return count;
}
