/* engine/pipeline.h - the running pipeline: one worker per device, one endless list of tasks.
 *
 *   pipeline.c   parameters in stage arenas, workers started and stopped, plans attached
 *   bind.c       a plan joined with its memory (binding.h)
 *   arena.c      where the parameters, gradients and buffers of a stage lie
 *   worker.c     threads, tickets, waiting for slots
 *   arguments.c  whether what a run is given is what its plan was made for
 *   feed.c       mini-batches given to the workers: one and wait, or one after another
 *   run.c        the loop over tasks
 *   frame.c      the addresses that a task works on
 *   execute.c    one program on one device
 *   update/      what ends a mini-batch: sums, norms, scales and updates of gradients
 *   optimizer/   moments and passes of an optimizer, and clipping by the script
 *   edge.h       what a task does for its edges, by their links
 *   intake/      how a device gets at mini-batches
 *   replicas.h   values of elsewhere that a stage reads in copies
 *   marks.h      when tasks of a queue ran
 *   finish.c     losses, buffers, failures
 *   prepared.c   what depends on the weights alone is made once per change of them
 *   unchanged.c  what backward reads again is what forward read
 *   watchdog.c   runs that make no progress: released, given up, or lost
 *   report.c     what every device does, for people
 *   record.c     what ran when, and what it came to
 */
#ifndef GP_ENGINE_PIPELINE_H
#define GP_ENGINE_PIPELINE_H

#include <pthread.h>
#include <stdatomic.h>

#include "device/lane.h"
#include "engine/bind/binding.h"
#include "engine/watch/fault.h"
#include "engine/watch/watchdog.h"
#include "gpipe/run.h"
#include "optim/gradients.h"

typedef struct gp_worker gp_worker;
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
  char *scratch;        /* per team member */
  size_t scratch_bytes; /* of one member */
  size_t frame_room, event_room;
  gp_event *events; /* ring of the last event_room ones of the stream */
  _Atomic size_t event_count;
  gp_lane_event *
      *marks; /* of a queue: begin and end of each event of the ring, the begin of the range */
  size_t mark_count;
  int64_t range_begin;          /* when that was, in nanoseconds of CLOCK_MONOTONIC */
  size_t first_event;           /* of those that are shown */
  _Atomic uint32_t phase;       /* gp_worker_phase */
  _Atomic uint32_t barriers;    /* that this device has come to in this run */
  bool spoil;                   /* GPIPE_FAULT: what leaves the task is to be NaN */
  _Atomic uint32_t ranges_done; /* mini-batches whose range this device is through with */
  gp_status job_status;
  char job_text[512];
  _Alignas(64) _Atomic uint32_t doorbell; /* counts events that this worker may be waiting for */
  _Atomic uint32_t sleeping;
};

/* Contiguous memory of the parameters of one stage. Counted: a script may hold a value or a
 * gradient longer than the pipeline lives. */
typedef struct gp_arena {
  gp_tensor *value_memory, *grad_memory, *buffer_memory; /* bytes; NULL where there are none */
  /* Where they begin, per copy of the stage. Copies whose devices share memory share values and
   * buffers; each has gradients of its own. */
  char *values[2], *grads[2], *buffers[2];
  char *committed; /* buffers as they were before the run; with the first copy */
  char *extras[2]; /* per copy: accumulators beside the main ones */
  char *packed; /* weights in the order that products want (graph/pack.c); all plans share them */
  gp_gradients gradients; /* of the first copy: of the parameters that have some */
  /* Where the first copy's device takes in the second's gradients and extras; NULL where it reads
   * them. */
  char *landing, *extra_landing;
  size_t value_bytes, grad_bytes, buffer_bytes, extra_bytes, packed_bytes;
  int64_t updates;     /* of this run, the ones left out included; by the device that makes them */
  int64_t skipped;     /* of these left out, because the gradients were not finite */
  _Atomic int32_t row; /* left out one after the other until now, where the stage decides alone */
  bool torn;           /* one of them stopped half-way */
} gp_arena;

/* Accumulator of (param, layer) beside the main one, in the arena of the layer's stage: those of
 * the layout. */
