/* engine/bind/step_links.h - the links of step edges (plan/edge/step_edges.h): between memory that
 * the pipeline has, or the plan. */
#ifndef GP_ENGINE_STEP_LINKS_H
#define GP_ENGINE_STEP_LINKS_H

#include "engine/state/binding.h"
#include "plan/edge/step_edges.h"

/* Open them. */
gp_status gp_step_links_new(gp_binding *binding);
/* The pipeline's memory has moved. */
void gp_step_links_move(gp_binding *binding);

/* Where a device finds what a step edge carries; NULL: it neither makes nor reads it. number: of
 * the parameter, extra or voting device; of the stage for what copies exchange. */
char *gp_step_address(const gp_binding *binding, gp_step_value value, int32_t number,
                      int32_t device);

#endif
