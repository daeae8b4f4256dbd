/* engine/state/spread.h - a pipeline whose devices are driven by several ranks.
 *
 * Every rank has the whole pipeline, but only its own devices have workers and memory. During a run
 * they meet on links; a failure goes to all ranks at once, and when a run is over they agree on how
 * it ended (run/agree.c). */
#ifndef GP_ENGINE_STATE_SPREAD_H
#define GP_ENGINE_STATE_SPREAD_H

#include <stdatomic.h>

#include "base/bell.h"
#include "base/status.h"
#include "device/link/ranks/shared.h"
#include "gpipe/ranks.h"

typedef struct gp_run gp_run;
typedef struct gp_pipeline gp_pipeline;

enum { GP_SPREAD_TEXT = 512 };

/* A failure as it goes to the other ranks. */
typedef struct gp_far_failure {
  int64_t order; /* in the schedule; -1: before all tasks */
  int32_t status;
  int32_t gives_up; /* tasks pass through from now on: nothing more will be published */
  char text[GP_SPREAD_TEXT];
} gp_far_failure;

typedef struct gp_spread {
  int32_t own, count;    /* ranks */
  int32_t here_count;    /* devices of this rank */
  uint64_t port;         /* for failures */
  uint64_t plan_ports;   /* the first port number of the plan that is being made */
  gp_shared *bells;      /* per device of all ranks: its worker's; NULL: there is no such memory */
  gp_pipeline *pipeline; /* borrowed, as is its run */
  gp_run *run;
  gp_far_failure *in;       /* per rank: what is being received from it */
  char what[GP_RANKS_WHAT]; /* the run as it is compared with others: "step of 4 rows" */
  /* under the lock of ports */
  uint32_t runs;   /* begun by this rank */
  bool is_running; /* the last of them is not over */
  bool has_early;  /* another rank has failed in the next run already: */
  int32_t early_from;
  gp_far_failure early;
  /* another rank passes through its tasks, so this one has to as well: the script's thread sees
   * to it */
  _Atomic uint32_t gives_up;
  bool knows; /* time was over while a device of this rank was in an action */
  bool lost;  /* a rank is gone: every later run is refused */
  char why[GP_SPREAD_TEXT];
} gp_spread;

/* Open the port for failures; heartbeats tell from now on what a run does. Errors: GP_EDEVICE if a
 * rank is gone already. */
gp_status gp_spread_new(gp_pipeline *pipeline, gp_spread **spread);
void gp_spread_free(gp_spread *spread); /* NULL is fine */

/* The bell of a device's worker, in memory that ranks of this host reach; NULL: there is none. */
gp_bell *gp_spread_bell(const gp_spread *spread, int32_t device);

/* Is a rank gone, or has one gone another way? Then the text says why; it stays. */
const char *gp_spread_lost(gp_spread *spread); /* NULL: no */
void gp_spread_lose(gp_spread *spread, const char *why);

/* Begin a run, and end it when this rank's workers are done. */
void gp_spread_begin(gp_spread *spread);
/* Let the other ranks know which run this is, until its end: "step", say. */
void gp_spread_note(gp_spread *spread, const char *kind);
void gp_spread_end(gp_spread *spread);
/* Copy the text of the run's failure, and return its status: another rank may bring an earlier one
 * meanwhile. */
gp_status gp_spread_failure(gp_spread *spread, char text[GP_SPREAD_TEXT]);
/* Let the failure be this rank's, which knows the cause. */
void gp_spread_blame(gp_spread *spread, const char *text);
/* Tell the other ranks that this one has failed. */
void gp_spread_tell(gp_spread *spread, const gp_far_failure *failure);

#endif
