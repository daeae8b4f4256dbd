/* gpipe/run.h - mini-batches through a pipeline, and the figures of the last run. See gpipe.h for
 * what holds everywhere. */
#ifndef GP_PUBLIC_RUN_H
#define GP_PUBLIC_RUN_H

#include "gpipe/optimizer.h"
#include "gpipe/plan.h"

typedef struct gp_run_args {
  gp_tensor *const *inputs, *const *targets; /* whole mini-batch [N, ..], contiguous */
  int input_count, target_count;             /* as many as were traced */
  /* Receive the rows of all micro-batches (FORWARD, SPLIT), as many as were traced; contiguous. */
  gp_tensor *const *outputs;
  int output_count;
  gp_tensor *const *out_grads; /* GP_PLAN_SPLIT: if given, run the backward half; like outputs */
  /* Receive the rows of the inputs' gradients, in the backward half of GP_PLAN_SPLIT: one per
   * input, NULL where gp_plan_input_grad_meta says so. */
  gp_tensor *const *input_grads;
  const gp_optim_hyper *hyper; /* per group of the optimizer in use; NULL without one */
  bool accumulate;             /* add to the gradients that are there */
  /* With accumulate: first add up the run's own gradients, as without, then those that were there.
   * So the tree of sums stays whole. */
  bool apart;
} gp_run_args;

typedef struct gp_run_result {
  double loss;   /* mean (or sum, see sum_loss); 0 without a loss */
  int64_t count; /* what it was divided by: rows or valid tokens of the mini-batch */
} gp_run_result;

/* Hand the mini-batch to the workers and wait. On failure gradients are zero and parameters and
 * buffers as before. Cost: allocates nothing. Errors: the first failing action's, in schedule
 * order; GP_EINTERRUPT; GP_ETIMEOUT (see gp_pipeline_report); GP_ESTATE while a stream is open. */
gp_status gp_pipeline_run(gp_pipeline *pipeline, gp_plan *plan, const gp_run_args *args,
                          gp_run_result *result);

/* Give the mini-batch to the workers and return while they go on: for asynchronous schedules, and
 * for synchronous ones without a barrier. An asynchronous one returns when the first stage has
 * taken the mini-batch in; the losses that are known then depend on the schedule alone. Without a
 * barrier, it returns when the mini-batch's loss is known.
 *
 * The first call opens a stream, which runs this plan only. Ownership: tensors are retained until
 * the workers are done with them. Errors: as gp_pipeline_run; the stream is over then, and if
 * stages were updated already the pipeline refuses to go on until gp_pipeline_mend. */
gp_status gp_pipeline_submit(gp_pipeline *pipeline, gp_plan *plan, const gp_run_args *args);
/* Run the mini-batches of the stream to their end and close it; without a stream, do nothing. */
gp_status gp_pipeline_drain(gp_pipeline *pipeline);
/* The plan of the open stream; NULL without one. */
const gp_plan *gp_pipeline_stream(const gp_pipeline *pipeline);
/* Take the losses that became known and were not taken yet, one for each mini-batch of the
 * schedule, in order: losses[room] receives them; returns how many. */
int gp_pipeline_losses(gp_pipeline *pipeline, double *losses, int room);

typedef struct gp_use_options {
  double clip_norm;      /* of all gradients, before the update; 0: none */
  gp_update_mode update; /* GP_UPDATE_BARRIER or GP_UPDATE_FREE; NONE ends the use */
} gp_use_options;

/* Make the update an action of the schedule, on the devices of the stages. Drop the plans that were
 * built before: they are of no use afterwards. Ownership: the pipeline keeps the optimizer until
 * another one is used or it closes. Errors: GP_EINVAL if it has parameters of another pipeline. */
gp_status gp_pipeline_use(gp_pipeline *pipeline, gp_optimizer *optimizer,
                          const gp_use_options *options);
/* Tell whether some stages were updated and others not: a state must be loaded then. */
bool gp_pipeline_is_broken(const gp_pipeline *pipeline);
void gp_pipeline_mend(gp_pipeline *pipeline); /* after a state was loaded */

/* Say what every device did, and waited for, when the last run was given up (GP_ETIMEOUT,
 * GP_EINTERRUPT): lines of text, borrowed; "" if it was not given up. */
const char *gp_pipeline_report(const gp_pipeline *pipeline);
/* Tell whether a worker never came back from such a run: the pipeline can only be closed then, and
 * memory that the worker may use is never freed. */
bool gp_pipeline_is_lost(const gp_pipeline *pipeline);

void gp_pipeline_zero_grad(gp_pipeline *pipeline);
/* Count the training passes so far: the clock of dropout, so a saved state has it. */
uint32_t gp_pipeline_step_count(const gp_pipeline *pipeline);
void gp_pipeline_set_step_count(gp_pipeline *pipeline, uint32_t steps);
/* Check whether GPIPE_FAULT names a device or a stage that this pipeline does not have: worth
 * saying, but no mistake in a process with several pipelines. Errors: GP_EINVAL with the number. */
gp_status gp_pipeline_check_faults(const gp_pipeline *pipeline);
/* Count the updates that were skipped so far because gradients were not finite, f16's loss scaling
 * apart; settable like the step count. */
int64_t gp_pipeline_skipped(const gp_pipeline *pipeline);
void gp_pipeline_set_skipped(gp_pipeline *pipeline, int64_t skipped);
/* Loss scaling as it stands; settable between runs: a saved state has it too. */
void gp_pipeline_loss_scale(const gp_pipeline *pipeline, gp_loss_scale *scale);
void gp_pipeline_set_loss_scale(gp_pipeline *pipeline, const gp_loss_scale *scale);

typedef struct gp_device_stats {
  double busy, span; /* seconds of the last run: inside actions; from first begin to last end */
  int peak_live;     /* activations (of a stage and micro-batch) kept at once */
  /* The most that the device has held at once for passes: memory of all plans that are kept, packed
   * weights, workspaces; not the parameters with their gradients and moments. */
  size_t peak_bytes;
} gp_device_stats;

/* Figures of the last run; zero before the first. device: from 0. */
void gp_pipeline_stats(const gp_pipeline *pipeline, int device, gp_device_stats *stats);
/* The i-th way in which a device does work; false after the last. Threads: the script's. */
bool gp_pipeline_path(const gp_pipeline *pipeline, int device, int i, gp_work_path *path);
/* Captured graphs that a step launches on a device, and the tasks in them, by the plan that ran
 * last, else by the newest. Both are 0 on devices whose work is over when a call returns, in
 * streams, and before anything is planned. Threads: the script's. */
typedef struct gp_graph_counts {
  int graphs, tasks;
} gp_graph_counts;
gp_graph_counts gp_pipeline_graphs(const gp_pipeline *pipeline, int device);
double gp_pipeline_seconds(const gp_pipeline *pipeline); /* wall time */
double gp_pipeline_began(const gp_pipeline *pipeline);   /* when, on the machine's steady clock */
/* One action of the last run; seconds from its begin. wait: when the device began to wait for
 * it. */
typedef struct gp_timed_action {
  gp_action action;
  double wait, begin, end;
} gp_timed_action;

/* Actions of a device in the order they ran; for a stream, the last ones. i: from 0. */
int gp_pipeline_event_count(const gp_pipeline *pipeline, int device);
void gp_pipeline_event(const gp_pipeline *pipeline, int device, int i, gp_timed_action *timed);

#endif
