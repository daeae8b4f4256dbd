/* engine/run/execute.h - runs one program on one device. */
#ifndef GP_ENGINE_EXECUTE_H
#define GP_ENGINE_EXECUTE_H

#include "engine/run/run.h"

/* Run a task's program with the addresses of the worker's frame. */
gp_status gp_execute(gp_worker *worker, const gp_task_run *r);

#endif
