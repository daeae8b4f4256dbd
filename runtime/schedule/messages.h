/* schedule/messages.h - what the devices of a schedule send each other, and in which order.
 *
 * Each value that crosses a cut between two devices is one message: the activation of a micro-batch
 * on its way forward, the gradient on its way back. A transport whose messages between two ranks
 * keep their order (MPI, NCCL) posts them in the order of this list.
 */
#ifndef GP_SCHEDULE_MESSAGES_H
#define GP_SCHEDULE_MESSAGES_H

#include "schedule/schedule.h"

typedef struct gp_message {
  int32_t from, to;       /* devices */
  int32_t cut;            /* between stages `cut` and `cut` + 1 */
  int32_t micro;          /* micro-batch */
  bool backward;          /* a gradient, from stage `cut` + 1 to stage `cut` */
  int32_t sender, reader; /* positions of the actions that make and take it: two computations, or
                             the SEND and RECV where the schedule names them */
} gp_message;

/* The messages from one device to another: messages->by_pair[begin .. end - 1]. */
typedef struct gp_message_pair {
  int32_t from, to, begin, end;
} gp_message_pair;

typedef struct gp_messages {
  gp_message *list; /* in one order for all devices */
  int32_t count;
  int32_t *action; /* per place: the action that ran there when the order was found */
  /* After gp_messages_pair: */
  int32_t *by_pair;       /* indices into list, pair after pair */
  gp_message_pair *pairs; /* those that have messages, ascending by `from`, then `to` */
  int32_t pair_count;
} gp_messages;

/* List the messages of a verified schedule. No order of sends and receives deadlocks, even if a
 * send ends only when its receive has come, as long as each device handles its messages in the
 * order of `list`, each where its sender stands in `action`. Where the schedule names its messages,
 * they have the order of its sends. Cost: linear in actions and devices. Errors: GP_ENOMEM. */
gp_status gp_schedule_messages(const gp_schedule *schedule, gp_messages *messages);
/* Sort them by directed pair of devices: both ends find the same order in by_pair. */
gp_status gp_messages_pair(gp_messages *messages, int32_t device_count);
void gp_messages_free(gp_messages *messages); /* what it holds; not the struct */

#endif
