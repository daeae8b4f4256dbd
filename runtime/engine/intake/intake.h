/* engine/intake/intake.h - how a device gets at the mini-batches that the script gives, and how
 * what it leaves of them gets back.
 *
 *   direct.c   a device that works in the host's memory: on the tensors of the script
 *   staged.c   a device with memory of its own: through staging buffers
 *
 * Chosen by the device's memory space when a plan is bound.
 */
#ifndef GP_ENGINE_INTAKE_H
#define GP_ENGINE_INTAKE_H

#include "engine/state/pipeline.h"

/* Tasks first .. end - 1 of a device, as mini-batch `step` of the stream runs them. */
typedef struct gp_task_span {
  uint32_t step;
  int32_t first, end;
  /* How many mini-batches `step` is after the stored one; the first micro-batch of the stream that
   * is not given. */
  int64_t repeats, limit;
  size_t first_event; /* number of the first event of the range */
} gp_task_span;

struct gp_intake {
  gp_status (*open)(gp_binding *binding, int32_t device);
  void (*close)(gp_binding *binding, int32_t device); /* also if open stopped half-way */

  /* Fill in the frame's part of a mini-batch, r->block and r->fault. */
  void (*bind)(gp_worker *worker, gp_task_run *r);
  /* begin: begins a mini-batch. before: lets a task wait for the rows of its micro-batch and of
   * those before it. settle: is part of a task's work, after its program; once the last count is
   * known, it computes what losses are divided by. after: takes away what the task made. NULL:
   * there is nothing to do. */
  gp_status (*begin)(gp_worker *worker, gp_run *run, uint32_t step);
  gp_status (*before)(gp_worker *worker, const gp_task_run *r);
  gp_status (*settle)(gp_worker *worker, const gp_task_run *r);
  gp_status (*after)(gp_worker *worker, const gp_task_run *r);
  bool at_once; /* losses are known when their task is over; otherwise when the range is */
  /* collect: waits for the device, takes in what the tasks left and notes the first fault. end: the
   * same for the whole range, at its end. NULL: there is nothing to do. */
  gp_status (*collect)(gp_worker *worker, gp_run *run, const gp_task_span *span);
  gp_status (*end)(gp_worker *worker, gp_run *run, const gp_task_span *span);
};

/* Task t of the plan, as the span's mini-batch runs it (run.c). */
gp_task_run gp_run_task_of(const gp_run *run, const gp_task_span *span, int32_t t);

extern const gp_intake gp_intake_direct, gp_intake_staged;

/* Choose and open the intakes of all devices of a plan. */
gp_status gp_intakes_new(gp_binding *binding);
void gp_intakes_free(gp_binding *binding);

static inline const gp_intake *gp_intake_of(const gp_worker *worker) {
  return worker->pipeline->run.binding->devices[worker->device].intake;
}

#endif
