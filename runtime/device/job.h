/* device/job.h - what a lane is asked to do: ops, updates, sweeps over many tensors.
 *
 * Each kind of lane works by one half of a job: threads take pieces of an op, a queue takes one op
 * after the other. Addresses are of the lane's memory. */
#ifndef GP_DEVICE_JOB_H
#define GP_DEVICE_JOB_H

#include "device/plugin.h"
#include "device/team.h"

/* What a kernel found wrong, in the lane's memory: the first id out of range or value that is not
 * finite. */
typedef gp_gpu_fault gp_lane_fault;
#define GP_LANE_NO_FAULT GP_GPU_NO_FAULT

/* One tensor of n elements in the lane's memory. */
typedef gp_gpu_run gp_lane_run;

/* An op as a queue takes it: whole. Addresses are of the lane's memory. */
typedef struct gp_lane_call {
  gp_op op;
  const gp_call *call;
  gp_stream stream;     /* GP_STREAM_COMPUTE or GP_STREAM_SIDE */
  void *scratch;        /* as large as prepare asked for; of this stream's own */
  gp_lane_fault *fault; /* in the lane's memory */
  uint32_t tag;         /* names the call in *fault */
} gp_lane_call;

/* A list of ops to be run in order, in both forms: each kind of lane calls the half that it works
 * by. Threads take pieces of ops, a queue takes one whole op after the other. */
typedef struct gp_lane_job {
  void *context;
  gp_status (*run)(void *context); /* all of it, by ops->pieces */
  int32_t op_count;
  void (*bind)(void *context);                     /* fill in addresses; a replay has them */
  gp_status (*enqueue)(void *context, int32_t op); /* by ops->launch */
} gp_lane_job;

/* An update of parameters, as in optim/optim.h. piece: elements first .. last - 1 of a slice, for
 * threads. */
typedef struct gp_lane_update {
  const gp_optim_hyper *hyper;
  int64_t step;
  const gp_optim_slice *slices;
  int count;
  gp_status (*piece)(const gp_optim_hyper *hyper, int64_t step, const gp_optim_slice *slice,
                     int64_t first, int64_t last);
  gp_steer by; /* of a queue: in its memory; without a verdict hyper and step say all */
} gp_lane_update;

/* Many tensors looked at or scaled at once: threads take the pieces of them, queues the tensors. */
typedef struct gp_lane_sweep {
  const gp_lane_run *runs;
  int count;
  int64_t pieces; /* those of all tensors */
  gp_piece piece;
  void *context;             /* of the pieces */
  double factor;             /* of scale */
  const gp_verdict *verdict; /* of scale, in a queue's memory, in place of the factor; NULL */
  double *sums;              /* of squares: receives one for each tensor, on the host */
  void *scratch; /* of squares: sum_scratch bytes and 8 for each tensor, in the lane's memory */
  double *there; /* of squares: of a queue, in its memory: they stay there, not waited for; NULL */
} gp_lane_sweep;

#endif
