/* graph/param.h - what a pipeline does with parameters, beyond the public functions. */
#ifndef GP_GRAPH_PARAM_H
#define GP_GRAPH_PARAM_H

#include "gpipe/param.h"

/* Write the initial or current value into `to` (contiguous, same dtype and shape), and let the
 * parameter live there from now on. */
gp_status gp_param_move(gp_param *param, gp_tensor *to);
/* Let a parameter that is not drawn yet live in this tensor (retained), which has its shape. */
void gp_param_hold(gp_param *param, gp_tensor *value);
/* Note which rank holds the value from now on. If it is another process, that one draws the value
 * or has it already, and it is gone here. */
void gp_param_share(gp_param *param, int32_t rank, bool here);
void gp_param_set_grad(gp_param *param, gp_tensor *grad); /* retained; NULL: none */
/* Set the owner, of which there can be one at a time, and the owner's stage that the parameter
 * belongs to; owner NULL releases it. Errors: GP_ESTATE. */
gp_status gp_param_own(gp_param *param, const void *owner, int32_t stage);
int32_t gp_param_stage(const gp_param *param);

const void *gp_param_owner(const gp_param *param);

#endif
