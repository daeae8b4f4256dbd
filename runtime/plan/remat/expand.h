/* plan/remat/expand.h - lists of a chain's steps as steps of the layers that its layers stand for.
 */
#ifndef GP_PLAN_REMAT_EXPAND_H
#define GP_PLAN_REMAT_EXPAND_H

#include "plan/remat/layer_costs.h"

/* Write the steps of a list's backward pass as steps of layers, and call options by their names
 * (GP_RECIPE_*): a chain leaves out those that save nothing. The caller frees to->steps.
 * Errors: GP_ENOMEM. */
gp_status gp_remat_expand(const gp_stage_chain *chain, const gp_remat_list *from,
                          gp_remat_list *to);

#endif
