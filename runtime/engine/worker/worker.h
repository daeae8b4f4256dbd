/* engine/worker/worker.h - the thread that drives one device: what it holds, how it is given jobs,
 * how it waits. */
#ifndef GP_ENGINE_WORKER_H
#define GP_ENGINE_WORKER_H

#include <pthread.h>
#include <stdatomic.h>

#include "device/lane.h"
#include "gpipe/plan.h"

typedef struct gp_worker gp_worker;
typedef struct gp_recorder gp_recorder; /* engine/profile/recorder.h */
typedef gp_status (*gp_job)(gp_worker *worker, void *context);

/* When a task ran, in nanoseconds of CLOCK_MONOTONIC. The one behind the last complete event is
 * what the worker does now: begin 0 while it waits, end 0 until it is over. Written relaxed,
 * because the script's thread looks at them when a run makes no progress. */
typedef struct gp_event {
  _Atomic int32_t task;
  _Atomic int64_t micro, wait, begin, end; /* wait: when it began to wait for its inputs */
} gp_event;

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
  gp_lane lane;
  int threads, first_core;  /* of its team */
  size_t taken, most_taken; /* bytes that the device holds for passes: now, and at most so far */
  pthread_t thread;
  bool started;
  void **frame;         /* one address per base of the plan that runs */
  int32_t framed;       /* stage whose own weights the frame shows */
  char *scratch;        /* per team member */
  size_t scratch_bytes; /* of one member */
  size_t frame_room, event_room;
  gp_event *events; /* ring of the last event_room ones of the stream */
  _Atomic size_t event_count;
  /* Of a queue: begin and end of each event of the ring, the begin of the range. */
  gp_lane_event **marks;
  size_t mark_count;
  int64_t range_begin;          /* when that was, in nanoseconds of CLOCK_MONOTONIC */
  size_t first_event;           /* of those that are shown */
  _Atomic uint32_t phase;       /* gp_worker_phase */
  gp_recorder *recorder;        /* of a profile, also when it is over; NULL */
  bool spoil;                   /* GPIPE_FAULT: what leaves the task is to be NaN */
  _Atomic uint32_t ranges_done; /* mini-batches whose range this device is through with */
  gp_status job_status;
  char job_text[512];
  _Alignas(64) _Atomic uint32_t doorbell; /* counts the rings while it slept */
  _Atomic uint32_t sleeping;
};

/* ---- life ---------------------------------------------------------------------------------- */

/* Open the lanes; then, when the arenas are there, start the threads. */
gp_status gp_workers_new(gp_pipeline *pipeline, const gp_device_spec *devices);
gp_status gp_workers_start(gp_pipeline *pipeline);
/* Stop the threads; then, when their memory is free, close the lanes. */
void gp_workers_stop(gp_pipeline *pipeline);
void gp_workers_free(gp_pipeline *pipeline);
/* Stop without waiting for workers that do not come back: what they use is never given back. */
void gp_workers_abandon(gp_pipeline *pipeline);
/* Make room for a plan's frames, scratch and events. */
gp_status gp_workers_prepare(gp_pipeline *pipeline, const gp_plan *plan);
/* Count bytes that the device holds for passes, or no longer holds. */
void gp_worker_count(gp_worker *worker, size_t bytes, bool more);

/* ---- jobs and waiting ------------------------------------------------------------------------ */

/* Run job on every worker and wait; the status is that of the lowest device that failed. */
gp_status gp_workers_run(gp_pipeline *pipeline, gp_job job, void *context);
/* The two halves of it. */
void gp_workers_begin(gp_pipeline *pipeline, gp_job job, void *context);
gp_status gp_workers_join(gp_pipeline *pipeline);
/* Ask until the answer is yes, or it fails, or the run is given up: ready is false then. */
typedef gp_status (*gp_worker_question)(void *context, bool *ready);
gp_status gp_worker_try(gp_worker *worker, gp_worker_question ask, void *context, bool *ready);
/* Wait until *word >= wanted; false where the run is given up. */
bool gp_worker_await(gp_worker *worker, _Atomic uint32_t *word, uint32_t wanted);
/* Wake a worker that may be waiting for what has just changed: by a sequentially consistent
 * write. */
void gp_worker_ring(gp_worker *worker);

#endif
