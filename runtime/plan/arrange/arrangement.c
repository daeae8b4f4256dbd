/* plan/arrange/arrangement.c - copies buffers in the order of time, and checks numbers once.
 *
 * Once the sum of all bytes and of the highest fixed end is known to fit, no heuristic can
 * overflow: each puts an item at 0 or at the end of others that are disjoint.
 */
#include "plan/arrange/arrangement.h"

#include <stdlib.h>

#include "base/memory.h"

typedef struct moment {
  int64_t time;
  int32_t number;
} moment;

static int by_time(const void *a, const void *b) {
  const moment *x = a, *y = b;
  if (x->time != y->time) return x->time < y->time ? -1 : 1;
  return x->number < y->number ? -1 : x->number > y->number;
}

/* Sort unless that is done: a program lists its values in the order of time. */
static void sort(moment *moments, int32_t count) {
  for (int32_t i = 1; i < count; i++)
    if (moments[i].time < moments[i - 1].time) {
      qsort(moments, (size_t)count, sizeof *moments, by_time);
      return;
    }
}

static gp_status check_numbers(const gp_lifespan *buffers, int32_t count, gp_arrangement *items) {
  size_t sum = 0;
  for (int32_t i = 0; i < count; i++) {
    const gp_lifespan *b = &buffers[i];
    size_t end;
    if (b->last < b->first || b->first == INT64_MIN)
      return gp_fail(GP_EINVAL, "buffer %d: it lives from %lld to %lld, expected ascending times",
                     (int)i, (long long)b->first, (long long)b->last);
    GP_TRY(gp_size_add(sum, b->bytes, &sum));
    items->count += b->bytes > 0;
    if (!b->fixed || !b->bytes) continue;
    items->fixed++;
    GP_TRY(gp_size_add(b->offset, b->bytes, &end));
    if (end > items->bottom) items->bottom = end;
  }
  return gp_size_add(sum, items->bottom, &sum);
}

static void copy_sorted(const gp_lifespan *buffers, int32_t count, moment *moments,
                        gp_arrangement *items) {
  int32_t n = 0;
  for (int32_t i = 0; i < count; i++)
    if (buffers[i].bytes) moments[n++] = (moment){buffers[i].first, i};
  sort(moments, n);
  for (int32_t i = 0; i < n; i++) {
    items->from[i] = moments[i].number;
    items->at[i] = buffers[moments[i].number];
  }
  for (int32_t i = 0; i < n; i++) moments[i] = (moment){items->at[i].last, i};
  sort(moments, n);
  for (int32_t i = 0; i < n; i++) items->ends[i] = moments[i].number;
}

gp_status gp_arrangement_new(const gp_lifespan *buffers, int32_t count, gp_arrangement *items) {
  *items = (gp_arrangement){0};
  GP_TRY(check_numbers(buffers, count, items));
  moment *moments = NULL;
  const size_t room = (size_t)items->count + 1;
  gp_status status = gp_alloc_array(room, sizeof *items->at, (void **)&items->at);
  if (!status) status = gp_alloc_array(room, sizeof *items->from, (void **)&items->from);
  if (!status) status = gp_alloc_array(room, sizeof *items->ends, (void **)&items->ends);
  if (!status) status = gp_alloc_array(room, sizeof *moments, (void **)&moments);
  if (!status) copy_sorted(buffers, count, moments, items);
  gp_free(moments);
  if (status) gp_arrangement_free(items);
  return status;
}

void gp_arrangement_free(gp_arrangement *items) {
  gp_free(items->at);
  gp_free(items->from);
  gp_free(items->ends);
}

size_t gp_arrangement_peak(const gp_arrangement *items) {
  size_t peak = 0;
  for (int32_t i = 0; i < items->count; i++) {
    size_t end = items->at[i].offset + items->at[i].bytes;
    if (end > peak) peak = end;
  }
  return peak;
}
