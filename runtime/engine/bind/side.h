/* engine/bind/side.h - the second queue of a device: gradients of parameters beside the rest of a
 * backward pass (plan/program/side.c). */
#ifndef GP_ENGINE_BIND_SIDE_H
#define GP_ENGINE_BIND_SIDE_H

#include "engine/bind/binding.h"

/* Make the events by which the two queues of each device wait for each other; free them. */
gp_status gp_side_new(gp_binding *binding);
void gp_side_free(gp_binding *binding);
/* Only with GPIPE_SIDE_STREAM=1: what it gains was never measured. */
bool gp_side_wanted(void);

#endif
