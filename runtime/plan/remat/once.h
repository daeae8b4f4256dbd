/* plan/remat/once.h - the list of policy `always`: segments that run once more. */
#ifndef GP_PLAN_REMAT_ONCE_H
#define GP_PLAN_REMAT_ONCE_H

#include "plan/remat/stage_dp.h"

/* Find the cut into segments with the lowest peak and make its list. */
gp_status gp_remat_once(const gp_remat_chain *chain, int32_t in_flight, gp_remat_list *list);

#endif
