/* engine/bind/states.h - the states of CPU kernels (ops/op.h), made when a plan is bound. */
#ifndef GP_ENGINE_BIND_STATES_H
#define GP_ENGINE_BIND_STATES_H

#include "engine/state/binding.h"

/* Prepare all states in the plan's memory. */
gp_status gp_states_new(gp_binding *binding);
/* Destroy the states that were prepared, also after a failure; the memory stays. */
void gp_states_free(gp_binding *binding);

#endif
