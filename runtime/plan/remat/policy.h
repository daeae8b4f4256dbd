/* plan/remat/policy.h - the policies by name, as steps of a backward pass. */
#ifndef GP_PLAN_REMAT_POLICY_H
#define GP_PLAN_REMAT_POLICY_H

#include "gpipe/schedule.h"
#include "plan/remat/chain.h"

/* List the steps of a stage of `count` layers. modes: per layer of the stage, read by
 * GP_REMAT_BY_LAYER alone. With NEVER and OFFLOAD, which moves what is saved, nothing runs again;
 * with EXCEPT_LAST and ALWAYS, which differ in the micro-batches that they concern, all layers do,
 * ahead of the backward pass. The caller frees list->steps (gp_remat_list_free).
 * Errors: GP_ENOMEM. */
gp_status gp_remat_policy(gp_remat policy, const gp_layer_remat *modes, int32_t count,
                          gp_remat_list *list);

#endif