typedef struct gp_extra_slot {
  int32_t param, layer, stage;
  size_t offset;
  void *landing; /* where the owner's device takes it in; NULL where it can read it */
} gp_extra_slot;

/* What the last stage leaves of a micro-batch: the sum of its losses in its own dtype, and what it
 * counts for; where two devices hold the last stage, each counts for itself. */
typedef struct gp_micro_result {
  union {
    float f32;
    double f64;
  } loss;
  int64_t count[2];
} gp_micro_result;

/* A mini-batch that was given to the workers. */
typedef struct gp_feed {
  gp_tensor *inputs[GP_MAX_BATCH_TENSORS], *targets[GP_MAX_BATCH_TENSORS]; /* retained in streams */
  int input_count, target_count;
  gp_tensor *output, *out_grad;
  bool accumulate;
  gp_step_block *blocks;    /* per copy and micro-batch */
  gp_micro_result *results; /* per micro-batch */
  int64_t *rows;            /* per micro-batch: its first row in the tensors */
  gp_optim_hyper *hyper;    /* per group of the attached optimizer */
} gp_feed;

/* What kernels read for micro-batch i of the feed, on a device with this copy of a stage. */
static inline gp_step_block *gp_feed_block(const gp_plan *plan, const gp_feed *feed, int64_t i,
                                           int32_t copy) {
  return &feed->blocks[copy * plan->step_micros + i];
}

/* A stream of mini-batches that the workers are running: one, for most schedules. */
typedef struct gp_run {
  gp_binding *binding;
  const gp_plan *plan;                         /* the binding's */
  gp_feed *feeds;                              /* ring: mini-batch t is feeds[t % feed_room] */
  int32_t feed_room, feed_micros, feed_groups; /* room of the ring and of each feed */
  bool backward_half, open;                    /* open: more may be fed */
  bool prepared;                               /* P has nothing to do */
  uint64_t weights;                            /* their state when the run began: prepared.c */
  uint32_t fed;                                /* mini-batches given to step */
  int64_t known, told;                         /* losses that are known, and that the script took */
  uint32_t first_step;    /* the pipeline's step counter when the stream began */
  int64_t first_update;   /* updates of the optimizer before */
  _Atomic uint32_t gate;  /* mini-batches that may be run; GP_GATE_END: no more will come */
  _Atomic int64_t losses; /* forward passes of the last stage so far */
  _Atomic uint32_t arrived, released; /* at barriers; barriers that are over */
  _Atomic uint32_t progress;          /* counts what the script's thread may be waiting for */
  _Atomic int64_t failed_order;       /* INT64_MAX: none */
  bool committed; /* under the lock: stages are being updated, so an interrupt has to wait */
  int64_t spoilt; /* under the lock: mini-batch whose failure a GPU told late; INT64_MAX: none */
  pthread_mutex_t failure_lock;
  gp_status status;
  char text[512];
} gp_run;

enum { GP_GATE_END = 1u << 30 };

/* How often everything that backward reads again had been written to when forward read it. */
typedef struct gp_seen {
  uint64_t *params, inputs[GP_MAX_BATCH_TENSORS]; /* params: per parameter of the pipeline */
  uint64_t updates;
} gp_seen;

/* Updates that were left out, because gradients were not finite; `row`: one after the other until
 * now. */
enum { GP_SKIPS_MOST = 20 };
typedef struct gp_skips {
  int64_t total;
  int32_t row;
} gp_skips;

/* What the norms of all stages say of a step: factors for its gradients, one after the other. */
typedef struct gp_verdict {
  double unscale, clip; /* 1: none */
} gp_verdict;

