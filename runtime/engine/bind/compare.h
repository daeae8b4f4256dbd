/* engine/bind/compare.h - do all ranks have the same plan? */
#ifndef GP_ENGINE_COMPARE_H
#define GP_ENGINE_COMPARE_H

#include "plan/plan.h"

/* Compare the plan with those of the other ranks. Collective. Errors: GP_ESTATE with what differs
 * and the ranks. */
gp_status gp_plan_compare(const gp_plan *plan);

#endif
