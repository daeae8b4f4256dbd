/* engine/update/vote.h - whether and how all stages are updated: every device votes, one decides.
 *
 * This is a two-phase commit: a stage is updated only after every device has reported that its part
 * of the mini-batch succeeded, so a failure anywhere leaves all stages as they were. */
#ifndef GP_ENGINE_VOTE_H
#define GP_ENGINE_VOTE_H

#include "engine/bind/votes.h"

/* Run the tasks VOTE and DECIDE. They also run after a failure, to report it. Errors: GP_EFINITE if
 * gradients that have to be finite are not. */
gp_status gp_vote_cast(const gp_worker *worker, const gp_run *run);
gp_status gp_vote_decide(gp_worker *worker, gp_run *run);

#endif
