/* device/link/ranks/queue/staged.h - the end of a rank's link on a device with a queue: values pass
 * through pinned memory of the host, slot after slot.
 *
 *   maker    device -> staging buffer on the send stream; the message follows when that is over
 *            (outbox.h)
 *   reader   the message's bytes -> staging buffer; -> device on the receive stream
 *
 * Where both ranks are on one host, the reader's staging buffer is memory that both can reach, and
 * the maker's send stream writes to it. If both ends are GPUs, it writes to the reader's slot, if
 * the driver lets it.
 *
 * Threads: those of the link. */
#ifndef GP_DEVICE_LINK_STAGED_H
#define GP_DEVICE_LINK_STAGED_H

#include "device/link/link.h"
#include "device/link/ranks/shared.h"
#include "ranks/ranks.h"

typedef struct gp_staged_end gp_staged_end;

void gp_staged_free(gp_staged_end *end);  /* NULL is fine */
void gp_staged_begin(gp_staged_end *end); /* a run begins */
/* Look for a device that is lost (gp_outbox_look). */
gp_status gp_staged_look(const gp_staged_end *end);

/* ---- the maker ------------------------------------------------------------------------------- */

gp_status gp_staged_maker_new(const gp_link *link, gp_staged_end **end);
/* May the send stream write to the reader's memory (slot 0)? It is pinned at the first call. */
bool gp_staged_writes(gp_staged_end *end, char *into);
/* Where the reader's slot 0 lies in the memory of its GPU, if the send stream may write there;
 * NULL: it may not. It is opened at the first call, which may write to the slot; refused: why the
 * reader does not offer it, or NULL. */
char *gp_staged_device(gp_staged_end *end, const gp_lane_offer *offer, const char *refused,
                       int32_t slot);
/* Copy the value to the staging buffer, or straight to `into` (slot 0; optional), and send the
 * message behind it. It is sent even if something fails. */
gp_status gp_staged_send(gp_staged_end *end, gp_link_turn turn, const gp_rank_message *message,
                         char *into);

/* Order what the lane does next, which writes the slot, behind the copy of its last value; it is
 * over already, and the device is told so. */
gp_status gp_staged_follow(const gp_staged_end *end, const gp_lane *lane, int32_t slot);

/* ---- the reader ------------------------------------------------------------------------------ */

/* shared: optional, borrowed: memory that serves as staging buffer if it can be pinned, which
 * gp_staged_room tells. */
gp_status gp_staged_reader_new(const gp_link *link, const gp_shared *shared, gp_staged_end **end);
char *gp_staged_room(const gp_staged_end *end); /* slot 0 of the staging buffer */
/* Bring a value from the staging buffer to the device, once a round; the compute stream waits for
 * it. */
gp_status gp_staged_bring(gp_staged_end *end, gp_link_turn turn);
/* Note a last use. */
gp_status gp_staged_use(gp_staged_end *end, int32_t slot);
/* Is the last use over, or ordered before what the lane does next? With two copies of a stage the
 * slot may be written by another link than the one that brought its last value. */
gp_status gp_staged_acquire(const gp_staged_end *end, const gp_lane *lane, int32_t slot,
                            bool *ready);

#endif
