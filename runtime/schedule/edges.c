/* schedule/edges.c - see edges.h. */
#include "schedule/edges.h"

#include "base/memory.h"

/* ---- tables -------------------------------------------------------------------------------- */

gp_status gp_edges_make_table(gp_edges *edges, gp_act op) {
  size_t cells = (size_t)edges->s->stage_count * (size_t)edges->s->micro_count;
  return gp_alloc_array(cells, sizeof *edges->at[op], (void **)&edges->at[op]);
}

/* Ops from REDUCE on have no micro-batch, and the number of an update is none. */
gp_status gp_edges_enter_all(gp_edges *edges) {
  const gp_schedule *s = edges->s;
  int32_t before, total = s->first[s->device_count];
  for (int32_t a = 0; a < total; a++)
    if (s->actions[a].op < GP_ACT_REDUCE && s->actions[a].op != GP_ACT_U)
      GP_TRY(gp_edges_enter(edges, a, &before));
  return GP_OK;
}

void gp_edges_free(gp_edges *edges) {
  for (int op = 0; op < GP_ACT_COUNT; op++) gp_free(edges->at[op]);
  *edges = (gp_edges){0};
}

/* ---- endings ------------------------------------------------------------------------------- */

/* The last batch of an asynchronous schedule may be cut short. */
void gp_edges_batch(const gp_schedule *s, int32_t batch, int32_t *begin, int32_t *end) {
  *begin = batch * s->batch;
  *end = s->batch && s->batch < s->micro_count - *begin ? *begin + s->batch : s->micro_count;
}
