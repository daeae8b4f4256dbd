/* device/job.h - what a lane is asked to do: ops, updates, sweeps over many tensors.
 *
 * Each kind of lane uses one half of a job: threads take pieces of an op, a queue takes one op
 * after the other. Addresses are in the lane's memory. */
#ifndef GP_DEVICE_JOB_H
#define GP_DEVICE_JOB_H

#include "device/plugin.h"
#include "device/team.h"

/* A fault that a kernel reports, in the lane's memory: the first id out of range, or the first
 * value that is not finite. */
typedef gp_gpu_fault gp_lane_fault;
#define GP_LANE_NO_FAULT GP_GPU_NO_FAULT

/* One tensor of n elements in the lane's memory. */
typedef gp_gpu_run gp_lane_run;

/* An op as a queue takes it: whole. Addresses are in the lane's memory. */
typedef struct gp_lane_call {
  gp_op op;
  const gp_call *call;
  void *scratch;        /* as large as prepare said */
  gp_lane_fault *fault; /* in the lane's memory */
  uint32_t tag;         /* names the call in *fault */
} gp_lane_call;

/* A list of ops to run in order, in two forms, of which each kind of lane calls one: threads take
 * pieces of ops, a queue takes one whole op after the other. */
typedef struct gp_lane_job {
  void *context;
  gp_status (*run)(void *context);     /* run all of it, by work->pieces */
  gp_status (*enqueue)(void *context); /* enqueue all of it, by work->launch */
  int32_t op_count;
  bool ran; /* it has run before, so that it may be captured */
} gp_lane_job;

/* An update of parameters, as in optim/optim.h. Threads call `piece`, which updates elements first
 * .. last - 1 of a slice. */
typedef struct gp_lane_update {
  const gp_optim_hyper *hyper;
  int64_t step;
  const gp_optim_slice *slices;
  int count;
  gp_status (*piece)(const gp_optim_hyper *hyper, int64_t step, const gp_optim_slice *slice,
                     int64_t first, int64_t last);
} gp_lane_update;

/* Many tensors that are read or scaled at once: threads take their pieces, queues the tensors. */
typedef struct gp_lane_sweep {
  const gp_lane_run *runs;
  int count;
  int64_t pieces; /* of all tensors together */
  gp_piece piece;
  void *context; /* passed to `piece` */
  double factor; /* scale only */
  double *sums;  /* squares only: receives one sum for each tensor, on the host */
  void *scratch; /* squares only: sum_scratch bytes and 8 for each tensor, in the lane's memory */
} gp_lane_sweep;

#endif
