/* engine/bind/links.h - the links of a plan's edges, made when it is bound. */
#ifndef GP_ENGINE_LINKS_H
#define GP_ENGINE_LINKS_H

#include "engine/state/binding.h"

gp_status gp_links_new(gp_binding *binding);
/* The link by which a device reads, or by which it made, an edge's values of a copy; NULL: it has
 * no part. */
gp_link *gp_links_find(const gp_binding *binding, int32_t edge, int32_t copy, int32_t device);
/* Look up again what tasks use of step edges, whose memory has moved. */
void gp_links_move(gp_binding *binding);
void gp_links_free(gp_binding *binding);
/* Before a run: nothing is published or released. */
void gp_links_begin(const gp_binding *binding);

#endif
