/* engine/intake/staged.h - the staging buffer of a device that works in memory of its own, as both
 * directions use it: rows go there (staged.c), results come back (results.c).
 *
 * The buffer (plan.h) exists twice, in the device's memory ("there") and in pinned host memory
 * ("here"). What goes to the device lies before the fault word, what comes back lies after it. */
#ifndef GP_ENGINE_STAGED_H
#define GP_ENGINE_STAGED_H

#include "engine/intake/intake.h"
#include "engine/run/run.h"
#include "engine/state/pipeline.h"

/* What a staged intake has in addition to the device's buffer, which lies in the plan's memory. */
struct gp_staged {
  char *here;               /* the host's buffer, for all mini-batches under way */
  gp_lane_event **arrived;  /* per micro-batch: its rows have come */
  gp_lane_event **computed; /* per micro-batch: its outputs are made; where the plan has outputs */
  int64_t sent, end;        /* micro-batches of the stream: sent so far; that may be sent */
};

static inline gp_staged *gp_staged_of(const gp_worker *worker) {
  return worker->pipeline->run.binding->devices[worker->device].staged;
}

/* One mini-batch's place in both buffers. */
typedef struct gp_staged_place {
  char *here, *there;
} gp_staged_place;

/* The layout of both buffers of a worker's device. */
static inline const gp_staging *gp_staged_layout(const gp_worker *worker, const gp_plan *plan) {
  return &plan->devices[worker->device].staging;
}

/* The place of the mini-batch that a micro-batch, counted through the stream, belongs to. */
static inline gp_staged_place gp_staged_place_of(const gp_worker *worker, const gp_plan *plan,
                                                 int64_t micro) {
  const gp_staging *layout = gp_staged_layout(worker, plan);
  const gp_run *run = &worker->pipeline->run;
  const gp_binding *binding = run->binding;
  size_t slot = (size_t)(micro / plan->step_micros % run->batch_room % gp_plan_batch_room(plan));
  return (gp_staged_place){gp_staged_of(worker)->here + slot * layout->bytes,
                           binding->devices[worker->device].staging + slot * layout->bytes};
}

/* Where the rows of a micro-batch begin, after those of the micro-batches before. */
static inline size_t gp_staged_micro_at(const gp_plan *plan, const gp_rows *rows, int64_t own) {
  return (size_t)own * gp_plan_padded((size_t)plan->shapes[0].rows * rows->row_bytes);
}

/* Where what losses are divided by lies in one of the buffers, micro-batch after micro-batch. */
static inline int64_t *gp_staged_counts(char *buffer, const gp_staging *layout, const gp_plan *plan,
                                        int32_t copy) {
  return (int64_t *)(buffer + layout->counts) + copy * plan->step_micros;
}

/* ---- results.c ------------------------------------------------------------------------------- */

/* Send back the rows that a task made for the script, as soon as it has run and while others
 * run. */
gp_status gp_staged_send_results(gp_worker *worker, const gp_run *run, const gp_task *task,
                                 int64_t micro);
/* gp_intake.collect: wait for the device, bring faults, losses and counts here, and give the script
 * its rows. */
gp_status gp_staged_collect(gp_worker *worker, gp_run *run, const gp_task_span *span);

#endif
