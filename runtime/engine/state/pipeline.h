/* engine/state/pipeline.h - the pipeline: its stages, parameters, plans and one worker per device.
 *
 * The folders of the engine are layers. From the top down (scripts/check_rooms.lua):
 *
 *   pipeline.c   takes in parameters, starts and stops workers, attaches plans
 *   run/         gives mini-batches to the workers, runs their tasks, finishes a run
 *   update/      ends a mini-batch: sums, norms, votes, loss scales, updates
 *   bind/        joins a plan with its memory and links
 *   intake/      brings mini-batches to the devices
 *   optimizer/   moments and passes of an optimizer, clipping by the script, skipped updates
 *   profile/     measures how long each instruction takes, on request
 *   watch/       jobs under the watchdog, figures, reports, the guard, failures on request
 *   memory/      arenas of stages, the blocks in them, memory counted per device
 *   worker/      threads, jobs, waiting, and the times of tasks
 *   state/       what the others work on: the pipeline, its arenas, bindings, runs and workers */
#ifndef GP_ENGINE_STATE_PIPELINE_H
#define GP_ENGINE_STATE_PIPELINE_H

#include "engine/state/arena.h"
#include "engine/state/run.h"
#include "engine/state/watch.h"
#include "plan/memory/layout.h"

/* How often parameters and inputs had been written to when forward read them; backward reads them
 * again. */
typedef struct gp_seen {
  uint64_t *params, inputs[GP_MAX_BATCH_TENSORS]; /* params: per parameter of the pipeline */
  uint64_t updates;
} gp_seen;

/* Updates that were skipped because gradients were not finite. After GP_SKIPS_MOST in a row the
 * step fails. */
enum { GP_SKIPS_MOST = 20 };
typedef struct gp_skips {
  int64_t total;
  int32_t row; /* skipped one after the other until now */
} gp_skips;

/* A profile that the script asked for. */
typedef struct gp_profiling {
  bool open, timed;    /* timed: the last run was part of one */
  bool mixed;          /* its runs had several plans */
  int32_t runs;        /* since it began */
  const gp_plan *plan; /* of the last of them; compared by address only */
} gp_profiling;

/* The work area of a device, which plans share. */
typedef struct gp_work {
  char *memory;
  size_t bytes;
} gp_work;

struct gp_pipeline {
  int32_t stage_count, layer_count, device_count, param_count, copy_count, replicas;
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
  bool streams;           /* see gp_pipeline_spec */
  int32_t sum_group;      /* likewise */
  size_t bucket;          /* likewise */
  int32_t most_whole;     /* likewise */
  gp_layer_remat *layers; /* per layer and for the loss; NULL but with remat BY_LAYER */
  uint64_t seed;
  /* Training passes so far, the clock of their random draws; split_step: in the last pass, whose
   * backward half has to draw the same. */
  uint32_t step, split_step;
  uint32_t looks;   /* other passes so far: they have a clock of their own */
  uint64_t updates; /* of its parameters, by any optimizer */
  gp_seen seen;     /* by the last forward half */
  bool finite, fuse, added, closed, spin;
  bool broken;           /* some stages were updated and others not */
  gp_loss_scale scaling; /* scale 0: none */
  gp_finite check;       /* of gradients before an update; `finite` is the check of every value */
  gp_skips skips;
  gp_profiling profiling;
  /* overflow: the present gradients are not finite, so no stage is updated. resumed: the last pass
   * added to earlier gradients. */
  bool overflow, resumed;
  gp_faults faults;
  gp_watch watch;
  gp_optimizer *optimizer; /* retained: its updates are actions of the schedule; or NULL */
  gp_use_options use;
  bool *chosen;    /* workspace of optimizer/clip.c: two flags per param */
  int32_t *listed; /* the optimizer's parameters as places in params, in the order given */
  int32_t listed_count;
  gp_worker *workers;
  gp_spread *spread; /* NULL: this process drives all devices */
  gp_job job;
  void *job_context;
  _Atomic uint32_t ticket, finished, quit;
  gp_run run;
  const gp_lane_memory *pinning;     /* its host_alloc serves devices in host memory; or NULL */
  gp_plan_device_spec *device_specs; /* per device: as plans see it */
  gp_work *work;                     /* per device (engine/memory/work.h) */
  gp_binding **bindings;             /* owned: one per plan */
  int32_t binding_count;
  const gp_plan *last_plan; /* whose run the events describe; NULL after it was freed */
  int64_t last_begin, last_end;
};

/* Does this process drive the device? */
static inline bool gp_device_is_here(const gp_pipeline *p, int32_t device) {
  return !p->workers[device].far;
}
/* How many devices does it drive? */
static inline int32_t gp_devices_here(const gp_pipeline *p) {
  return p->spread ? p->spread->here_count : p->device_count;
}
/* The lane of a device. */
static inline const gp_lane *gp_device_lane(const gp_pipeline *p, int32_t device) {
  return &p->workers[device].lane;
}
/* The lane of the device that holds a copy of a stage. */
static inline const gp_lane *gp_stage_lane(const gp_pipeline *p, int32_t stage, int32_t copy) {
  return gp_device_lane(p, p->placement[stage * p->copy_count + copy]);
}
/* The device that sums the gradient of parameter i and updates it, and its lane. */
static inline int32_t gp_owner_device(const gp_pipeline *p, int32_t i) {
  return p->placement[p->param_stage[i] * p->copy_count + p->layout.at[i].owner];
}
static inline const gp_lane *gp_owner_lane(const gp_pipeline *p, int32_t i) {
  return gp_device_lane(p, gp_owner_device(p, i));
}

#endif
