/* engine/watch/jobs.h - runs a job on all workers and waits for it, with checks by the watchdog. */
#ifndef GP_ENGINE_JOBS_H
#define GP_ENGINE_JOBS_H

#include "engine/state/pipeline.h"

/* Run job on every worker and wait; the status is that of the lowest device that failed. */
gp_status gp_workers_run(gp_pipeline *pipeline, gp_job job, void *context);
/* Wait for a job that was begun (worker/worker.h). */
gp_status gp_workers_join(gp_pipeline *pipeline);

#endif
