/* engine/bind/bind.h - makes and frees bindings (engine/state/binding.h). */
#ifndef GP_ENGINE_BIND_H
#define GP_ENGINE_BIND_H

#include "engine/state/pipeline.h"

/* Take all memory that runs of the plan need. Ownership: the plan is taken on success. */
gp_status gp_bind(gp_pipeline *pipeline, gp_plan *plan, gp_binding **binding);
/* Free a binding and its plan. */
void gp_unbind(gp_binding *binding);
gp_binding *gp_pipeline_binding(const gp_pipeline *pipeline, const gp_plan *plan); /* NULL: none */
/* Look up the addresses of the pipeline's memory again, because it has moved, and forget the
 * captured graphs. */
void gp_binding_move(gp_binding *binding);

#endif
