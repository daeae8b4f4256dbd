/* engine/pipeline.h - the running pipeline: one worker per device, one endless list of jobs.
 *
 *   pipeline.c  parameters in stage arenas, workers started and stopped, plans attached
 *   worker.c    threads, tickets, waiting for slots
 *   run.c       the loop over tasks of one mini-batch
 *   execute.c   one program on one device
 *   finish.c    what follows a run: loss, tied parameters, buffers, failures
 *   record.c    what ran when: stats and Chrome trace
 */
#ifndef GP_ENGINE_PIPELINE_H
#define GP_ENGINE_PIPELINE_H

#include <pthread.h>
#include <stdatomic.h>

#include "device/team.h"
#include "engine/fault.h"
#include "plan/plan.h"

typedef struct gp_worker gp_worker;
typedef gp_status (*gp_job)(gp_worker *worker, void *context);

/* When a task ran, in nanoseconds of CLOCK_MONOTONIC; begin is after its waits. */
typedef struct gp_record {
  int64_t begin, end;
} gp_record;

struct gp_worker {
  gp_pipeline *pipeline;
  int32_t device;
  char name[32];
  gp_team *team;
  pthread_t thread;
  bool started;
  void **frame;         /* one address per base of the plan that runs */
  char *scratch;        /* per team member */
  size_t scratch_bytes; /* of one member */
  int32_t frame_room;
  gp_status job_status;
  char job_text[512];
  _Alignas(64) _Atomic uint32_t doorbell; /* counts events that this worker may be waiting for */
  _Atomic uint32_t sleeping;
};

/* Contiguous memory of the parameters of one stage. Counted: a script may hold a value or a gradient
 * longer than the pipeline lives. */
typedef struct gp_arena {
  gp_tensor *value_memory, *grad_memory, *buffer_memory; /* bytes; NULL where there are none */
  char *grads, *buffers;                                 /* where they begin */
  char *committed;                                       /* buffers as they were before the run */
  size_t grad_bytes, buffer_bytes;
} gp_arena;

/* Accumulator of (param, layer) beside the main one. */
typedef struct gp_extra_slot {
  int32_t param, layer, next; /* next: of the same param, layers ascending not required */
  gp_tensor *grad;
} gp_extra_slot;

/* A weight in the layout that its product wants (graph/pack.c), one per stage that uses it. */
typedef struct gp_packed {
  int32_t param, stage;
  gp_tensor *copy;
} gp_packed;

/* The mini-batch that the workers are running. */
typedef struct gp_run {
  gp_plan *plan;
  const gp_run_args *args;
  bool backward_half;
  gp_step_block *blocks; /* per micro-batch */
  int64_t count;
  _Atomic int32_t failed_order; /* INT32_MAX: none */
  pthread_mutex_t failure_lock;
  gp_status status;
  char text[512];
} gp_run;

struct gp_pipeline {
  int32_t stage_count, layer_count, device_count, param_count;
  int32_t *stage_of; /* per layer, and one for the loss */
  gp_param **params;
  int32_t *param_stage, *main_layer; /* per param; main_layer -1: not traced yet */
  gp_tensor **values, **grads;       /* per param; grads NULL for frozen ones and buffers */
  gp_arena *arenas;                  /* per stage */
  gp_extra_slot *extras;
  int32_t extra_count;
  gp_packed *packs;
  int32_t pack_count;
  gp_checkpoint checkpoint;
  uint64_t seed;
  uint32_t step, split_step;
  bool finite, closed, spin;
  gp_fault fault;
  gp_worker *workers;
  gp_job job;
  void *job_context;
  _Atomic uint32_t ticket, finished, quit;
  gp_run run;
  int32_t block_room;
  gp_record *records; /* per task of the last run */
  int32_t record_room;
  gp_plan **plans; /* owned */
  int32_t plan_count;
  gp_plan *last_plan; /* whose run records describe; NULL after it was freed */
  int64_t last_begin, last_end;
};

/* worker.c */
gp_status gp_workers_start(gp_pipeline *pipeline, const gp_device_spec *devices);
void gp_workers_stop(gp_pipeline *pipeline);
/* Run job on every worker and wait; the status is that of the lowest device that failed. */
gp_status gp_workers_run(gp_pipeline *pipeline, gp_job job, void *context);
/* Room for a plan's frames, scratch, records and step blocks. */
gp_status gp_workers_prepare(gp_pipeline *pipeline, const gp_plan *plan);
/* Wait until *word >= wanted. */
void gp_worker_await(gp_worker *worker, _Atomic uint32_t *word, uint32_t wanted);
void gp_worker_ring(gp_worker *worker);

/* execute.c */
gp_status gp_execute(gp_worker *worker, gp_program *program, const gp_step_block *step);

/* run.c */
gp_status gp_run_device(gp_worker *worker, void *run);

/* finish.c */
void gp_run_save_buffers(gp_pipeline *pipeline);
void gp_run_finish(gp_pipeline *pipeline, gp_run_result *result);
void gp_run_fail(gp_run *run, int32_t order, gp_status status, const char *text);

/* pipeline.c */
int32_t gp_pipeline_find(const gp_pipeline *pipeline, const gp_param *param); /* -1: not its own */

#endif
