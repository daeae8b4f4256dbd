/* plan/arrange/bound.c - the most bytes that are alive at once: no arrangement needs less. */
#include "plan/arrange/arrangement.h"

size_t gp_arrangement_bound(const gp_arrangement *items) {
  size_t alive = 0, most = items->bottom;
  for (int32_t i = 0, over = 0; i < items->count; i++) {
    const gp_lifespan *next = &items->at[i];
    for (; items->at[items->ends[over]].last < next->first; over++)
      alive -= items->at[items->ends[over]].bytes;
    alive += next->bytes;
    if (alive > most) most = alive;
  }
  return most;
}

gp_status gp_arrange_bound(const gp_lifespan *buffers, int32_t count, size_t *bytes) {
  gp_arrangement items;
  GP_TRY(gp_arrangement_new(buffers, count, &items));
  *bytes = gp_arrangement_bound(&items);
  gp_arrangement_free(&items);
  return GP_OK;
}
