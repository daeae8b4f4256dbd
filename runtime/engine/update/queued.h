/* engine/update/queued.h - ends of steps whose decisions are made by the devices themselves.
 *
 * Whether the parameters are updated, and what gradients are multiplied with, depends on the sums
 * and the faults of all devices. Where all of them have queues no host waits for those: each device
 * takes what the others found, decides, and what follows looks at its verdict. The host enqueues
 * all of it at once, most of it as graphs that were captured before, and learns at the end of the
 * step what became of it (norm.c says the same of the same sums).
 * Streams, whose addresses change and whose stages decide alone, work op by op, and so does
 * everything while failures are injected. */
#ifndef GP_ENGINE_QUEUED_H
#define GP_ENGINE_QUEUED_H

#include "engine/update/update.h"

/* Memory for it, of a pipeline whose devices can; then what a plan keeps, if it can: the binding's
 * `queued`. */
gp_status gp_queued_new(gp_pipeline *pipeline);
void gp_queued_free(gp_pipeline *pipeline);
gp_status gp_queued_bind(gp_binding *binding);
void gp_queued_unbind(gp_binding *binding);
/* Write down what this run goes by; hyper: per group of the attached optimizer, NULL without one.
 * On the script's thread, before the workers begin. */
gp_status gp_queued_begin(gp_pipeline *pipeline, const gp_optim_hyper *hyper);
/* When they are done: settle what the host has to know, or take back what it had assumed. */
void gp_queued_finish(gp_pipeline *pipeline);

/* Around the barrier at which it is decided: lay out for others what this device has found; decide
 * by what all have. */
gp_status gp_queued_offer(gp_worker *worker);
gp_status gp_queued_judge(gp_worker *worker);

/* Enqueue work of a task, or replay it: the same calls on the same addresses in every step. At once
 * where the binding is not queued. */
typedef gp_status gp_queued_work(void *context);
gp_status gp_queued_run(const gp_worker *worker, const gp_task *task, gp_queued_work *work,
                        void *context);
/* In the device's memory: where the sums of a stage go; what its updates run by. */
double *gp_queued_sums(const gp_worker *worker, int32_t stage);
gp_steer gp_queued_steer(const gp_worker *worker);

#endif
