/* bindings/cli/launch/job.h - the ranks of a job that this launcher starts and watches over. */
#ifndef GP_BINDINGS_LAUNCH_JOB_H
#define GP_BINDINGS_LAUNCH_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/cli.h"
#include "cli/launch/relay.h"

enum { GP_LAUNCH_TICK_MS = 100 }; /* how often it looks after them */

typedef struct gp_launch_rank {
  pid_t id;
  bool over, stopped;
  bool goes_on; /* it has said that the job can, from a checkpoint */
  int code;     /* exit code, or 128 + signal */
  int64_t ended_at;
  gp_relay relay;
} gp_launch_rank;

typedef struct gp_launch_job {
  gp_launch_rank *ranks;
  int count, left;
  int first, total;              /* the first one's number in the job, and how many that has */
  int first_failed;              /* rank; -1: none */
  int signals;                   /* signalfd */
  int notes[2];                  /* sockets: what ranks write to the second one is read here */
  int64_t failed_at, stopped_at; /* milliseconds; 0: not yet */
  char folder[64], key[33];
  bool shows;
  bool prompts; /* there is no script */
  bool stops;   /* a signal was passed on, which ends the ranks */
  int said;     /* said.h */
} gp_launch_job;

/* Rank 0 of the job has this terminal; the output of the others is read here. */
static inline bool gp_launch_has_relay(const gp_launch_job *j, int r) { return j->first + r > 0; }

/* ---- start.c -------------------------------------------------------------------------------- */

/* Make what the ranks meet with: sockets, their folder and key. False: it has said why not. */
bool gp_launch_open(gp_launch_job *job, const gp_options *options);
void gp_launch_close(const gp_launch_job *job);
/* False: it has said why not. */
bool gp_launch_start(gp_launch_job *job, int rank, char **argv);

/* ---- watch.c -------------------------------------------------------------------------------- */

void gp_launch_send(const gp_launch_job *job, int signal); /* to all that are left */
/* Wait until all have ended. */
void gp_launch_watch(gp_launch_job *job);

#endif
