/* engine/state/worker.h - the thread that drives one device: what it holds. */
#ifndef GP_ENGINE_STATE_WORKER_H
#define GP_ENGINE_STATE_WORKER_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/bell.h"
#include "device/lane.h"
#include "gpipe/plan.h"

typedef struct gp_worker gp_worker;
typedef struct gp_recorder gp_recorder; /* engine/profile/recorder.h */
typedef gp_status (*gp_job)(gp_worker *worker, void *context);

/* When a task ran, in nanoseconds of CLOCK_MONOTONIC. The event after the last complete one is what
 * the worker does now: its begin is 0 while it waits, its end is 0 until it is over. Stores are
 * atomic but relaxed: the script's thread reads the events when a run makes no progress. */
typedef struct gp_event {
  _Atomic int32_t task;
  _Atomic int64_t micro, wait, begin, end; /* wait: when it began to wait for its inputs */
} gp_event;

/* Nanoseconds after which a waiting thread looks again. A wake-up comes earlier; a lost one costs a
 * tenth of a second, not a hang. */
enum { GP_WAIT_NS = 100000000 };

/* Where a worker is in a run. */
typedef enum gp_worker_phase {
  GP_WORKER_STARTS,
  GP_WORKER_AT_GATE, /* waits for the next mini-batch */
  GP_WORKER_IN_RANGE,
  GP_WORKER_DONE
} gp_worker_phase;

struct gp_worker {
  gp_pipeline *pipeline;
  int32_t device;
  bool far; /* another rank drives the device: there is no thread here, and no memory */
  gp_lane lane;
  int threads, first_core;   /* of its team */
  size_t taken, most_taken;  /* bytes that the device holds for passes: now, and at most so far */
  size_t on_host;            /* bytes of the host's memory that hold what it has saved */
  double far_busy, far_span; /* of a far device in the last run, as its rank has said */
  /* Called while the worker waits: does what must not wait for the worker, and returns how long it
   * may sleep, in nanoseconds. NULL: there is nothing to do. */
  int64_t (*idle)(gp_worker *worker);
  pthread_t thread;
  bool started;
  void **frame;         /* one address per base of the plan that runs */
  int32_t framed;       /* stage whose own weights the frame shows */
  char *scratch;        /* per team member */
  size_t scratch_bytes; /* of one member */
  size_t frame_room, event_room;
  gp_event *events; /* ring of the last event_room ones of the stream */
  _Atomic size_t event_count;
  /* On a device with a queue: two timed events for each event of the ring, its begin and its end,
   * then one for the begin of the range. */
  gp_lane_event **marks;
  size_t mark_count;
  int64_t range_begin;     /* when that was, in nanoseconds of CLOCK_MONOTONIC */
  size_t first_event;      /* the first one that is shown */
  _Atomic uint32_t phase;  /* gp_worker_phase */
  gp_recorder *recorder;   /* of the last profile, also after its end; or NULL */
  int32_t early;           /* early uses of the task that are published while its program runs */
  int32_t gathered;        /* gathers of the running task that it is through with */
  _Atomic int32_t awaited; /* number + 1 of the replica that it waits for in one; 0: none */
  bool broken;             /* that task has stopped because of another one's failure */
  bool spoil;              /* GPIPE_FAULT: the task's results are to be NaN */
  _Atomic uint32_t ranges_done; /* mini-batches whose range this device has run */
  _Atomic int64_t losses;       /* in a stream: its forward passes of the last stage so far */
  gp_status job_status;
  char job_text[512];
  gp_bell *bell; /* what it sleeps on: its own, or one that other ranks of this host reach */
  gp_bell own_bell;
};

#endif
