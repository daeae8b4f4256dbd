/* schedule/passes.h - lowering: what is added to a schedule before any model is known.
 *
 * Recomputation, the order in which weight gradients are added, reductions over the copies of a
 * stage and updates are the same for every model. So lowering turns lists of actions into lists of
 * actions, which can be printed. plan/lower.c adds what depends on the model: programs, edges,
 * slots.
 */
#ifndef GP_SCHEDULE_PASSES_H
#define GP_SCHEDULE_PASSES_H

#include "schedule/schedule.h"

typedef struct gp_lowered {
  int32_t device_count;
  gp_action *actions; /* device after device */
  int32_t *source;    /* per action: position of the action that it was made of; -1: none */
  int32_t *first;     /* per device, and the total */
} gp_lowered;

/* Errors: GP_ENOMEM; GP_ESCHEDULE where weight gradients cannot be added in ascending order. */
gp_status gp_schedule_lower(const gp_schedule *schedule, const gp_lower_options *options,
                            gp_lowered *lowered);
/* The same without `source`, which stays NULL. */
gp_status gp_schedule_lower_actions(const gp_schedule *schedule, const gp_lower_options *options,
                                    gp_lowered *lowered);
void gp_lowered_free(gp_lowered *lowered); /* what it holds; not the struct */

/* Does the mode say what runs again stage by stage, and not by which micro-batches have an R? */
static inline bool gp_remat_is_by_stage(gp_remat remat) {
  return remat == GP_REMAT_SELECTIVE || remat == GP_REMAT_AUTO || remat == GP_REMAT_OFFLOAD ||
         remat == GP_REMAT_BY_LAYER;
}

#endif
