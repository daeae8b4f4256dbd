/* engine/run/run.h - what the workers run: a stream of mini-batches, most often of one.
 *
 *   minibatch.c   the ring of mini-batches under way
 *   stream.c      mini-batches given to the workers: one and wait, or one after another
 *   run.c         the loop over tasks
 *   segment.h     tasks that are launched together, as one graph
 *   finish.c      failures while it runs; losses, buffers and counters when it is over
 *   arguments.h   whether what a run is given is what its plan was made for
 *   weights.h     what a run may take over from the one before
 *   frame.h       the addresses that a task works on
 *   edge.h        what a task does for its edges
 *   execute.h     one program on one device */
#ifndef GP_ENGINE_RUN_H
#define GP_ENGINE_RUN_H

#include <pthread.h>

#include "engine/bind/binding.h"
#include "engine/worker/worker.h"
#include "gpipe/run.h"

/* What the last stage leaves of a micro-batch: the sum of its losses in its own dtype, and what it
 * counts for; where two devices hold the last stage, each counts for itself. */
typedef struct gp_micro_result {
  union {
    float f32;
    double f64;
  } loss;
  int64_t count[2];
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
  bool accumulate;
  gp_step_block *blocks;    /* per copy and micro-batch */
  gp_micro_result *results; /* per micro-batch */
  int64_t *rows;            /* per micro-batch: its first row in the tensors */
  gp_optim_hyper *hyper;    /* per group of the attached optimizer */
} gp_minibatch;

/* A stream of mini-batches that the workers are running: one, for most schedules. */
typedef struct gp_run {
  gp_binding *binding;
  const gp_plan *plan;   /* the binding's */
  gp_minibatch *batches; /* ring: mini-batch t is batches[t % batch_room] */
  int32_t batch_room, batch_micros, batch_groups; /* room of the ring and of each batch */
  bool backward_half;
  _Atomic bool open;     /* more may be given; a run that is lost closes it while workers ask */
  bool prepared;         /* P has nothing to do */
  uint64_t weights;      /* their state when the run began: prepared.c */
  uint32_t given;        /* mini-batches given to step */
  int64_t known, told;   /* losses that are known, and that the script took */
  uint32_t first_step;   /* the pipeline's step counter when the stream began */
  int64_t first_update;  /* updates of the optimizer before */
  _Atomic uint32_t gate; /* mini-batches that may be run; GP_GATE_END: no more will come */
  _Atomic int64_t failed_order; /* INT64_MAX: none */
  bool committed; /* under the lock: stages are being updated, so an interrupt has to wait */
  int64_t spoilt; /* under the lock: mini-batch whose failure a GPU told late; INT64_MAX: none */
  pthread_mutex_t failure_lock;
  gp_status status;
  char text[512];
  /* Workers write here while they run, and read what is above before every task: so this has a
   * cache line of its own. */
  _Alignas(64) _Atomic int64_t losses; /* of a stream: forward passes of the last stage so far */
  _Atomic uint32_t progress;           /* counts what the script's thread may be waiting for */
} gp_run;

enum { GP_GATE_END = 1u << 30 };

/* A task as it runs for one micro-batch. */
typedef struct gp_task_run {
  const gp_task *task;
  int64_t order;       /* of all tasks of the stream */
  gp_minibatch *batch; /* the mini-batch that the micro-batch belongs to */
  int64_t micro, own;  /* counted through the stream, and in the mini-batch */
  /* Set by gp_frame_bind, as addresses of the device. fault NULL: what is wrong is told at once. */
  const gp_step_block *block;
  gp_lane_fault *fault;
  /* Set where the task is in a segment. ran: its ops have run before, with these addresses. graph:
   * does the work of all tasks of the segment, launched by the first; NULL: each does its own. */
  bool ran, first;
  gp_lane_graph *graph;
} gp_task_run;

/* Does it write gradients that the mini-batch's other tasks add to? */
static inline bool gp_task_assigns(const gp_task_run *r) {
  return r->task->opens && !r->batch->accumulate;
}

/* What kernels read for micro-batch i of a mini-batch, on a device with this copy of a stage. */
static inline gp_step_block *gp_minibatch_block(const gp_plan *plan, const gp_minibatch *batch,
                                                int64_t i, int32_t copy) {
  return &batch->blocks[copy * plan->step_micros + i];
}
/* Mini-batch `step` of the stream; the one that a micro-batch of the stream belongs to. */
static inline gp_minibatch *gp_run_minibatch_at(const gp_run *run, int64_t step) {
  return &run->batches[step < run->batch_room ? step : step % run->batch_room];
}
static inline gp_minibatch *gp_run_minibatch(const gp_run *run, int64_t micro) {
  return gp_run_minibatch_at(run, micro / run->plan->step_micros);
}
/* Micro-batches of one mini-batch of the schedule: what a loss is of and an update follows. */
static inline int32_t gp_run_group(const gp_plan *plan) {
  return plan->batch ? plan->batch : plan->step_micros;
}

/* minibatch.c */
/* Make room for a plan's mini-batches. On failure the ring is as it was. */
gp_status gp_minibatches_prepare(gp_pipeline *pipeline, const gp_plan *plan);
void gp_minibatches_free(gp_pipeline *pipeline);
/* Let a place of the ring hold what the caller gave as the stream's next mini-batch, and what
 * kernels read of it; then let go of it. */
void gp_minibatch_fill(gp_pipeline *pipeline, gp_minibatch *batch, const gp_run_args *args);
void gp_minibatch_release(gp_minibatch *batch);
/* blocks[of all copies and micro-batches]: as they were filled, whatever a device of the host has
 * counted meanwhile. */
void gp_minibatch_copy_blocks(const gp_plan *plan, const gp_minibatch *batch,
                              gp_step_block *blocks);

/* stream.c */
/* Tell the script's thread that something went on. */
void gp_run_progress(gp_run *run);

/* run.c */
gp_status gp_run_device(gp_worker *worker, void *run);
/* Run a task's program, or enqueue it where the device has a queue, with all that the queue does
 * for it. */
gp_status gp_run_program(gp_worker *worker, gp_task_run *r);
/* Count a forward pass of the last stage: the script may be waiting for its loss. */
void gp_run_note_loss(gp_run *run, const gp_task *task);

/* finish.c */
static inline bool gp_run_failed(const gp_run *run) {
  return atomic_load(&((gp_run *)run)->failed_order) != INT64_MAX;
}
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
/* On the script's thread: before the workers begin, and after they are done. */
gp_status gp_run_save_buffers(gp_pipeline *pipeline);
void gp_run_finish(gp_pipeline *pipeline);

#endif
