/* engine/pipeline.h - the running pipeline: one worker per device, one endless list of tasks.
 *
 *   pipeline.c   parameters taken in, workers started and stopped, plans attached
 *   memory/      arenas of stages, and what they read of elsewhere
 *   bind/        a plan joined with its memory and links
 *   worker/      threads, jobs, waiting; when tasks ran
 *   run/         mini-batches given, the loop over tasks, what is left of a run
 *   intake/      how a device gets at mini-batches
 *   profile/     how long each instruction takes, on request
 *   update/      what ends a mini-batch: sums, norms, scales and updates of gradients
 *   optimizer/   moments and passes of an optimizer, and clipping by the script
 *   watch/       figures, reports, the watchdog, failures on request */
#ifndef GP_ENGINE_PIPELINE_H
#define GP_ENGINE_PIPELINE_H

#include "engine/memory/arena.h"
#include "engine/run/run.h"
#include "engine/run/weights.h"
#include "engine/watch/fault.h"
#include "engine/watch/watchdog.h"
#include "engine/worker/worker.h"
#include "plan/memory/layout.h"

/* Updates that were left out, because gradients were not finite; `row`: one after the other until
 * now. */
enum { GP_SKIPS_MOST = 20 };
typedef struct gp_skips {
  int64_t total;
  int32_t row;
} gp_skips;

/* A profile that the script asked for. */
typedef struct gp_profiling {
  bool open, timed;    /* timed: the last run was part of one */
  bool mixed;          /* its runs had several plans */
  int32_t runs;        /* since it began */
  const gp_plan *plan; /* of the last of them; only its address is looked at */
} gp_profiling;

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
  uint32_t step, split_step; /* passes that trained: the clock of their draws */
  uint32_t looks;            /* passes that did not: a clock of their own */
  uint64_t updates;          /* of its parameters, by whatever optimizer */
  gp_seen seen;              /* by the last forward half */
  bool finite, fuse, added, closed, spin;
  bool broken;           /* some stages were updated and others not */
  gp_loss_scale scaling; /* scale 0: none */
  gp_finite check;       /* of gradients before an update; `finite`: of every value */
  gp_skips skips;
  gp_profiling profiling;
  /* The gradients that are there are not finite, so that nobody is updated; resumed: they were
   * added to. */
  bool overflow, resumed;
  gp_faults faults;
  gp_watch watch;
  gp_optimizer *optimizer; /* attached: updates are actions of the schedule; counted */
  gp_use_options use;
  bool *chosen;    /* room for clip.c: twice a flag per param */
  int32_t *listed; /* its parameters among those of the pipeline, in the order given */
  int32_t listed_count;
  gp_worker *workers;
  gp_job job;
  void *job_context;
  _Atomic uint32_t ticket, finished, quit;
  gp_run run;
  const gp_lane_memory *pinning; /* whose host_alloc the devices of the host's memory use; NULL */
  gp_plan_device_spec *device_specs; /* per device: as plans see it */
  gp_binding **bindings;             /* owned: one per plan */
  int32_t binding_count;
  const gp_plan *last_plan; /* whose run the events describe; NULL after it was freed */
  int64_t last_begin, last_end;
};

/* The lane of a device. */
static inline const gp_lane *gp_device_lane(const gp_pipeline *p, int32_t device) {
  return &p->workers[device].lane;
}
/* The lane that a stage, or its second copy, lies with. */
static inline const gp_lane *gp_stage_lane(const gp_pipeline *p, int32_t stage, int32_t copy) {
  return gp_device_lane(p, p->placement[stage * p->copy_count + copy]);
}

gp_binding *gp_pipeline_binding(const gp_pipeline *pipeline, const gp_plan *plan); /* NULL: none */
/* Memory of a lane, zeroed. What lies in the host's memory is taken from the lanes that copy from
 * there, where the pipeline has such: copies then hold nobody up. */
bool gp_pipeline_pins(const gp_pipeline *pipeline, const gp_lane *lane);
gp_status gp_pipeline_take(const gp_pipeline *pipeline, const gp_lane *lane, size_t bytes,
                           void **memory);
void gp_pipeline_give(const gp_pipeline *pipeline, const gp_lane *lane, void *memory, size_t bytes);

#endif