struct gp_pipeline {
  int32_t stage_count, layer_count, device_count, param_count, copy_count;
  int32_t *stage_of;  /* per layer, and one for the loss */
  int32_t *placement; /* per stage and copy: its device */
  gp_layout layout;   /* where parameters lie, and what plans have asked for */
  gp_param **params;
  int32_t *param_stage, *main_layer; /* per param; main_layer -1: not traced yet */
  size_t *param_offset;              /* per param: in the arena's values or buffers */
  int32_t *grad_place;               /* per param: in its arena's list of gradients; -1: none */
  gp_tensor **values, **grads;       /* per param; grads NULL for frozen ones and buffers */
  gp_arena *arenas;                  /* per stage */
  gp_extra_slot *extras;
  int32_t extra_count;
  gp_remat remat;
  uint64_t seed;
  uint32_t step, split_step;
  uint64_t updates;                        /* of its parameters, by whatever optimizer */
  gp_seen seen;                            /* by the last forward half */
  bool finite, fuse, closed, spin, broken; /* broken: some stages were updated and others not */
  gp_loss_scale scaling;                   /* scale 0: none */
  gp_finite check; /* of gradients before an update; `finite`: of every value */
  gp_skips skips;
  gp_verdict verdict;
  /* The gradients that are there are not finite, so that nobody is updated; resumed: they were
   * added to. */
  bool overflow, resumed;
  gp_faults faults;
  gp_watch watch;
  gp_optimizer *optimizer; /* attached: updates are actions of the schedule; counted */
  gp_use_options use;
  int32_t *listed; /* its parameters among those of the pipeline, in the order given */
  int32_t listed_count;
  gp_worker *workers;
  gp_job job;
  void *job_context;
  _Atomic uint32_t ticket, finished, quit;
  gp_run run;
  const gp_lane_ops *pinning; /* whose host_alloc the devices of the host's memory use; NULL */
  gp_plan_device_spec *device_specs; /* per device: as plans see it */
  gp_binding **bindings;             /* owned: one per plan */
  int32_t binding_count;
  const gp_plan *last_plan; /* whose run the events describe; NULL after it was freed */
  int64_t last_begin, last_end;
};

/* The lane that a stage, or its second copy, lies with. */
static inline const gp_lane *gp_stage_lane(const gp_pipeline *p, int32_t stage, int32_t copy) {
  return &p->workers[p->placement[stage * p->copy_count + copy]].lane;
}

/* arena.c */
gp_status gp_arenas_new(gp_pipeline *pipeline);
void gp_arenas_free(gp_pipeline *pipeline);
/* Memory for what plans have asked for since: extra accumulators and packed weights. On failure
 * what was there stays. */
gp_status gp_arenas_grow(gp_pipeline *pipeline);

/* worker.c */
/* Open the lanes; then, when the arenas are there, start the threads. */
gp_status gp_workers_new(gp_pipeline *pipeline, const gp_device_spec *devices);
gp_status gp_workers_start(gp_pipeline *pipeline);
void gp_workers_stop(
    gp_pipeline *pipeline); /* the threads; then, when their memory is free, the lanes */
void gp_workers_free(gp_pipeline *pipeline);
/* Run job on every worker and wait; the status is that of the lowest device that failed. */
gp_status gp_workers_run(gp_pipeline *pipeline, gp_job job, void *context);
/* The two halves of it. */
void gp_workers_begin(gp_pipeline *pipeline, gp_job job, void *context);
gp_status gp_workers_join(gp_pipeline *pipeline);
/* Room for a plan's frames, scratch and events. */
gp_status gp_workers_prepare(gp_pipeline *pipeline, const gp_plan *plan);
/* Stop without waiting for workers that do not come back: what they use is never given back. */
void gp_workers_abandon(gp_pipeline *pipeline);
/* Ask until the answer is yes, or it fails, or the run is given up: ready is false then. */
typedef gp_status (*gp_worker_question)(void *context, bool *ready);
gp_status gp_worker_try(gp_worker *worker, gp_worker_question ask, void *context, bool *ready);
/* Wait until *word >= wanted; false where the run is given up. */
bool gp_worker_await(gp_worker *worker, _Atomic uint32_t *word, uint32_t wanted);
void gp_worker_ring(gp_worker *worker);

/* record.c */
/* What a task does, as people write it. micro: through the stream. */
gp_action gp_task_action(const gp_plan *plan, const gp_task *task, int64_t micro);

/* report.c */
/* Write what every device does now, and why; returns text. */
char *gp_report_write(gp_pipeline *pipeline, char *text, size_t size);
/* One line of it: what holds everything up. */
char *gp_report_cause(gp_pipeline *pipeline, char *text, size_t size);

