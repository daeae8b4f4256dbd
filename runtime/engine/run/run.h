/* engine/run/run.h - what the workers run: a stream of mini-batches, most often of one.
 *
 *   minibatch.c   the ring of mini-batches under way
 *   stream.c      gives mini-batches to the workers: one and waits, or one after another
 *   meet.c        how ranks go on with a stream together
 *   agree.h       how a run over ranks ends
 *   run.c         the loop over tasks
 *   segment.h     tasks that are launched together, as one graph
 *   finish.c      losses, buffers and counters when it is over
 *   arguments.h   checks that a run is given what its plan was made for
 *   weights.h     what a run takes over from the one before
 *   frame.h       the addresses that a task works on
 *   edge.h        what a task does for its edges
 *   gather.h      what a task gathers from all replicas in the middle of its program
 *   execute.h     one program on one device */
#ifndef GP_ENGINE_RUN_H
#define GP_ENGINE_RUN_H

#include "engine/state/pipeline.h"

/* minibatch.c */
/* Make room for a plan's mini-batches. On failure the ring is as it was. */
gp_status gp_minibatches_prepare(gp_pipeline *pipeline, const gp_plan *plan);
void gp_minibatches_free(gp_pipeline *pipeline);
/* Fill a place of the ring with the stream's next mini-batch as the caller gave it, and with its
 * step blocks; retains its inputs and targets until gp_minibatch_release. */
void gp_minibatch_fill(gp_pipeline *pipeline, gp_minibatch *batch, const gp_run_args *args);
void gp_minibatch_release(gp_minibatch *batch);
/* Copy the step blocks of all copies and micro-batches as they were filled: without the counts that
 * a device in host memory may have settled in them meanwhile. */
void gp_minibatch_copy_blocks(const gp_plan *plan, const gp_minibatch *batch,
                              gp_step_block *blocks);

/* A hash of its inputs and targets, to tell two mini-batches apart. */
uint64_t gp_minibatch_hash(const gp_minibatch *batch);
uint64_t gp_minibatch_settings(const gp_pipeline *pipeline, const gp_minibatch *batch);
/* What a micro-batch, counted through the stream, leaves for the script. */
typedef struct gp_micro_output {
  gp_micro_result loss;
  int64_t count; /* what it is divided by */
} gp_micro_output;
gp_micro_output gp_micro_output_of(const gp_run *run, int64_t micro);
/* Set either; NULL leaves it as it is. */
void gp_micro_output_set(gp_run *run, int64_t micro, const gp_micro_result *loss,
                         const int64_t *count);

/* stream.c */
/* Break off the stream of a pipeline over ranks, if it is open, without the other ranks. */
void gp_stream_drop(gp_pipeline *pipeline);

/* run.c */
/* Run all mini-batches of a run on one device: the job of each worker. */
gp_status gp_run_device(gp_worker *worker, void *run);
/* Run a task's program, or enqueue it where the device has a queue, with all that the queue does
 * for it. */
gp_status gp_run_program(gp_worker *worker, gp_task_run *r);
/* Count a forward pass of the last stage: the script may be waiting for its loss. */
void gp_run_note_loss(gp_worker *worker, gp_run *run, const gp_task *task);

/* finish.c */
/* The loss of the group-th mini-batch of the stream, and what it was divided by. */
double gp_run_loss(const gp_run *run, int64_t group, int64_t *count);
/* Save the buffers before the workers begin, and finish the run after they are done. Threads: the
 * script's. */
gp_status gp_run_save_buffers(gp_pipeline *pipeline);
void gp_run_finish(gp_pipeline *pipeline);

#endif
