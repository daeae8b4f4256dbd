/* bindings/cli/launch/job.h - the ranks of a job that this launcher starts and watches over. */
#ifndef GP_BINDINGS_LAUNCH_JOB_H
#define GP_BINDINGS_LAUNCH_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/cli.h"
#include "cli/launch/folder.h"
#include "cli/launch/relay.h"

enum { GP_LAUNCH_TICK_MS = 100 }; /* how often it looks after them */

typedef struct gp_launch_rank {
  pid_t id;
  bool runs;     /* it was started, and has not ended */
  bool stopped;  /* by SIGSTOP or the like */
  bool given_up; /* it was stopped, and the launcher has killed it */
  bool goes_on;  /* it has said that the job can, from a checkpoint */
  int code;      /* exit code, or 128 + signal; GP_EXIT_ERROR if it was given up */
  int64_t ended_at;
  gp_relay relay;
} gp_launch_rank;

typedef struct gp_launch_job {
  gp_launch_rank *ranks;
  int count, left;
  int first, total;            /* the first one's number in the job, and how many that has */
  int first_failed;            /* rank; -1: none */
  int signals;                 /* signalfd */
  int notes[2];                /* sockets: what ranks write to the second one is read here */
  struct pollfd *fds;          /* signals, then two for each rank */
  int64_t failed_at, asked_at; /* milliseconds; 0: not yet. asked: those that go on, to end */
  int64_t stuck_at;            /* since when all that are left are stopped; 0: they are not */
  int64_t stopping_at;         /* when the last signal that ends the ranks was passed on */
  int stops;                   /* how many were */
  int stop_signal;             /* the last of them */
  int held;                    /* folder.h: the folder */
  char folder[GP_LAUNCH_FOLDER], key[33];
  bool shows;
  bool prompts;     /* there is no script */
  bool interactive; /* Ctrl-C ends what was typed, not the job */
  int said;         /* said.h */
} gp_launch_job;

/* Rank 0 of the job has this terminal; the output of the others is read here. */
static inline bool gp_launch_has_relay(const gp_launch_job *j, int r) { return j->first + r > 0; }

/* ---- start.c -------------------------------------------------------------------------------- */

/* Make room for the ranks, and what they meet with: sockets, their folder and key. False: it has
 * said why not. gp_launch_close comes after both. */
bool gp_launch_open(gp_launch_job *job, const gp_options *options);
void gp_launch_close(gp_launch_job *job);
/* False: it has said why not. */
bool gp_launch_start(gp_launch_job *job, int rank, char **argv);

/* ---- watch.c -------------------------------------------------------------------------------- */

void gp_launch_send(const gp_launch_job *job, int signal); /* to all that run */
/* Wait until all have ended. */
void gp_launch_watch(gp_launch_job *job);

#endif
