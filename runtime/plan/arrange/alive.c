/* plan/arrange/alive.c - a tree of maxima over the ends of placed items; see alive.h. */
#include "plan/arrange/alive.h"

#include "base/memory.h"

enum { LEAF = 16 }; /* items: a scan of two cache lines costs less than four more levels */

gp_status gp_alive_new(const gp_arrangement *items, gp_alive *alive) {
  *alive = (gp_alive){.items = items, .leaves = 1};
  while ((int64_t)alive->leaves * LEAF < items->count) alive->leaves *= 2;
  GP_TRY(gp_alloc_array((size_t)alive->leaves * LEAF, sizeof *alive->last, (void **)&alive->last));
  gp_status status =
      gp_alloc_array((size_t)alive->leaves * 2, sizeof *alive->most, (void **)&alive->most);
  if (status) gp_alive_free(alive);
  return status;
}

void gp_alive_free(gp_alive *alive) {
  gp_free(alive->last);
  gp_free(alive->most);
}

void gp_alive_clear(gp_alive *alive) {
  for (int32_t i = 0; i < alive->leaves * LEAF; i++) alive->last[i] = INT64_MIN;
  for (int32_t i = 0; i < alive->leaves * 2; i++) alive->most[i] = INT64_MIN;
}

void gp_alive_put(gp_alive *alive, int32_t item) {
  const int64_t last = alive->items->at[item].last;
  alive->last[item] = last;
  for (int32_t k = alive->leaves + item / LEAF; k && alive->most[k] < last; k /= 2)
    alive->most[k] = last;
}

/* Count the items that begin at `time` or before. */
static int32_t begun(const gp_arrangement *items, int64_t time) {
  int32_t low = 0, high = items->count;
  while (low < high) {
    int32_t middle = low + (high - low) / 2;
    if (items->at[middle].first <= time)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* The items of a leaf, those before `stop` alone. */
static int32_t look_in_leaf(const gp_alive *alive, int32_t leaf, int32_t stop, int64_t first,
                            gp_cell *cells) {
  const int32_t end = (leaf + 1) * LEAF < stop ? (leaf + 1) * LEAF : stop;
  int32_t count = 0;
  for (int32_t i = leaf * LEAF; i < end; i++) {
    if (alive->last[i] < first) continue;
    const gp_lifespan *b = &alive->items->at[i];
    cells[count++] = (gp_cell){b->first, b->last, b->offset, b->offset + b->bytes};
  }
  return count;
}

/* Walk the tree from left to right; what ended before is left out, subtree by subtree. */
static int32_t walk(const gp_alive *alive, int32_t stop, int64_t first, gp_cell *cells) {
  int32_t node = 1, width = alive->leaves, leaf = 0, count = 0;
  while (node && leaf * LEAF < stop) {
    if (alive->most[node] >= first) {
      if (width > 1) {
        node *= 2, width /= 2;
        continue;
      }
      count += look_in_leaf(alive, leaf, stop, first, cells + count);
    }
    for (leaf += width; node & 1; node /= 2) width *= 2; /* up from every right child */
    if (node) node++;
  }
  return count;
}

/* Shell's sort: no recursion, and quick for some hundred cells. Source of the gaps: Ciura 2001. */
static void sort_by_offset(gp_cell *cells, int32_t count) {
  static const int32_t gaps[] = {1, 4, 10, 23, 57, 132, 301, 701, 1750, 4376, 10941, 27353, 68383};
  for (int g = sizeof gaps / sizeof *gaps - 1; g >= 0; g--)
    for (int32_t i = gaps[g]; i < count; i++) {
      const gp_cell cell = cells[i];
      int32_t k = i;
      for (; k >= gaps[g] && cells[k - gaps[g]].offset > cell.offset; k -= gaps[g])
        cells[k] = cells[k - gaps[g]];
      cells[k] = cell;
    }
}

int32_t gp_alive_find(const gp_alive *alive, int32_t item, gp_cell *cells) {
  const gp_lifespan *b = &alive->items->at[item];
  const int32_t count = walk(alive, begun(alive->items, b->last), b->first, cells);
  sort_by_offset(cells, count);
  return count;
}
