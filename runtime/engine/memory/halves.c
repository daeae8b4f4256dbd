/* engine/memory/halves.c - see halves.h. */
#include "engine/memory/halves.h"

#include <stdlib.h>
#include <string.h>

#include "base/tensor.h"
#include "engine/state/pipeline.h"

/* Count the script's writes to values of the stage. */
static uint64_t count_writes(const gp_pipeline *p, int32_t stage) {
  uint64_t writes = 0;
  for (int32_t i = 0; i < p->param_count; i++)
    if (p->param_stage[i] == stage) writes += gp_tensor_writes(p->values[i]);
  return writes;
}

/* Round all values as if they were f32: an arena holds a whole number of such elements. Values of
 * other dtypes become halves that no kernel reads. */
static gp_status round_all(const gp_lane *lane, gp_arena *a) {
  gp_shape all = {.rank = 1, .dim = {(int64_t)(a->value_bytes / sizeof(float))}};
  gp_attrs attrs = {.cast = {.dtype = a->half}};
  gp_meta from, to;
  GP_TRY(gp_meta_make(GP_F32, &all, &from));
  GP_TRY(gp_meta_make(a->half, &all, &to));
  gp_call cast = {.attr = &attrs,
                  .step = &(gp_step_block){0},
                  .n_in = 1,
                  .n_out = 1,
                  .in = {{a->copies[0].values, &from}},
                  .out = {{a->halves, &to}}};
  return lane->work->launch(lane, &(gp_lane_call){.op = GP_OP_cast, .call = &cast});
}

gp_status gp_halves_refresh(gp_worker *worker) {
  gp_pipeline *p = worker->pipeline;
  for (int32_t s = 0; s < p->stage_count; s++) {
    gp_arena *a = &p->arenas[s];
    if (!a->halves || p->placement[s * p->copy_count] != worker->device) continue;
    uint64_t writes = count_writes(p, s);
    if (a->halved && a->halved_writes == writes) continue;
    GP_TRY(round_all(&worker->lane, a));
    a->halved = true;
    a->halved_writes = writes;
  }
  return GP_OK;
}

void *gp_halves_of(const gp_arena *a, const void *values) {
  return a->halves ? a->halves + ((const char *)values - a->copies[0].values) / 2 : NULL;
}

void gp_halves_spoil(gp_arena *a) { a->halved = false; }

bool gp_halves_wanted(void) {
  const char *wish = getenv("GPIPE_UPDATE_HALVES");
  return !wish || strcmp(wish, "0") != 0;
}
