/* schedule/simulate/simulate.h - a schedule run with costs instead of devices.
 *
 *   run.c       when does each action begin and end?
 *   link.c      what does it wait for, and when does that arrive?
 *   meets.c     what do replicas of a stream wait for before and after each update?
 *   gathers.c     when are replicas that wait for each other in an action through with it?
 *   noise.c     by how much do times vary, and what comes of that in many runs?
 *   away.c      when are copies to the host's memory and back over?
 *   channels.c  when may a device send into a channel that holds so many values?
 *   path.c      the critical path
 *   memory.c    activations, bytes and versions of the weights that devices hold
 */
#ifndef GP_SCHEDULE_SIMULATE_H
#define GP_SCHEDULE_SIMULATE_H

#include "gpipe/simulation.h"
#include "schedule/edges.h"
#include "schedule/simulate/away.h"
#include "schedule/simulate/channels.h"
#include "schedule/simulate/meets.h"
#include "schedule/turns.h"

struct gp_simulation {
  const gp_schedule *schedule; /* borrowed */
  double makespan, span;
  double *begin, *finish; /* per action */
  gp_device_load *loads;  /* per device */
  gp_critical *path;
  int path_count;
};

/* Where in its list a device is. Joined actions [next, end) are one. */
typedef struct gp_sim_cursor {
  int32_t next, end;
  int32_t part;  /* the one of them whose input or output is next */
  int32_t waits; /* the action whose value it waits for; -1: none */
  int32_t full;  /* the channel in which it waits for room; -1: none */
  bool ran;      /* [next, end) are computed */
  bool told;     /* the other replicas know of that */
  bool done;     /* their values are there to be sent */
  double ready;  /* when the device can go on */
} gp_sim_cursor;

/* The state of a gp_join. If there are no norms but a barrier was asked for, U waits for the
 * gradients of all stages instead. */
typedef struct gp_sim_join {
  int32_t left; /* actions that are not done yet */
  int32_t last; /* the one of them that ended last so far; -1: none is waited for */
} gp_sim_join;

/* The actions of all replicas that wait for each other (gp_costs.gathers). */
typedef struct gp_sim_gather {
  int32_t left;  /* replicas that have not computed it */
  double latest; /* when the last one so far had */
} gp_sim_gather;

typedef struct gp_sim {
  const gp_schedule *schedule;
  const gp_costs *costs;
  gp_simulation *result;  /* made by the run */
  const gp_edges *edges;  /* of the schedule, borrowed */
  bool messages_only;     /* endings wait for nothing: only the channels are of interest */
  bool norms;             /* the schedule has NORMs */
  gp_sim_cursor *cursors; /* per device */
  gp_turns turns;         /* devices that may be able to go on */
  bool joined;            /* an action waits for one of these */
  gp_sim_join joins[GP_JOIN_COUNT];
  gp_sim_meet *meets;     /* [part][stage][mini-batch]; NULL: it is no stream with replicas */
  int32_t *adding;        /* [stage][mini-batch][copy]: gradients that are to come */
  double *exits;          /* per device: until when it sends to other replicas */
  int32_t batch_count;    /* mini-batches of a stream */
  gp_sim_gather *gathers; /* per action of the first replica; NULL: no action waits like that */
  int32_t capacity;       /* of a channel; -1: any number */
  double *arrivals;       /* per action: when its value is there, below 0 until it is sent; NULL
                             * where it travels for its delay and nothing more */
  gp_sim_place *places;   /* per action; NULL where channels hold any number */
  gp_sim_away away;       /* NULL lists: nothing goes to the host's memory */
  double *links;          /* per device: until when its link is taken up; NULL: links hold all */
  gp_sim_queue *queues;   /* NULL where channels hold any number, or none */
  gp_sim_slot *slots;     /* capacity each */
} gp_sim;

/* ---- the run (run.c) ------------------------------------------------------------------------- */

/* Check that costs and noise are numbers that a run can add. */
gp_status gp_sim_check(const gp_schedule *schedule, const gp_costs *costs);
/* Fail if a device did not come to its end. */
gp_status gp_sim_check_ended(const gp_sim *run);
/* Run until every device has come to its end or none can go on. The caller sets schedule, edges and
 * costs, whose numbers it has checked, and closes the run, also after a failure. */
gp_status gp_sim_run(gp_sim *run);
void gp_sim_close(gp_sim *run);
/* After the run, has the device not come to its end? Then it cannot send what `part` made (if it
 * `ran`), or waits for the value of the action `waits`. */
bool gp_sim_is_stuck(const gp_sim *run, int32_t device);

/* ---- replicas that gather (gathers.c) ------------------------------------------------------ */

/* Errors: GP_ESCHEDULE where replicas that have to gather run different lists. */
gp_status gp_sim_open_gathers(gp_sim *run);
/* Have all replicas computed the actions at the device's cursor? Otherwise it is woken then. */
bool gp_sim_gather_all(gp_sim *run, int32_t device);

/* ---- varying times (noise.c) ----------------------------------------------------------------- */

/* Returns how many times longer than its cost the action takes on this device. */
double gp_sim_action_factor(const gp_sim *run, int32_t device, int32_t action);
/* Returns how many times longer than its delay the value of an action travels. */
double gp_sim_travel_factor(const gp_sim *run, int32_t action);

/* ---- what an action waits for (link.c) ------------------------------------------------------- */

/* Returns the action whose value this one reads and another device may make, or -1. */
int32_t gp_sim_source(const gp_sim *run, int32_t action);
/* Returns the action on another device that reads what this one makes, or -1. */
int32_t gp_sim_reader(const gp_sim *run, int32_t action);
/* Returns how long the value of an action travels to another device. */
double gp_sim_delay(const gp_sim *run, int32_t action);
/* Returns how long it takes until its sender hears that a place for it is free. */
double gp_sim_credit(const gp_sim *run, int32_t action);
/* Returns for how long it takes up the link of the device that sends it. */
double gp_sim_busy(const gp_sim *run, int32_t action);
/* Returns the join that actions of this op wait for; GP_JOIN_COUNT: none. */
gp_join gp_sim_join_of(const gp_sim *run, gp_act op);
/* Does the join wait for actions of this op? */
bool gp_sim_is_joined(const gp_sim *run, gp_join join, gp_act op);
/* Does this reader take what it needs out of a channel? Endings of a mini-batch do not. */
bool gp_sim_is_message(const gp_sim *run, int32_t reader);
/* Returns when the value of an action is there for its reader; below 0: not yet. */
double gp_sim_arrival(const gp_sim *run, int32_t action, int32_t reader);

/* ---- what is read off a finished run --------------------------------------------------------- */

gp_status gp_sim_path(const gp_sim *run);
gp_status gp_sim_memory(const gp_sim *run);

#endif
