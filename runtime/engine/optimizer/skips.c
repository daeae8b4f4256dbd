/* engine/optimizer/skips.c - see skips.h. */
#include "engine/optimizer/skips.h"

static gp_status fail_stuck(void) {
  return gp_fail(GP_EFINITE,
                 "the gradients of %d steps in a row are not finite, so that nothing was "
                 "updated: a smaller learning rate or clipping may help; finite = true "
                 "names the layer that makes them",
                 (int)GP_SKIPS_MOST);
}

gp_status gp_skips_count(gp_pipeline *p, bool finite) {
  gp_skips *skips = &p->skips;
  if (p->check == GP_FINITE_RAISE && !finite)
    return gp_fail(GP_EFINITE,
                   "the gradients of this step are not finite, so that nothing was updated");
  skips->row = finite ? 0 : skips->row + 1;
  skips->total += !finite;
  if (skips->row < GP_SKIPS_MOST) return GP_OK;
  skips->row = 0;
  return fail_stuck();
}

/* Each stage counts its own skips; the script's thread reads the counters during the run. */
bool gp_skips_are_stuck(const gp_pipeline *p) {
  for (int32_t h = 0; h < p->stage_count * p->copy_count; h++)
    if (atomic_load(&((gp_pipeline *)p)->run.stages[h].row) >= GP_SKIPS_MOST) return true;
  return false;
}

gp_status gp_skips_end_stream(gp_pipeline *p) {
  int64_t most = 0;
  bool stuck = gp_skips_are_stuck(p);
  for (int32_t h = 0; h < p->stage_count * p->copy_count; h++) {
    gp_stage_run *made = &p->run.stages[h];
    if (made->skipped > most) most = made->skipped;
    if (stuck) atomic_store(&made->row, 0);
    made->skipped = 0;
  }
  p->skips.total += most;
  return stuck ? fail_stuck() : GP_OK;
}
