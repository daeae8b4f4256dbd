/* plan/arrange/orders.c - the orders in which items are placed. */
#include <stdlib.h>

#include "base/memory.h"
#include "plan/arrange/arrangement.h"

typedef struct ranked {
  double key;  /* more comes first */
  size_t then; /* likewise */
  int32_t item;
} ranked;

static int by_rank(const void *a, const void *b) {
  const ranked *x = a, *y = b;
  if (x->key != y->key) return x->key < y->key ? 1 : -1;
  if (x->then != y->then) return x->then < y->then ? 1 : -1;
  return x->item < y->item ? -1 : x->item > y->item;
}

static ranked rank_of(const gp_lifespan *b, gp_place_order by, int32_t item) {
  const double life = (double)b->last - (double)b->first + 1;
  switch (by) {
  case GP_BY_SIZE: return (ranked){0, b->bytes, item};
  case GP_BY_LIFETIME: return (ranked){life, b->bytes, item};
  case GP_BY_AREA: return (ranked){life * (double)b->bytes, 0, item};
  case GP_BY_OFFSET: return (ranked){0, SIZE_MAX - b->offset, item};
  case GP_BY_TIME: break;
  }
  return (ranked){0, 0, item}; /* as the items are */
}

gp_status gp_arrangement_sort(const gp_arrangement *items, gp_place_order by, int32_t *order) {
  ranked *list;
  GP_TRY(gp_alloc_array((size_t)items->count + 1, sizeof *list, (void **)&list));
  for (int32_t i = 0; i < items->count; i++) list[i] = rank_of(&items->at[i], by, i);
  if (by != GP_BY_TIME) qsort(list, (size_t)items->count, sizeof *list, by_rank);
  for (int32_t i = 0; i < items->count; i++) order[i] = list[i].item;
  gp_free(list);
  return GP_OK;
}

static double life_of(const gp_lifespan *b) { return (double)b->last - (double)b->first; }

gp_status gp_arrangement_sort_stays(const gp_arrangement *items, int share, int32_t *order) {
  ranked *list;
  double longest = 0;
  GP_TRY(gp_alloc_array((size_t)items->count + 1, sizeof *list, (void **)&list));
  for (int32_t i = 0; i < items->count; i++)
    if (life_of(&items->at[i]) > longest) longest = life_of(&items->at[i]);
  for (int32_t i = 0; i < items->count; i++) {
    const bool stays = life_of(&items->at[i]) * share > longest;
    list[i] = (ranked){stays, stays ? 0 : items->at[i].bytes, i};
  }
  qsort(list, (size_t)items->count, sizeof *list, by_rank);
  for (int32_t i = 0; i < items->count; i++) order[i] = list[i].item;
  gp_free(list);
  return GP_OK;
}
