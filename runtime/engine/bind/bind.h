/* engine/bind/bind.h - makes and gives back bindings (engine/state/binding.h). */
#ifndef GP_ENGINE_BIND_H
#define GP_ENGINE_BIND_H

#include "engine/state/pipeline.h"

/* Take all the memory that runs of the plan need. Ownership: the plan is taken where it
 * succeeds. */
gp_status gp_bind(gp_pipeline *pipeline, gp_plan *plan, gp_binding **binding);
/* Give it back, and free the plan. */
void gp_unbind(gp_binding *binding);
gp_binding *gp_pipeline_binding(const gp_pipeline *pipeline, const gp_plan *plan); /* NULL: none */
/* Memory of the pipeline has moved: look up its addresses again, and forget the captured
 * graphs. */
void gp_binding_move(gp_binding *binding);

#endif
