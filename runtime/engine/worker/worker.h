/* engine/worker/worker.h - the thread that drives one device: how it gets jobs, how it waits. */
#ifndef GP_ENGINE_WORKER_H
#define GP_ENGINE_WORKER_H

#include "engine/state/pipeline.h"

/* ---- life ---------------------------------------------------------------------------------- */

/* Open the lanes; then, when the arenas are there, start the threads. */
gp_status gp_workers_new(gp_pipeline *pipeline, const gp_device_spec *devices);
gp_status gp_workers_start(gp_pipeline *pipeline);
/* Stop the threads; then, when all memory of the lanes is freed, close the lanes. */
void gp_workers_stop(gp_pipeline *pipeline);
void gp_workers_free(gp_pipeline *pipeline);
/* Stop without waiting for workers that do not come back: what they use is never freed. */
void gp_workers_abandon(gp_pipeline *pipeline);
/* Make room for a plan's frames, scratch and events. */
gp_status gp_workers_prepare(gp_pipeline *pipeline, const gp_plan *plan);
/* Count bytes that the device holds for passes, or no longer holds. */
/* Bytes of scratch that the worker would take for a plan, beyond what it has. */
size_t gp_worker_growth(const gp_worker *worker, const gp_plan *plan);
void gp_worker_count(gp_worker *worker, size_t bytes, bool more);

/* ---- jobs and waiting ------------------------------------------------------------------------ */

/* Let every worker run job; watch/jobs.h waits for them. */
void gp_workers_begin(gp_pipeline *pipeline, gp_job job, void *context);
/* Ask until the answer is yes, the question fails, or the run is given up: then *ready is false. */
typedef gp_status (*gp_worker_question)(void *context, bool *ready);
gp_status gp_worker_try(gp_worker *worker, gp_worker_question ask, void *context, bool *ready);
/* Wait until *word >= wanted; false if the run is given up. */
bool gp_worker_await(gp_worker *worker, _Atomic uint32_t *word, uint32_t wanted);
/* Wake a worker that may be waiting for what the caller has just changed, by a sequentially
 * consistent write. */
void gp_worker_ring(gp_worker *worker);

#endif
