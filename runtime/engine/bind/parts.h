/* engine/bind/parts.h - where copies of a stage find the parts of what replicas make together
 * (plan/gathers.h), looked up once the links are there. */
#ifndef GP_ENGINE_PARTS_H
#define GP_ENGINE_PARTS_H

#include "engine/state/binding.h"

/* Allocate the exchange of a device that has to copy parts; before there are links. */
gp_status gp_exchange_new(gp_binding *binding, int32_t device);
void gp_exchange_free(gp_binding *binding, int32_t device);
/* Where parts lie that the plan gives an area: NULL if that is empty, or of another rank. */
char *gp_exchange_at(const gp_binding *binding, int32_t device, const gp_area *area);

gp_status gp_parts_new(gp_binding *binding);
/* A run begins: no part has been used. */
void gp_parts_begin(const gp_binding *binding);

#endif
