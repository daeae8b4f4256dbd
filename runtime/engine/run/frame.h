/* engine/run/frame.h - the addresses that a task works on. */
#ifndef GP_ENGINE_FRAME_H
#define GP_ENGINE_FRAME_H

#include "engine/run/run.h"

/* Set what is the same for all tasks, before a run. */
void gp_frame_begin(gp_worker *worker);
/* Fill in the worker's frame, one address per base of the plan, and r->block and r->fault. */
void gp_frame_bind(gp_worker *worker, gp_task_run *r);

#endif
