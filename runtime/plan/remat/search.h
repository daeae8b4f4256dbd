/* plan/remat/search.h - the fastest list of a stage whose forward pass may keep layers. */
#ifndef GP_PLAN_REMAT_SEARCH_H
#define GP_PLAN_REMAT_SEARCH_H

#include "plan/remat/stage_dp.h"

/* Find it; stage and limits are valid, and limits->once is false. The limit is for all but what the
 * layers that go to the host take while they are under way.
 * Errors: GP_ENOMEM saying how many bytes are the least. */
gp_status gp_remat_search(const gp_remat_stage *stage, const gp_remat_limits *limits,
                          gp_remat_list *list);

/* Say that a limit is too small. */
gp_status gp_remat_refuse(const gp_remat_limits *limits, size_t least);

#endif
