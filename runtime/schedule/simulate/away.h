/* schedule/simulate/away.h - copies of what F saves to the host's memory and back. */
#ifndef GP_SCHEDULE_SIMULATE_AWAY_H
#define GP_SCHEDULE_SIMULATE_AWAY_H

#include "base/status.h"

struct gp_sim;
struct gp_sim_cursor;

/* What goes to the host's memory, per action; both lanes of each device. */
typedef struct gp_sim_away {
  int32_t *behind; /* the F whose copy must be over behind the action; -1: none */
  /* The backward action whose values begin to come back with the action; -1: none. */
  int32_t *fetch;
  /* When the copy of an F is over, and when the values of such a backward action are there; 0:
   * nothing is copied. */
  double *over;
  double *out, *in; /* per device: until when the lane is taken up */
} gp_sim_away;

/* Find out which micro-batches go. */
gp_status gp_sim_open_away(struct gp_sim *run, size_t actions);
void gp_sim_close_away(struct gp_sim *run);
/* Wait for what the actions at the cursor need back, before they begin. */
void gp_sim_await_away(const struct gp_sim *run, struct gp_sim_cursor *cursor);
/* Begin the copies of the actions at the cursor, which have their times. */
void gp_sim_copy_away(struct gp_sim *run, int32_t device);
/* When a device may go on behind an action, as far as copies are concerned; 0: at once. */
double gp_sim_away_leaves(const struct gp_sim *run, int32_t action);
/* When the values that an action needs back are there; 0: it needs none. */
double gp_sim_away_arrives(const struct gp_sim *run, int32_t action);

#endif
