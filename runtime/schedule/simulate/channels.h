/* schedule/simulate/channels.h - see channels.c. */
#ifndef GP_SCHEDULE_SIMULATE_CHANNELS_H
#define GP_SCHEDULE_SIMULATE_CHANNELS_H

#include "schedule/edges.h"

struct gp_sim;
struct gp_sim_cursor;

/* The value that an action hands to another device, where channels are bounded. */
typedef struct gp_sim_place {
  double start;     /* when it began to travel: elsewhere that is when the action ended */
  double posted;    /* when its receiver began to wait for it; below 0: not yet */
  int32_t freed_by; /* the action whose receipt made room for it; -1: it did not wait */
  double freed;     /* when that was, before the sender heard of it */
} gp_sim_place;

/* A channel is a bounded queue of values; there is one per cut, direction and copies of both
 * stages. */
typedef struct gp_sim_queue {
  int32_t sent, received;
} gp_sim_queue;

typedef struct gp_sim_slot {
  double time;   /* when it became free */
  int32_t taker; /* the action that took the value out */
} gp_sim_slot;

gp_status gp_sim_open_channels(struct gp_sim *run, size_t actions);
/* The reader `to` has come to where it needs the value of `sender`: it waits, or takes it. */
void gp_sim_post(struct gp_sim *run, int32_t sender, int32_t to, double time);
void gp_sim_take(struct gp_sim *run, int32_t sender, int32_t to, double time);
/* Send what cursor->part made to the action `to`. Returns false if the channel is full. */
bool gp_sim_put(struct gp_sim *run, struct gp_sim_cursor *cursor, int32_t to);

#endif