/* pipeline.c */
gp_binding *gp_pipeline_binding(const gp_pipeline *pipeline, const gp_plan *plan); /* NULL: none */
/* Memory of a lane, zeroed. What lies in the host's memory is taken from the lanes that copy from
 * there, where the pipeline has such: copies then hold nobody up. */
bool gp_pipeline_pins(const gp_pipeline *pipeline, const gp_lane *lane);
gp_status gp_pipeline_take(const gp_pipeline *pipeline, const gp_lane *lane, size_t bytes,
                           void **memory);
/* Count bytes that the device holds for passes, or no longer holds. */
void gp_worker_count(gp_worker *worker, size_t bytes, bool more);
void gp_pipeline_give(const gp_pipeline *pipeline, const gp_lane *lane, void *memory, size_t bytes);

/* arguments.c: dtypes, shapes and numbers of tensors. Errors: GP_EINVAL; GP_ESHAPE. */
gp_status gp_run_check_args(const gp_plan *plan, const gp_run_args *args);

/* feed.c */
gp_status gp_feeds_prepare(gp_pipeline *pipeline, const gp_plan *plan);
void gp_feeds_free(gp_pipeline *pipeline);
/* Micro-batches of one mini-batch of the schedule: what a loss is of and an update follows. */
static inline int32_t gp_run_group(const gp_plan *plan) {
  return plan->batch ? plan->batch : plan->step_micros;
}
/* Tell the script's thread that something went on. */
void gp_run_progress(gp_run *run);

/* record.c: a run is over; what it shows of itself */
void gp_record_close(gp_pipeline *pipeline);

/* A task as it runs for one micro-batch. */
typedef struct gp_task_run {
  const gp_task *task;
  gp_feed *feed;      /* the mini-batch that the micro-batch belongs to */
  int64_t micro, own; /* counted through the stream, and in the mini-batch */
  /* Set by gp_frame_bind, as addresses of the device. fault NULL: what is wrong is told at once. */
  const gp_step_block *block;
  gp_lane_fault *fault;
} gp_task_run;

/* frame.c: fill in the worker's frame. */
void gp_frame_bind(gp_worker *worker, gp_task_run *r);

/* run.c */
gp_status gp_run_device(gp_worker *worker, void *run);

/* prepared.c: of a run without updates and streams, not of a backward half */
void gp_prepared_begin(gp_pipeline *pipeline);
void gp_prepared_end(gp_pipeline *pipeline);

/* unchanged.c: of the forward half; before the backward half. Errors: GP_ESTATE. */
void gp_unchanged_note(gp_pipeline *pipeline, const gp_run_args *args);
gp_status gp_unchanged_check(const gp_pipeline *pipeline, const gp_run_args *args);

/* The mini-batch that a micro-batch of the stream belongs to. */
static inline gp_feed *gp_run_feed(const gp_run *run, int64_t micro) {
  return &run->feeds[micro / run->plan->step_micros % run->feed_room];
}
/* Count a forward pass of the last stage: the script may be waiting for its loss. */
void gp_run_note_loss(gp_run *run, const gp_task *task);
static inline bool gp_run_failed(const gp_run *run) {
  return atomic_load(&((gp_run *)run)->failed_order) != INT64_MAX;
}

/* finish.c */
gp_status gp_run_save_buffers(gp_pipeline *pipeline);
void gp_run_finish(gp_pipeline *pipeline);
void gp_run_fail(gp_run *run, int64_t order, gp_status status, const char *text);
/* Ctrl-C: fail before the first task, unless stages may have been updated already: then every stage
 * goes on to the same update, and the script sees the interrupt afterwards. Returns whether the run
 * was stopped. */
bool gp_run_interrupt(gp_run *run);
/* From now on all stages are updated; false where the run has failed before. */
bool gp_run_commit(gp_run *run);
/* What a GPU did in a mini-batch of the stream and later was wrong; it may have been updated with
 * already. */
void gp_run_spoil(gp_run *run, int64_t group);
/* The loss of the group-th mini-batch of the stream, and what it was divided by. */
double gp_run_loss(const gp_run *run, int64_t group, int64_t *count);

#endif
