/* device/link/ranks/credits.h - last uses of a channel's values, which a maker on another rank is
 * told.
 *
 * In one process every reader counts a last use in the words that the maker looks at. Between
 * processes a message to the maker's rank does. */
#ifndef GP_DEVICE_LINK_CREDITS_H
#define GP_DEVICE_LINK_CREDITS_H

#include "device/link/ranks/near.h"

typedef struct gp_credits_spec {
  uint64_t port;       /* the same on all ranks */
  gp_link_word *words; /* per slot; borrowed */
  int32_t slots;
  int32_t maker;               /* its rank */
  void (*ring)(void *context); /* wakes the maker's worker; NULL: it is on another rank */
  void *context;
  gp_link_pool *pool; /* borrowed */
} gp_credits_spec;

gp_status gp_credits_open(const gp_credits_spec *spec, gp_credits **credits);
void gp_credits_close(gp_credits *credits); /* NULL is fine */
/* A run begins; after all links of the edge have begun. */
void gp_credits_begin(gp_credits *credits);
/* Make room for the last uses by a link's reader, if that has a queue: they are told when the queue
 * has got there. */
gp_status gp_credits_serve(gp_credits *credits, const gp_link_spec *link);
/* Tell a maker on another rank about a last use here of a value that came by the link. */
gp_status gp_credits_tell(gp_credits *credits, const gp_link *link, int32_t slot);

/* Count also what readers on this host release through memory that both can reach; borrowed. Call
 * with the lock of ports. */
gp_status gp_credits_listen(gp_credits *credits, gp_near *near);
/* Take in what they have released meanwhile. Threads: the maker's worker. */
void gp_credits_take(gp_credits *credits);

/* A maker here has sent a value whose last uses are on another rank: count what is owed. */
void gp_credits_owe(gp_credits *credits, uint32_t uses);
bool gp_credits_are_owed(const gp_credits *credits);
void gp_credits_give_up(gp_credits *credits);

#endif
