/* engine/memory/replicas.h - values of elsewhere that a stage reads in copies of its own:
 * parameters that lie with a device that it cannot read, constants of the model. */
#ifndef GP_ENGINE_REPLICAS_H
#define GP_ENGINE_REPLICAS_H

#include "engine/bind/binding.h"
#include "engine/worker/worker.h"

/* Constants never change: once, when a plan is bound. */
gp_status gp_replicas_load(const gp_binding *binding);
/* Bring the parameters that a device's stages read of other devices up to date: before a
 * mini-batch. */
gp_status gp_replicas_refresh(gp_worker *worker, const gp_binding *binding);

#endif
