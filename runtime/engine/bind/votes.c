/* engine/bind/votes.c - see votes.h. */
#include "engine/bind/votes.h"

#include "base/memory.h"
#include "engine/bind/step_links.h"

/* ---- memory -------------------------------------------------------------------------------- */

static gp_status make_vote(gp_binding *b, int32_t device) {
  const gp_pipeline *p = b->pipeline;
  size_t sums = 0;
  for (int32_t h = 0; h < p->stage_count * p->copy_count; h++) {
    if (b->plan->placement[h] != device) continue;
    b->vote_at[h] = sums;
    sums += (size_t)p->arenas[h / p->copy_count].copies[h % p->copy_count].gradients.count;
  }
  b->vote_bytes[device] = sizeof(gp_vote) + sums * sizeof(double);
  return gp_alloc(b->vote_bytes[device], (void **)&b->votes[device]);
}

gp_status gp_votes_new(gp_binding *b) {
  size_t devices = (size_t)b->plan->device_count;
  if (!b->plan->decides) return GP_OK;
  GP_TRY(gp_alloc_array(devices, sizeof *b->verdict, (void **)&b->verdict));
  GP_TRY(gp_alloc_array(devices, sizeof *b->votes, (void **)&b->votes));
  GP_TRY(gp_alloc_array(devices, sizeof *b->heard, (void **)&b->heard));
  GP_TRY(gp_alloc_array(devices, sizeof *b->vote_bytes, (void **)&b->vote_bytes));
  const size_t holders = (size_t)(b->plan->stage_count * b->plan->copy_count);
  GP_TRY(gp_alloc_array(holders, sizeof *b->vote_at, (void **)&b->vote_at));
  for (int32_t d = 0; d < b->plan->device_count; d++) GP_TRY(make_vote(b, d));
  return GP_OK;
}

void gp_votes_free(gp_binding *b) {
  for (int32_t d = 0; b->votes && d < b->plan->device_count; d++) gp_free(b->votes[d]);
  gp_free(b->votes);
  gp_free(b->heard);
  gp_free(b->vote_bytes);
  gp_free(b->vote_at);
  gp_free(b->verdict);
}

size_t gp_vote_bytes(const gp_binding *b, int32_t device) { return b->vote_bytes[device]; }

/* ---- looking up ------------------------------------------------------------------------------ */

void gp_votes_listen(gp_binding *b) {
  for (int32_t d = 0; b->votes && d < b->plan->device_count; d++) {
    const char *sent = gp_step_address(b, GP_STEP_VOTE, d, gp_plan_decider(b->plan));
    b->heard[d] = sent ? (const gp_vote *)sent : b->votes[d];
  }
}

const double *gp_vote_sums(const gp_binding *b, int32_t stage, int32_t copy) {
  const int32_t holder = gp_plan_holder(b->plan, stage, copy);
  return b->heard[b->plan->placement[holder]]->sums + b->vote_at[holder];
}

const gp_verdict *gp_vote_verdict(const gp_binding *b, int32_t device) {
  const char *sent = gp_step_address(b, GP_STEP_VERDICT, 0, device);
  return sent ? (const gp_verdict *)sent : &b->verdict[device];
}
