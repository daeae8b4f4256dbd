/* engine/run/moves.h - what a task does for values that go to the host's memory and come back
 * (plan/offload.h). */
#ifndef GP_ENGINE_RUN_MOVES_H
#define GP_ENGINE_RUN_MOVES_H

#include "engine/state/run.h"

/* Do a task's moves: before its program, or behind. runs: it is not skipped; what is skipped begins
 * no copy, but waits for those that were begun. */
gp_status gp_moves_before(const gp_worker *worker, const gp_task *task, bool runs);
gp_status gp_moves_behind(const gp_worker *worker, const gp_task *task, bool runs);

#endif
