/* schedule/simulate/simulate.h - a schedule run with costs instead of devices.
 *
 *   run.c     when does each action begin and end?
 *   link.c    who hands values to whom, and when do they arrive?
 *   path.c    the critical path
 *   memory.c  activations, bytes and versions of the weights that devices hold
 */
#ifndef GP_SCHEDULE_SIMULATE_H
#define GP_SCHEDULE_SIMULATE_H

#include "gpipe/simulation.h"
#include "schedule/schedule.h"

struct gp_simulation {
  const gp_schedule *schedule; /* borrowed */
  double makespan, span;
  double *begin, *finish; /* per action */
  gp_device_load *loads;  /* per device */
  gp_critical *path;
  int path_count;
};

/* The value that an action hands to another device, where sending it may take the sender's time. */
typedef struct gp_sim_message {
  double start, arrival; /* arrival: below 0 until it is sent */
  double posted;         /* when its receiver began to wait for it; below 0: not yet */
  int32_t freed_by;      /* the action whose receipt made room for it; -1: it did not wait */
} gp_sim_message;

/* A bounded queue of values: edge, direction and sender's copy of the stage make one. */
typedef struct gp_sim_queue {
  int32_t sent, received;
} gp_sim_queue;

typedef struct gp_sim_slot {
  double time;   /* when it became free */
  int32_t taker; /* by whose receipt */
} gp_sim_slot;

/* Where in its list a device is. Joined actions [next, end) are one. */
typedef struct gp_sim_cursor {
  int32_t next, end;
  int32_t part;  /* the one whose input or output is next */
  int32_t waits; /* the action whose value it waits for; -1: none */
  int32_t full;  /* the channel in which it waits for room; -1: none */
  bool ran;      /* [next, end) are done but for sending */
  bool queued;
  double ready; /* when the device can go on */
} gp_sim_cursor;

/* What all stages wait for: TIE the gradients of all of them, CLIP and U their norms, or, behind a
 * barrier, the gradients. */
enum { GP_SIM_SUMS, GP_SIM_NORMS, GP_SIM_JOINS };
typedef struct gp_sim_join {
  int32_t left; /* actions that are not done yet */
  int32_t last; /* of these the one that ended last so far; -1: nobody waits for any */
} gp_sim_join;

typedef struct gp_sim {
  const gp_schedule *schedule;
  const gp_costs *costs;
  gp_simulation *result;
  int32_t *forward, *backward;   /* per (stage, micro-batch): index + 1 of F, of B or I */
  int32_t *send[2], *receive[2]; /* the same of explicit sends and receives; NULL: there are none */
  int32_t *again;                /* of R; NULL: nothing is recomputed */
  int32_t *device;               /* per action; NULL where the placement says it */
  int32_t *weights;              /* of B or W; NULL where stages have one device */
  bool norms;                    /* there are actions NORM */
  gp_sim_cursor *cursors;        /* per device */
  int32_t *queue;                /* devices that may be able to go on, a ring */
  int32_t queue_first, queue_count;
  gp_sim_join joins[GP_SIM_JOINS];
  int32_t capacity;         /* of a channel; -1: any number */
  gp_sim_message *messages; /* per action; NULL where sending takes no time of the sender's */
  gp_sim_queue *queues;     /* NULL where channels hold any number, or none */
  gp_sim_slot *slots;       /* capacity each */
} gp_sim;

/* ---- who hands values to whom (link.c) ---------------------------------------------- */

/* Fill in the tables of a run. */
gp_status gp_sim_index(gp_sim *run);
/* The device of an action that is no empty cell. */
int32_t gp_sim_device(const gp_sim *run, int32_t action);
/* The action whose value this one reads and another device may make, or -1. */
int32_t gp_sim_source(const gp_sim *run, int32_t action);
/* The action on another device that reads what this one makes, or -1. */
int32_t gp_sim_reader(const gp_sim *run, int32_t action);
/* How long the value of an action that crosses devices travels. */
double gp_sim_delay(const gp_sim *run, int32_t action);
/* The join that actions of this op wait for, or -1; is this one waited for there? */
int gp_sim_join_of(const gp_sim *run, int op);
bool gp_sim_is_joined(const gp_sim *run, int join, int op);
/* Does this reader take what it needs out of a channel? What ends a mini-batch does not. */
bool gp_sim_is_message(const gp_sim *run, int32_t reader);
/* When what an action made is there for its reader, below 0 where it is not yet. */
double gp_sim_arrival(const gp_sim *run, int32_t action, int32_t reader);

/* ---- what is read off a finished run --------------------------------------------------------- */

gp_status gp_sim_path(const gp_sim *run);
gp_status gp_sim_memory(const gp_sim *run);

#endif
