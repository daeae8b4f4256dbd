/* engine/update/vote.c - see vote.h. */
#include "engine/update/vote.h"

#include <string.h>

#include "engine/bind/votes.h"
#include "engine/update/update.h"

/* ---- votes --------------------------------------------------------------------------------- */

gp_status gp_vote_cast(const gp_worker *worker, const gp_run *run) {
  const gp_binding *b = run->binding;
  gp_vote *vote = b->votes[worker->device];
  vote->failed = atomic_load(&((gp_run *)run)->failed_order);
  const int32_t copies = run->plan->copy_count;
  for (int32_t h = 0; run->plan->joined && h < run->plan->stage_count * copies; h++) {
    const gp_gradients *list = &worker->pipeline->arenas[h / copies].copies[h % copies].gradients;
    if (run->plan->placement[h] == worker->device && list->count)
      memcpy(vote->sums + b->vote_at[h], list->sums, (size_t)list->count * sizeof(double));
  }
  return GP_OK;
}

/* ---- the verdict --------------------------------------------------------------------------- */

/* Does a vote report a failure? Devices that hold no stage cast no vote. */
static bool has_failed(const gp_binding *b) {
  const gp_plan *plan = b->plan;
  for (int32_t h = 0; h < plan->stage_count * plan->copy_count; h++)
    if (b->heard[plan->placement[h]]->failed != INT64_MAX) return true;
  return false;
}

gp_status gp_vote_decide(gp_worker *worker, gp_run *run) {
  gp_verdict *verdict = &run->binding->verdict[worker->device];
  *verdict = (gp_verdict){.unscale = 1, .clip = 1};
  if (has_failed(run->binding) || !gp_run_commit(run)) return GP_OK;
  if (run->plan->joined) GP_TRY(gp_norm_settle(worker->pipeline, verdict));
  verdict->goes = true;
  return GP_OK;
}
