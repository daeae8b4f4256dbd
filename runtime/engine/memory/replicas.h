/* engine/memory/replicas.h - constants of the model, in the memory of devices that cannot read the
 * host's. */
#ifndef GP_ENGINE_REPLICAS_H
#define GP_ENGINE_REPLICAS_H

#include "engine/bind/binding.h"

/* Copy them, once, when a plan is bound: they never change. */
gp_status gp_replicas_load(const gp_binding *binding);

#endif
