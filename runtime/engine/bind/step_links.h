/* engine/bind/step_links.h - the links of step edges (plan/edge/step_edges.h), which join memory of
 * the pipeline, of the plan or of votes. */
#ifndef GP_ENGINE_STEP_LINKS_H
#define GP_ENGINE_STEP_LINKS_H

#include "engine/state/binding.h"
#include "plan/edge/step_edges.h"

/* Open the links; gp_links_free closes them. */
gp_status gp_step_links_new(gp_binding *binding);
/* Give the links the addresses of the pipeline's memory, which has moved. */
void gp_step_links_move(gp_binding *binding);

/* Return where a device finds what a step edge carries; NULL: it neither makes nor reads it.
 * number: the parameter, the extra accumulator or the voting device. */
char *gp_step_address(const gp_binding *binding, gp_step_value value, int32_t number,
                      int32_t device);

/* The same for what one copy of a stage makes for another one: GRADS to RECORDS. */
typedef struct gp_step_between {
  int32_t stage, from, to;
} gp_step_between;
char *gp_step_copy_address(const gp_binding *binding, gp_step_value value,
                           const gp_step_between *between);
/* The same for step edge e of the plan. */
char *gp_step_edge_address(const gp_binding *binding, int32_t e, int32_t device);

#endif
