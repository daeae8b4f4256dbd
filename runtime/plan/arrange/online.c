/* plan/arrange/online.c - what an allocator with the best fit does while the program runs.
 *
 * It is near-linear: only the free blocks are looked at, which are few. Source: ggml-alloc, which
 * takes the smallest block that is large enough, and grows the area where there is none.
 */
#include <string.h>

#include "base/memory.h"
#include "plan/arrange/heuristics.h"

typedef struct block {
  size_t offset, end;
} block;

typedef struct heap {
  block *free; /* ascending, no two adjacent, none at the top */
  int32_t count;
  size_t top;
} heap;

static void drop(heap *h, int32_t k) {
  h->count--;
  memmove(&h->free[k], &h->free[k + 1], (size_t)(h->count - k) * sizeof *h->free);
}

static size_t take(heap *h, size_t bytes) {
  int32_t best = -1;
  size_t least = SIZE_MAX;
  for (int32_t k = 0; k < h->count; k++) {
    size_t size = h->free[k].end - h->free[k].offset;
    if (size < bytes || size >= least) continue;
    best = k;
    least = size;
  }
  size_t offset = best < 0 ? h->top : h->free[best].offset;
  if (best < 0)
    h->top += bytes;
  else if (least == bytes)
    drop(h, best);
  else
    h->free[best].offset += bytes;
  return offset;
}

/* Find the first free block behind an offset. */
static int32_t behind(const heap *h, size_t offset) {
  int32_t low = 0, high = h->count;
  while (low < high) {
    int32_t middle = low + (high - low) / 2;
    if (h->free[middle].offset < offset)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static void give_back(heap *h, size_t offset, size_t end) {
  int32_t k = behind(h, offset);
  if (k < h->count && h->free[k].offset == end) {
    end = h->free[k].end;
    drop(h, k);
  }
  if (k > 0 && h->free[k - 1].end == offset) {
    offset = h->free[k - 1].offset;
    drop(h, --k);
  }
  if (end == h->top) {
    h->top = offset;
    return;
  }
  memmove(&h->free[k + 1], &h->free[k], (size_t)(h->count - k) * sizeof *h->free);
  h->free[k] = (block){offset, end};
  h->count++;
}

gp_status gp_place_online(const gp_arrangement *items, int64_t looks, bool *done) {
  heap h = {0};
  GP_TRY(gp_alloc_array((size_t)items->count + 1, sizeof *h.free, (void **)&h.free));
  for (int32_t i = 0, over = 0; i < items->count && looks >= 0; i++) {
    gp_lifespan *b = &items->at[i];
    for (; items->at[items->ends[over]].last < b->first; over++) {
      const gp_lifespan *gone = &items->at[items->ends[over]];
      give_back(&h, gone->offset, gone->offset + gone->bytes);
    }
    looks -= h.count + 1;
    b->offset = take(&h, b->bytes);
  }
  gp_free(h.free);
  *done = looks >= 0;
  return GP_OK;
}
