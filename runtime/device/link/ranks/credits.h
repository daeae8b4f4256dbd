/* device/link/ranks/credits.h - last uses of an edge's values, which the makers on other ranks are
 * told.
 *
 * In one process every reader counts a last use in the words that the makers look at. Between
 * processes a message does: it goes to each rank that makes values of the edge, because both copies
 * of a stage count the uses of the slots that they share. */
#ifndef GP_DEVICE_LINK_CREDITS_H
#define GP_DEVICE_LINK_CREDITS_H

#include "device/link/ranks/near.h"

typedef struct gp_credits_spec {
  uint64_t port;       /* the same on all ranks */
  gp_link_word *words; /* per slot; borrowed */
  int32_t slots;
  int32_t copies;    /* of the making stage */
  int32_t makers[2]; /* other ranks that make values of the edge */
  int32_t maker_count;
  void (*ring)(void *context); /* wakes the workers here that make values; NULL: none does */
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
/* Tell the makers on other ranks about a last use here of a value that came by the link. */
gp_status gp_credits_tell(gp_credits *credits, const gp_link *link, int32_t slot);

/* Has the edge one maker, on this other rank? Then a link may count last uses where it looks. */
bool gp_credits_are_of(const gp_credits *credits, int32_t rank);
/* Count also what readers on this host release through memory that both can reach; borrowed. Call
 * with the lock of ports. */
gp_status gp_credits_listen(gp_credits *credits, gp_near *near);
/* Take in what they have released meanwhile. Threads: the only maker's worker. */
void gp_credits_take(gp_credits *credits);

/* A copy here has sent a value whose last uses are on another rank: count what is owed. */
void gp_credits_owe(gp_credits *credits, int32_t copy, uint32_t uses);
bool gp_credits_are_owed(const gp_credits *credits, int32_t copy);
void gp_credits_give_up(gp_credits *credits);

#endif
