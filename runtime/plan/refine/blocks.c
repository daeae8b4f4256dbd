/* plan/refine/blocks.c - see blocks.h. */
#include "plan/refine/blocks.h"

#include "base/memory.h"

enum { MOST = 16 }; /* of the largest blocks */

gp_status gp_refine_blocks_new(const gp_layer_groups *groups, int32_t layers, const bool *busy,
                               gp_refine_blocks *blocks) {
  const int32_t each = (groups->count + MOST - 1) / MOST;
  *blocks = (gp_refine_blocks){.layers = layers, .busy = busy};
  GP_TRY(gp_alloc_array((size_t)layers + 1, sizeof(int32_t), (void **)&blocks->first));
  for (int32_t g = 0; g < groups->count; g += each)
    blocks->first[blocks->count++] = groups->first[g];
  blocks->first[blocks->count] = layers;
  return GP_OK;
}

static int32_t count_busy(const gp_refine_blocks *b, int32_t first, int32_t end) {
  int32_t count = 0;
  for (int32_t l = first; l < end; l++) count += b->busy[l];
  return count;
}

/* The layer at which the second half of what layers first .. end - 1 do begins; 0: it cannot be
 * halved. */
static int32_t middle_of(const gp_refine_blocks *b, int32_t first, int32_t end) {
  int32_t left = (count_busy(b, first, end) + 1) / 2;
  for (int32_t l = first; l < end; l++)
    if (b->busy[l] && left-- == 0) return l;
  return 0;
}

/* From the last block on, so that each is read before its place is written. */
bool gp_refine_blocks_halve(gp_refine_blocks *b) {
  int32_t halved = 0;
  for (int32_t k = 0; k < b->count; k++) halved += middle_of(b, b->first[k], b->first[k + 1]) > 0;
  int32_t to = b->count + halved, end = b->layers;
  const int32_t count = to;
  b->first[to] = end;
  for (int32_t k = b->count - 1; k >= 0; k--) {
    const int32_t first = b->first[k], middle = middle_of(b, first, end);
    if (middle) b->first[--to] = middle;
    b->first[--to] = first;
    end = first;
  }
  b->count = count;
  return halved > 0;
}

void gp_refine_blocks_free(gp_refine_blocks *blocks) {
  gp_free(blocks->first);
  *blocks = (gp_refine_blocks){0};
}
