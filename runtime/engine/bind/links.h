/* engine/bind/links.h - the links of a plan's edges, made when it is bound. */
#ifndef GP_ENGINE_LINKS_H
#define GP_ENGINE_LINKS_H

#include "engine/state/binding.h"

gp_status gp_links_new(gp_binding *binding);
/* The link to a device from the maker of a channel; NULL: the device neither makes nor reads its
 * values. */
gp_link *gp_links_find(const gp_binding *binding, int32_t channel, int32_t device);
/* Look up the uses of step edges again, because their memory has moved. */
void gp_links_move(gp_binding *binding);
void gp_links_free(gp_binding *binding);
/* Does this process hold an end of a link between two devices? */
bool gp_link_is_here(const gp_binding *binding, int32_t maker, int32_t reader);
/* Make the credits of a channel, if ranks share it. */
gp_status gp_links_credit(gp_binding *binding, int32_t channel);
/* Fill in what a link of the channel needs if it leads to another process. */
void gp_links_address(gp_binding *binding, int32_t channel, int32_t reader, gp_link_spec *spec);
/* Reset the links before a run: nothing is published or released. */
void gp_links_begin(const gp_binding *binding);

#endif
