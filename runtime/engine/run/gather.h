/* engine/run/gather.h - what the micro-batches of one number make together in all replicas, in the
 * middle of their programs (plan/gathers.h). */
#ifndef GP_ENGINE_GATHER_H
#define GP_ENGINE_GATHER_H

#include "engine/run/run.h"

/* Run an instruction that gathers: hand this replica's part to the others, and write the parts of
 * all to the call's results. Errors: the run has failed, maybe in another replica
 * (worker->broken). */
gp_status gp_gather_run(gp_worker *worker, const gp_task *task, const gp_instr *instr,
                        const gp_call *call);
/* Take part in the gathers that a task (of gp_task_gathers) has not come to, because it failed or
 * was skipped: the other replicas learn of the run's failure. */
gp_status gp_gathers_pass(gp_worker *worker, const gp_task *task);

#endif
