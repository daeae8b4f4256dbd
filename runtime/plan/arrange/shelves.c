/* plan/arrange/shelves.c - buffers of equal size share places.
 *
 * This is as good as the others where sizes are few, as in long chains of one shape. It is
 * near-linear and needs no looks, so that there is an arrangement in any case.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "plan/arrange/heuristics.h"

/* Free places of one size. */
typedef struct shelf {
  size_t bytes;
  int32_t free; /* the item whose place is free next; -1: none */
} shelf;

static int by_bytes(const void *a, const void *b) {
  const shelf *x = a, *y = b;
  return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

/* Make a shelf for each size, ascending, and return how many. */
static int32_t find_sizes(const gp_arrangement *items, shelf *shelves) {
  int32_t count = 0;
  for (int32_t i = 0; i < items->count; i++)
    shelves[i] = (shelf){.bytes = items->at[i].bytes, .free = -1};
  qsort(shelves, (size_t)items->count, sizeof *shelves, by_bytes);
  for (int32_t i = 0; i < items->count; i++)
    if (!count || shelves[count - 1].bytes != shelves[i].bytes) shelves[count++] = shelves[i];
  return count;
}

static shelf *shelf_of(shelf *shelves, int32_t count, size_t bytes) {
  shelf key = {.bytes = bytes};
  return bsearch(&key, shelves, (size_t)count, sizeof *shelves, by_bytes);
}

/* An item takes the place of one of its size that is over, or a new one at the end, above all that
 * is fixed. next: per item, the one behind it on its shelf. */
static void place(const gp_arrangement *items, shelf *shelves, int32_t *next) {
  const int32_t sizes = find_sizes(items, shelves);
  size_t end = items->bottom;
  for (int32_t i = 0, over = 0; i < items->count; i++) {
    gp_lifespan *b = &items->at[i];
    for (; items->at[items->ends[over]].last < b->first; over++) {
      const int32_t gone = items->ends[over];
      if (items->at[gone].fixed) continue;
      shelf *own = shelf_of(shelves, sizes, items->at[gone].bytes);
      next[gone] = own->free;
      own->free = gone;
    }
    if (b->fixed) continue;
    shelf *own = shelf_of(shelves, sizes, b->bytes);
    b->offset = own->free < 0 ? end : items->at[own->free].offset;
    if (own->free < 0)
      end += b->bytes;
    else
      own->free = next[own->free];
  }
}

gp_status gp_place_on_shelves(const gp_arrangement *items) {
  shelf *shelves;
  int32_t *next = NULL;
  const size_t room = (size_t)items->count + 1;
  GP_TRY(gp_alloc_array(room, sizeof *shelves, (void **)&shelves));
  gp_status status = gp_alloc_array(room, sizeof *next, (void **)&next);
  if (!status) place(items, shelves, next);
  gp_free(shelves);
  gp_free(next);
  return status;
}
