/* engine/state/run.h - what the workers run: a stream of mini-batches, most often of one; and how
 * it fails (failure.c). */
#ifndef GP_ENGINE_STATE_RUN_H
#define GP_ENGINE_STATE_RUN_H

#include <pthread.h>

#include "engine/state/binding.h"
#include "engine/state/spread.h"
#include "engine/state/worker.h"
#include "gpipe/run.h"

/* What the last stage leaves of a micro-batch: the sum of its losses, in their own dtype. */
typedef union gp_micro_result {
  float f32;
  double f64;
} gp_micro_result;

/* A tensor of a whole mini-batch: micro-batches are ranges of its rows. */
typedef struct gp_rows {
  gp_tensor *tensor; /* NULL: there is none */
  char *data;
  size_t row_bytes;
} gp_rows;

/* A mini-batch that was given to the workers. */
typedef struct gp_minibatch {
  gp_rows inputs[GP_MAX_BATCH_TENSORS], targets[GP_MAX_BATCH_TENSORS]; /* retained */
  int input_count, target_count;
  gp_rows outputs[GP_MAX_BATCH_TENSORS], out_grads[GP_MAX_BATCH_TENSORS]; /* borrowed */
  gp_rows input_grads[GP_MAX_BATCH_TENSORS];                              /* borrowed */
  bool accumulate;          /* its tasks add to the gradients that are there */
  bool apart;               /* its devices do so behind their tasks (update/earlier.h) */
  gp_step_block *blocks;    /* per copy and micro-batch */
  gp_micro_result *results; /* per micro-batch */
  int64_t *counts; /* per copy and micro-batch: each device with the last stage counts for itself */
  int64_t *rows;   /* per micro-batch: its first row in the tensors */
  gp_optim_hyper *hyper; /* per group of the attached optimizer */
} gp_minibatch;

/* What a run has done to a copy of a stage; written by its device, which updates what it owns. */
typedef struct gp_stage_run {
  int64_t updates;     /* including the skipped ones */
  int64_t skipped;     /* updates that were skipped because the gradients were not finite */
  _Atomic int32_t row; /* skipped one after the other until now, in this run and those before */
  bool torn;           /* an update stopped half-way */
} gp_stage_run;

/* A stream of mini-batches that the workers are running: one, for most schedules. */
struct gp_run {
  gp_binding *binding;
  const gp_plan *plan;   /* the binding's */
  gp_minibatch *batches; /* ring: mini-batch t is batches[t % batch_room] */
  gp_stage_run *stages;  /* per stage and copy */
  int32_t batch_room, batch_micros, batch_groups; /* room of the ring and of each batch */
  bool backward_half;
  _Atomic bool open;            /* more may be given; a lost run closes it while workers read it */
  bool prepared;                /* P has nothing to do */
  uint64_t weights;             /* their state when the run began: prepared.c */
  uint32_t given;               /* mini-batches given to step */
  int64_t known, told;          /* losses that are known; those of them that the script has taken */
  uint32_t first_step;          /* the pipeline's step counter when the stream began */
  int64_t first_update;         /* updates of the optimizer before the run */
  _Atomic uint32_t gate;        /* mini-batches that may be run; GP_GATE_END: no more will come */
  _Atomic int64_t failed_order; /* INT64_MAX: none */
  bool committed; /* under the lock: stages are being updated, so an interrupt has to wait */
  int64_t spoilt; /* under the lock: first mini-batch that is wrong on a GPU; INT64_MAX: none */
  pthread_mutex_t failure_lock;
  gp_status status;
  char text[512];
  int32_t failed_by; /* the rank that the failure comes from */
  gp_spread *spread; /* the pipeline's; NULL: one process has all of it */
  /* Workers write this while they run, and read what is above before every task: so this has a
   * cache line of its own. It counts what the script's thread may be waiting for. */
  _Alignas(64) _Atomic uint32_t progress;
};

enum { GP_GATE_END = 1u << 30 };

/* A task as it runs for one micro-batch. */
typedef struct gp_task_run {
  const gp_task *task;
  int64_t order;       /* of all tasks of the stream */
  gp_minibatch *batch; /* the mini-batch that the micro-batch belongs to */
  int64_t micro, own;  /* the micro-batch, counted through the stream and in its mini-batch */
  /* Set by gp_frame_bind: addresses of the device. fault NULL: kernels report errors at once. */
  const gp_step_block *block;
  gp_lane_fault *fault;
  /* Set if the task is in a segment. ran: its ops have run before, with these addresses. first: it
   * is the segment's first task. graph: does the work of all tasks of the segment, and the first
   * one launches it; NULL: each task does its own work. */
  bool ran, first;
  gp_lane_graph *graph;
} gp_task_run;

/* Does the task write gradients that the mini-batch's other tasks add to? A mini-batch that
 * accumulates adds to the gradients, but its partial sums begin anew. */
static inline bool gp_task_assigns(const gp_task_run *r) {
  return r->task->opens && (!r->batch->accumulate || r->task->partial);
}

/* What kernels read for micro-batch i of a mini-batch, on a device with this copy of a stage. */
static inline gp_step_block *gp_minibatch_block(const gp_plan *plan, const gp_minibatch *batch,
                                                int64_t i, int32_t copy) {
  return &batch->blocks[copy * plan->step_micros + i];
}
/* What such a device has counted for the loss of micro-batch i. */
static inline int64_t *gp_minibatch_count(const gp_plan *plan, const gp_minibatch *batch, int64_t i,
                                          int32_t copy) {
  return &batch->counts[copy * plan->step_micros + i];
}
/* Mini-batch `step` of the stream; the one that a micro-batch of the stream belongs to. */
static inline gp_minibatch *gp_run_minibatch_at(const gp_run *run, int64_t step) {
  return &run->batches[step < run->batch_room ? step : step % run->batch_room];
}
static inline gp_minibatch *gp_run_minibatch(const gp_run *run, int64_t micro) {
  return gp_run_minibatch_at(run, micro / run->plan->step_micros);
}
/* Micro-batches of one mini-batch of the schedule: they have one loss, and an update follows
 * them. */
static inline int32_t gp_run_group(const gp_plan *plan) {
  return plan->batch ? plan->batch : plan->step_micros;
}

/* ---- failure ------------------------------------------------------------------------------- */

/* Tell the script's thread that the run has made progress. */
void gp_run_progress(gp_run *run);
static inline bool gp_run_failed(const gp_run *run) {
  return atomic_load(&((gp_run *)run)->failed_order) != INT64_MAX;
}
void gp_run_fail(gp_run *run, int64_t order, gp_status status, const char *text);
/* The same for a failure that another rank has told of, which tells no other rank. */
void gp_run_fail_from(gp_run *run, int32_t rank, int64_t order, gp_status status, const char *text);
/* Forget the failure of the run before. */
void gp_run_clear_failure(gp_run *run);
/* Ctrl-C: fail before the first task, unless stages may have been updated already: then every stage
 * goes on to the same update, and the script sees the interrupt afterwards. Returns whether the run
 * was stopped. */
bool gp_run_interrupt(gp_run *run);
/* Let all stages be updated from now on; returns false if the run has failed before. */
bool gp_run_commit(gp_run *run);
/* Note that a GPU's results are wrong from this mini-batch of the stream on; stages may already
 * have been updated with them. */
void gp_run_spoil(gp_run *run, int64_t group);

#endif
