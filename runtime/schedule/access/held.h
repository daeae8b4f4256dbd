/* schedule/access/held.h - what one device of a schedule holds, for the verifier and the
 * simulator. */
#ifndef GP_SCHEDULE_HELD_H
#define GP_SCHEDULE_HELD_H

#include "schedule/access/access.h"

/* Count the versions of the weights that a device holds at once: most[stage] receives the number, 1
 * for stages that it does not hold; *over receives the position of the first update that makes more
 * than `limit` of a stage, or -1. */
gp_status gp_held_versions(const gp_schedule *schedule, int32_t device, int32_t limit,
                           int32_t *most, int32_t *over);

#endif
