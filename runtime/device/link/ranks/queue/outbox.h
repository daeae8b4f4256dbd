/* device/link/ranks/queue/outbox.h - messages to other ranks that wait for a device's queue: they
 * are sent when its send stream gets there.
 *
 * No worker has to ask whether a copy is over: the driver calls a function that sends the message,
 * also while the worker waits for its device. Messages of one lane go out in the order in which
 * they were posted. If the device is lost, its driver calls nothing any more; gp_outbox_look and
 * gp_outbox_flush then send what is left, because the other ranks wait for it. Its bytes do not
 * matter: the run has failed.
 *
 * Threads: the lane's worker; new, reserve and free while it rests. */
#ifndef GP_DEVICE_LINK_OUTBOX_H
#define GP_DEVICE_LINK_OUTBOX_H

#include "device/lane.h"
#include "ranks/ranks.h"

typedef struct gp_outbox gp_outbox;

/* A message, and whom it goes to. */
typedef struct gp_outbox_item {
  int32_t rank;
  gp_rank_message message;
  const void *payload; /* borrowed */
} gp_outbox_item;

gp_status gp_outbox_new(const gp_lane *lane, gp_outbox **outbox);
void gp_outbox_free(gp_outbox *outbox); /* NULL is fine */
/* Make room for so many more messages that wait at the same time. */
gp_status gp_outbox_reserve(gp_outbox *outbox, size_t count);

/* Let the send stream wait for what the compute stream has so far. */
gp_status gp_outbox_follow(gp_outbox *outbox);
/* Send the message when the send stream has done what it was given. If that cannot be enqueued, the
 * message is sent at once, and the error is returned. */
gp_status gp_outbox_post(gp_outbox *outbox, const gp_outbox_item *item);
/* Look for a device that is lost. Errors: it is; what waited is sent. */
gp_status gp_outbox_look(gp_outbox *outbox);
/* Wait until all is sent. Errors: those of the device. */
gp_status gp_outbox_flush(gp_outbox *outbox);

#endif
