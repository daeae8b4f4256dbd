/* schedule/turns.h - which device has the next turn when lists of actions run without work.
 *
 * A device is awake if it may be able to go on. A turn puts it to sleep; it is woken again when it
 * has moved, or when something that it waits for is there.
 */
#ifndef GP_SCHEDULE_TURNS_H
#define GP_SCHEDULE_TURNS_H

#include "base/status.h"

typedef enum gp_turn_rule {
  GP_TURNS_QUEUE, /* the device that was woken first */
  GP_TURNS_SWEEP, /* the next one in the order of devices; behind the last one a new sweep begins */
  GP_TURNS_FIRST, /* the first one in the order of devices */
} gp_turn_rule;

typedef struct gp_turns {
  gp_turn_rule rule;
  int32_t device_count;
  int32_t count;   /* devices that are awake */
  int32_t sweep;   /* under SWEEP: its number, from 0 */
  int32_t at;      /* the place from which the next device is looked for */
  int32_t *device; /* per place: the device there; under QUEUE a ring of those that are awake */
  int32_t *place;  /* per device: its place in the order of devices; under QUEUE 1 if it is awake */
  uint64_t *awake; /* a bit per place; not under QUEUE */
} gp_turns;

gp_status gp_turns_new(int32_t device_count, gp_turn_rule rule, gp_turns *turns);
void gp_turns_free(gp_turns *turns); /* what it holds; not the struct */
/* Put all devices to sleep and begin anew. order: per place, devices; NULL: ascending, as always
 * under QUEUE. */
void gp_turns_begin(gp_turns *turns, const int32_t *order);
void gp_turns_wake(gp_turns *turns, int32_t device);
/* Take the device that has the next turn; -1: all sleep. */
int32_t gp_turns_next(gp_turns *turns);
/* Would the device that has its turn have the next one, too, if it were woken? Only FIRST says. */
static inline bool gp_turns_would_return(const gp_turns *turns, int32_t device) {
  return turns->rule == GP_TURNS_FIRST && turns->at == turns->place[device];
}

#endif
