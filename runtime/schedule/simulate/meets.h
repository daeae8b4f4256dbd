/* schedule/simulate/meets.h - see meets.c. */
#ifndef GP_SCHEDULE_SIMULATE_MEETS_H
#define GP_SCHEDULE_SIMULATE_MEETS_H

#include "schedule/edges.h"

struct gp_sim;

/* What all replicas send each other before any goes on: a stage's gradients of a mini-batch, and
 * the values that its update makes. */
typedef enum gp_sim_part { GP_MEET_SUMS, GP_MEET_VALUES, GP_MEET_COUNT } gp_sim_part;

/* An action that another one waits for, and when what it made arrives; below 0: not yet. */
typedef struct gp_sim_wait {
  int32_t from;
  double arrival;
} gp_sim_wait;

typedef struct gp_sim_meet {
  int32_t left;            /* copies that have not sent their part */
  gp_sim_wait last, other; /* what arrives last, and last of another copy; from -1: none */
} gp_sim_meet;

gp_status gp_sim_open_meets(struct gp_sim *run);
void gp_sim_close_meets(struct gp_sim *run);
/* The action is done; the last one of a meeting wakes the devices that may wait. */
void gp_sim_note_met(struct gp_sim *run, int32_t action);
/* Find what the action waits for of the other replicas, and return how many that are. */
int gp_sim_waits(const struct gp_sim *run, int32_t action, gp_sim_wait waits[GP_MEET_COUNT]);

#endif
