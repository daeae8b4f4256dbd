/* plan/arrange/placer.c - greedy placement in a given order. Source: Pisarchyk and Lee 2020 (arXiv
 * 2001.03288), algorithm 3, here with any order and with the lowest or the smallest gap.
 *
 * A scan of all placed items in the order of their offsets is the quickest way to a gap up to some
 * thousand items: it needs no sorting, and ends at the gap. Both ways give the same offsets.
 */
#include "plan/arrange/placer.h"

#include <string.h>

#include "base/memory.h"

/* Items from which on a scan costs more than a search in the tree and sorting what it finds. A
 * scan of as many is within the looks of gp_arrange_quick. */
enum { MANY = 8192 };

/* What the search costs per item found, in looks. */
enum { FOUND = 16 };

gp_status gp_placer_new(const gp_arrangement *items, gp_placer *placer) {
  *placer = (gp_placer){.items = items, .many = items->count >= MANY};
  GP_TRY(gp_alloc_array((size_t)items->count + 1, sizeof *placer->cells, (void **)&placer->cells));
  if (!placer->many) return GP_OK;
  gp_status status = gp_alive_new(items, &placer->alive);
  if (status) {
    gp_free(placer->cells);
    *placer = (gp_placer){0};
  }
  return status;
}

void gp_placer_free(gp_placer *placer) {
  gp_free(placer->cells);
  if (placer->many) gp_alive_free(&placer->alive);
}

/* Insert a cell; the list stays ascending. */
static void insert(gp_placer *placer, gp_cell cell) {
  int32_t low = 0, high = placer->count;
  while (low < high) {
    int32_t middle = low + (high - low) / 2;
    if (placer->cells[middle].offset <= cell.offset)
      low = middle + 1;
    else
      high = middle;
  }
  memmove(&placer->cells[low + 1], &placer->cells[low],
          (size_t)(placer->count++ - low) * sizeof cell);
  placer->cells[low] = cell;
}

/* Put an item at its offset. */
static void put(gp_placer *placer, int32_t item) {
  const gp_lifespan *b = &placer->items->at[item];
  if (placer->many)
    gp_alive_put(&placer->alive, item);
  else
    insert(placer, (gp_cell){b->first, b->last, b->offset, b->offset + b->bytes});
}

static void clear(gp_placer *placer) {
  placer->count = 0;
  if (placer->many) gp_alive_clear(&placer->alive);
  for (int32_t i = 0; placer->items->fixed && i < placer->items->count; i++)
    if (placer->items->at[i].fixed) put(placer, i);
}

/* Find a gap for a buffer between the cells that are alive with it. */
static size_t find_gap(gp_placer *placer, const gp_lifespan *b, gp_fit fit) {
  size_t top = 0, best = 0, least = SIZE_MAX;
  int32_t i = 0;
  for (; i < placer->count && !(fit == GP_FIT_LOWEST && least < SIZE_MAX); i++) {
    const gp_cell *cell = &placer->cells[i];
    if (cell->first > b->last || cell->last < b->first) continue;
    if (cell->offset > top && cell->offset - top >= b->bytes && cell->offset - top < least) {
      best = top;
      least = cell->offset - top;
    }
    if (cell->end > top) top = cell->end;
  }
  placer->looks -= i + 1;
  return least < SIZE_MAX ? best : top;
}

bool gp_placer_fill(gp_placer *placer, const int32_t *order, gp_fit fit) {
  clear(placer);
  for (int32_t i = 0; i < placer->items->count && placer->looks >= 0; i++) {
    gp_lifespan *b = &placer->items->at[order[i]];
    if (b->fixed) continue;
    if (placer->many) {
      placer->count = gp_alive_find(&placer->alive, order[i], placer->cells);
      placer->looks -= FOUND * (int64_t)(placer->count + 1);
    }
    b->offset = find_gap(placer, b, fit);
    put(placer, order[i]);
  }
  return placer->looks >= 0;
}
