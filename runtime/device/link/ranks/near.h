/* device/link/ranks/near.h - a link between two processes of one host: slots, their words and the
 * bells of both workers in memory that both can reach.
 *
 * The maker copies a value into the reader's slot, raises a word and rings the reader's bell; the
 * reader counts its last uses in another word and rings the maker's. No message is sent and no
 * other thread takes part. Words hold the number of the run, because the maker may have begun the
 * next run when the reader has not. */
#ifndef GP_DEVICE_LINK_NEAR_H
#define GP_DEVICE_LINK_NEAR_H

#include "device/link/link.h"
#include "device/link/ranks/shared.h"

typedef struct gp_near gp_near;

/* What an end tells the other one: its bells and, if it is the reader, its slots. */
typedef struct gp_near_offer {
  gp_shared_offer bells, slots;
} gp_near_offer;

/* Make the bells of this process, which it offers to the others of its host. Errors: GP_EIO,
 * GP_ENOMEM; GP_EUNSUPPORTED with GPIPE_RANKS_SHARED=0, by which ranks share no memory. */
gp_status gp_near_make_bells(int32_t count, gp_shared **bells);
/* The reader's end: make the slots of a link. Errors: GP_EIO, GP_ENOMEM. */
gp_status gp_near_new(const gp_link_spec *spec, gp_near **near);
gp_near_offer gp_near_offer_of(const gp_near *near);
/* Open the maker's bells; nothing is released through the words before. */
gp_status gp_near_meet(gp_near *near, const gp_near_offer *maker);
/* The maker has opened everything: the descriptor is needed no longer. */
void gp_near_seal(gp_near *near);
/* The maker's end: open the reader's slots and bells. Errors: GP_EIO if they are not there, as
 * those of another container are not. */
gp_status gp_near_open(const gp_link_spec *spec, const gp_near_offer *reader, gp_near **near);
void gp_near_free(gp_near *near); /* NULL is fine */

char *gp_near_slot(const gp_near *near, int32_t slot); /* aligned to a page: slot 0 */

/* maker */
void gp_near_publish(gp_near *near, uint32_t run, gp_link_turn turn, const char *value);
uint32_t gp_near_released(const gp_near *near, uint32_t run, int32_t slot); /* last uses so far */
/* reader */
bool gp_near_has(const gp_near *near, uint32_t run, gp_link_turn turn);
void gp_near_release(gp_near *near, uint32_t run, int32_t slot);

#endif
