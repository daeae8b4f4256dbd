/* plan/memory/work.h - the work area of a device: what micro-batches keep between tasks, and the
 * temporaries of each task, on the device's time line. */
#ifndef GP_PLAN_MEMORY_WORK_H
#define GP_PLAN_MEMORY_WORK_H

#include "plan/make.h"

/* Lay out the work area of a device, once its tasks have their slots and programs. In a stream
 * every slot has a place of its own, because the list of tasks never ends. */
gp_status gp_plan_add_work(gp_plan *plan, int32_t device);

/* Bytes of the work area that are alive at the worst moment: no layout takes less. */
size_t gp_plan_least_work(const gp_plan *plan, int32_t device);
/* List what is alive in the work area during each task of a device. Errors: GP_ENOMEM. */
gp_status gp_plan_moments(const gp_plan *plan, int device, size_t (*moments)[GP_SLOT_KINDS + 1]);

/* Bytes of what lies in a slot of a kind. */
size_t gp_stage_slot_bytes(const gp_stage_programs *programs, int kind);
/* The same for a micro-batch of a task's size. */
size_t gp_plan_slot_bytes(const gp_plan *plan, const gp_task *task, int kind);
/* Bytes of a task's temporaries; behind them, in the host's memory, what its threads share. */
size_t gp_plan_temp_bytes(const gp_plan *plan, const gp_task *task, int32_t device);

#endif
