/* engine/bind/votes.h - the memory of the votes and the verdict, which say whether and how all
 * stages are updated.
 *
 * Every device votes, one decides (engine/update/vote.h). Votes and verdict are step edges
 * (plan/edge/step_edges.h), in host memory. */
#ifndef GP_ENGINE_VOTES_H
#define GP_ENGINE_VOTES_H

#include "engine/state/pipeline.h"

/* One device's report. */
struct gp_vote {
  int64_t failed; /* order of the earliest failure that the device knows; INT64_MAX: none */
  double sums[];  /* per gradient that its stages own, stage by stage: see gp_gradients */
};

/* What becomes of the gradients of all stages. */
struct gp_verdict {
  int32_t goes;         /* no device has failed, so stages are updated */
  int32_t overflow;     /* unless this is set: the gradients are not finite */
  double unscale, clip; /* two factors for them, applied one after the other; 1: none */
};

/* Allocate the votes and the verdict, if the plan decides. */
gp_status gp_votes_new(gp_binding *binding);
/* Look up where the deciding device receives each vote, once the links are open. */
void gp_votes_listen(gp_binding *binding);
void gp_votes_free(gp_binding *binding);
size_t gp_vote_bytes(const gp_binding *binding, int32_t device);

/* The verdict as a device has received it. */
const gp_verdict *gp_vote_verdict(const gp_binding *binding, int32_t device);
/* The sums for the gradients that a copy of a stage owns, as the deciding device has received
 * them. */
const double *gp_vote_sums(const gp_binding *binding, int32_t stage, int32_t copy);

#endif
