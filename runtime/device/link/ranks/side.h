/* device/link/ranks/side.h - one end of a link between two processes: the runs that it counts, and
 * the messages that bring values.
 *
 * Both ends count the runs, because the maker may have begun the next run when the reader has
 * not. */
#ifndef GP_DEVICE_LINK_END_H
#define GP_DEVICE_LINK_END_H

#include "device/link/link.h"
#include "ranks/ranks.h"

typedef struct gp_link_side {
  gp_link *link;
  bool makes;      /* the maker's end */
  uint32_t run;    /* runs begun; the reader's under the lock of ports, like `early` */
  uint32_t *early; /* per slot: what is published in the next run, which was not begun here */
} gp_link_side;

gp_status gp_link_side_open(gp_link_side *side, gp_link *link);
void gp_link_side_close(gp_link_side *side);
void gp_link_side_begin(gp_link_side *side);
int32_t gp_link_other(const gp_link_spec *spec); /* the rank of the other end */

/* The head of the message that brings a value. */
gp_rank_message gp_link_side_value(const gp_link_side *side, gp_link_turn turn);
/* Does the message bring a value of this run or the next? Those of a run that was given up are
 * dropped. */
bool gp_link_side_wants(const gp_link_side *side, const gp_rank_message *message);
/* The value has come: publish it here, and wake the reader's worker. */
void gp_link_side_take(gp_link_side *side, const gp_rank_message *message);

/* Tell the other end something, or offer it memory; the offer is copied. */
gp_status gp_link_side_say(const gp_link_side *side, const char *what);
gp_status gp_link_side_offer(const gp_link_side *side, const void *offer, size_t bytes);
/* Where the offer goes that the message brings; NULL: it brings none. */
void *gp_link_side_offer_room(const gp_rank_message *message, void *offer, size_t bytes,
                              uint64_t *expected);

/* gp_link_ops.give_up of these links. */
void gp_link_side_give_up(gp_link *link, gp_link_end end);

#endif
