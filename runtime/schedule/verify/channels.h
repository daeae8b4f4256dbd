/* schedule/verify/channels.h - run a schedule over channels that hold so many messages, with
 * senders that block. */
#ifndef GP_SCHEDULE_CHANNELS_H
#define GP_SCHEDULE_CHANNELS_H

#include "schedule/verify/verify.h"

/* A device runs its list: it receives what an action needs, computes, sends what others need. A
 * channel is one direction over one edge between two devices and holds `capacity` messages; 0: both
 * ends meet. Unit costs: F = I = W = R = 1, B = 2, and a message takes no time.
 * *makespan receives when the last device ends, or -1 where devices wait for each other: then, if
 * `tell`, it fails with the circle. Source: schedules.md 1.4. */
gp_status gp_channels_run(const gp_verify *v, int32_t capacity, bool tell, int32_t *makespan);

#endif
