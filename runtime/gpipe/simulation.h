/* gpipe/simulation.h - a schedule run with costs instead of devices. See gpipe.h for what holds
 * everywhere. */
#ifndef GP_PUBLIC_SIMULATION_H
#define GP_PUBLIC_SIMULATION_H

#include "gpipe/schedule.h"

/* What no cost model knows: by how much times vary. Each action of a run and each value that
 * travels has a factor of its own, log-normal with mean 1; a straggler takes longer for all that it
 * does in a run. Draws are a function of (seed, draw, action) alone. */
typedef struct gp_noise {
  double action, travel; /* relative standard deviation of a time; 0: none */
  double stragglers;     /* the probability with which a device is one in a run */
  double slowdown;       /* how many times longer a straggler takes, from 1 on */
  const double *slow;    /* per device: how many times longer it always takes; NULL: 1 */
  int device_count;      /* numbers in slow */
  uint64_t seed;
  uint32_t draw; /* which run it is */
} gp_noise;

/* What the actions of a schedule cost, in any unit of time. Lists have one number per stage, are
 * borrowed for the call, and may be NULL: nothing. */
typedef struct gp_costs {
  int stage_count; /* numbers in a list; hop: one less */
  const double
      *act[GP_ACT_COUNT];  /* of one action; without one for B it takes I + W; P: what each of
                                      its devices does for the stage before its first action */
  const double *hop[2];    /* per stage edge: how long an activation, a gradient travels
                                      between devices; edge 0 is between stages 0 and 1 */
  const double *busy[2];   /* per stage edge: for how long an activation, a gradient takes up the
                                link of the device that sends it; others wait that long. NULL: any
                                number travel at once */
  const double *credit[2]; /* per stage edge: how long it takes until the sender of an activation,
                                a gradient hears that its place in a full channel is free */
  const double *away;    /* per stage: the time of a copy of what F saves to the host's memory, and
                                of one back, beside other work (schedule/away.h). Each device does
                                one copy each way at a time. NULL or 0: nothing goes there */
  const double *sums;    /* per stage: how long a device sends the gradients of a mini-batch of a
                            stream to the other replicas, behind the last action that adds to them;
                            then they travel for `exchange` */
  const double *values;  /* per stage: likewise new values, behind an update */
  const gp_noise *noise; /* borrowed; NULL: none */
  const double
      *gathers[GP_ACT_COUNT]; /* how often an action waits in its middle for the same action
                                         of the other replicas; B: as act */
  double exchange;            /* how long what replicas hand to each other there travels */
  double joined;              /* joined actions take this times the sum of their costs */
  bool blocking;              /* a device does nothing else while it sends */
  bool barrier;               /* no update before all gradients of the step are there */
  bool times_only;            /* what devices hold is not asked for: loads have 0 */
  int capacity;               /* values a channel holds before its sender waits; -1: any number */
  const double *activation;   /* bytes per micro-batch, from F or R to the last backward action */
  const double *after_input;  /* bytes of these that W reads after I; NULL: all */
  const double *resident;     /* bytes that stay on each device of the stage */
  const double *version;      /* bytes of each version of the weights beyond the newest */
} gp_costs;

typedef struct gp_device_load {
  double begin, end; /* of its first and last action */
  double work;       /* sum of the costs of its actions */
  int32_t peak_live; /* activations of one (stage, micro-batch) held at once */
  int32_t versions;  /* most versions of the weights of one stage, 1 where there are no updates */
  double peak_bytes; /* as the costs say */
} gp_device_load;

/* Why an action of the critical path began when it did: at the start, when the action before it on
 * its device ended, when a value (or the last gradient) was there, when a full channel let its
 * device go, or when a copy to the host's memory, or back, was over. */
typedef enum gp_reason {
  GP_BY_START,
  GP_BY_DEVICE,
  GP_BY_VALUE,
  GP_BY_CHANNEL,
  GP_BY_COPY
} gp_reason;

typedef struct gp_critical {
  int32_t device, position; /* the action, the first of joined ones */
  gp_reason reason;
  double begin, finish;
} gp_critical;

/* A schedule run with costs instead of devices. It borrows the schedule. */
typedef struct gp_simulation gp_simulation;

/* Run a schedule with costs: each device runs its list in order; an action begins when its
 * device is free and its inputs have arrived; joined actions begin and end together; empty cells
 * take no time. Cost: linear in the number of actions; 16 bytes each stay. Errors: GP_ERANGE for
 * a cost that is negative or no number; GP_ESCHEDULE where devices wait for each other, as with
 * channels too small. */
gp_status gp_simulation_new(const gp_schedule *schedule, const gp_costs *costs,
                            gp_simulation **simulation);
void gp_simulation_free(gp_simulation *simulation);
/* Forget when each action began and ended: what is left is small. */
void gp_simulation_shed(gp_simulation *simulation);
/* Run a schedule `count` times with the noise of the costs, for the draws from noise->draw on, and
 * keep of each run only its end: ends[count] receives when the last device is done with its list
 * and with what `tails` adds behind it (per device; NULL: nothing). Errors: as
 * gp_simulation_new. */
gp_status gp_simulation_sample(const gp_schedule *schedule, const gp_costs *costs,
                               const double *tails, int count, double *ends);
/* The makespan goes from 0 to the end of the last action; the span is the longest time that one
 * device took from its first action to its last. */
double gp_simulation_makespan(const gp_simulation *simulation);
double gp_simulation_span(const gp_simulation *simulation);
const gp_device_load *gp_simulation_device(const gp_simulation *simulation, int device);
/* Begin and end of the actions of a device, in the order of gp_schedule_get. */
/* NULL: they were shed. */
void gp_simulation_times(const gp_simulation *simulation, int device, const double **begin,
                         const double **finish);
/* Actions from the start to the end of the step that no other could have shortened alone. */
const gp_critical *gp_simulation_critical(const gp_simulation *simulation, int *count);

#endif
