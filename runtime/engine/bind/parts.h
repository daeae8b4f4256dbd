/* engine/bind/parts.h - where copies of a stage find the parts of what replicas make together
 * (plan/gathers.h), looked up once the links are there. */
#ifndef GP_ENGINE_PARTS_H
#define GP_ENGINE_PARTS_H

#include "engine/state/binding.h"

gp_status gp_parts_new(gp_binding *binding);
/* A run begins: no part has been used. */
void gp_parts_begin(const gp_binding *binding);

#endif
