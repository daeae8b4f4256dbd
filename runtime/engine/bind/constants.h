/* engine/bind/constants.h - constants of the model, in the memory of devices that cannot read the
 * host's. */
#ifndef GP_ENGINE_CONSTANTS_H
#define GP_ENGINE_CONSTANTS_H

#include "engine/state/binding.h"

/* Copy them once, when a plan is bound: they never change. */
gp_status gp_constants_load(const gp_binding *binding);

#endif
