/* schedule/runner.h - devices run their lists of actions without work.
 *
 * This is the one loop for every question about what can happen in which order: the verifier looks
 * for an order (verify/order.c), messages.c for the order of messages, steps.c counts torch's
 * steps, and plan/edge/flow.c finds out how far devices can be ahead of each other. A device runs
 * its actions one after another, joined ones together; if its next action lacks something, it
 * sleeps. The user says what an action lacks, and is told what has run.
 */
#ifndef GP_SCHEDULE_RUNNER_H
#define GP_SCHEDULE_RUNNER_H

#include "schedule/schedule.h"
#include "schedule/turns.h"

/* What an action lacks: the position of another action, or one of these. */
enum {
  GP_LACKS_NOTHING = -1,
  GP_LACKS_WORD = -2, /* the user wakes the device when it may be able to go on */
  GP_LACKS_SWEEP = -3 /* the device has had its share of this sweep: it is asked in the next one */
};

enum { GP_RUNNER_AWAITS_NONE = -2 }; /* in `waiter`: the device lacks no action */

/* A device in its list; side by side, because a turn needs all of it. */
typedef struct gp_runner_place {
  int32_t next, end; /* positions of its next action, and behind its last one */
  int32_t waiter;    /* if it lacks an action: another device that lacks the same one, or -1 */
} gp_runner_place;

typedef struct gp_runner {
  /* Set by the user; lists as those of gp_schedule and gp_lowered. */
  const gp_action *actions; /* device after device */
  const int32_t *first;     /* per device, and the total */
  int32_t device_count;
  gp_turn_rule rule;
  bool skip_empty; /* empty cells take no turn */
  /* Per action: when it has run, how many ran before it; negative: it has not. NULL: no action ever
   * lacks another one by its position. */
  int32_t *order;
  void *context;
  int32_t (*lacks)(void *context, int32_t device, int32_t action);
  /* The actions begin .. end - 1 of a device ran; its `next` still is begin. */
  gp_status (*ran)(void *context, int32_t device, int32_t begin, int32_t end); /* optional */

  /* The runner's own. */
  gp_turns turns;
  gp_runner_place *at; /* per device */
  int32_t left;        /* actions that have not run: after a run, those that never can */
} gp_runner;

/* Make the runner's own part; nothing is left to free after a failure. */
gp_status gp_runner_new(gp_runner *runner);
void gp_runner_free(gp_runner *runner); /* what it made; not the struct */
/* Run from the begin until no device can go on, or until `ran` fails. places: see
 * gp_turns_begin. */
gp_status gp_runner_run(gp_runner *runner, const int32_t *places);
/* The device may be able to go on. One that lacks an action is woken by that action alone. */
static inline void gp_runner_wake(gp_runner *runner, int32_t device) {
  if (runner->at[device].waiter == GP_RUNNER_AWAITS_NONE) gp_turns_wake(&runner->turns, device);
}

#endif
