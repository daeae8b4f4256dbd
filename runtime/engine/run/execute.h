/* engine/run/execute.h - one program on one device. */
#ifndef GP_ENGINE_EXECUTE_H
#define GP_ENGINE_EXECUTE_H

#include "engine/run/run.h"

/* Run a task's program with the addresses of the worker's frame. */
gp_status gp_execute(gp_worker *worker, const gp_task_run *r);
/* Fail because a value is not finite. */
gp_status gp_execute_not_finite(const gp_program *program, const gp_instr *instr);

/* What a tag in a fault word says: the task, its instruction, and whether a value was not
 * finite. */
typedef struct gp_tag {
  int32_t task, instr;
  bool finite;
} gp_tag;
gp_tag gp_tag_read(const gp_binding *binding, int32_t device, uint32_t tag);
/* Bits of a tag below the task's number. */
int32_t gp_tag_bits(const gp_plan *plan);

#endif
