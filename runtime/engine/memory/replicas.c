/* engine/memory/replicas.c - see replicas.h.
 *
 * A device whose kernels cannot read another's memory works on copies. They are brought anew before
 * every mini-batch, not after every update: whoever wrote the original meanwhile, a script
 * included, is seen, and in between nobody may write to it. */
#include "engine/memory/replicas.h"

#include "base/tensor.h"
#include "engine/pipeline.h"
#include "graph/param.h"

/* ---- constants ------------------------------------------------------------------------------- */

/* Replicas that never change: the storage of each constant, whole. */
static gp_status load_holder(const gp_binding *binding, int32_t holder, int k) {
  const gp_plan *plan = binding->plan;
  const gp_shape_plan *shape = &plan->shapes[k];
  const gp_lane *lane = &binding->pipeline->workers[plan->placement[holder]].lane;
  if (!shape->programs) return GP_OK;
  const gp_stage_programs *own = &shape->programs[holder / plan->copy_count];
  for (int32_t i = 0; i < own->replica_count; i++) {
    const gp_value *value = &shape->trace->graph.values[own->replicas[i].value];
    if (value->kind != GP_VALUE_CONST) continue;
    const gp_tensor *tensor = shape->trace->graph.constants[value->index];
    const gp_meta *meta = gp_tensor_meta(tensor);
    char *from = (char *)gp_tensor_data(tensor) - (size_t)meta->offset * gp_dtype_size(meta->dtype);
    char *to = binding->replicas[2 * holder + k] + own->replicas[i].offset;
    GP_TRY(gp_lane_copy(lane, to, from, gp_tensor_bytes(tensor)));
    GP_TRY(gp_lane_sync(lane));
  }
  return GP_OK;
}

gp_status gp_replicas_load(const gp_binding *binding) {
  for (int32_t h = 0; h < binding->plan->stage_count * binding->plan->copy_count; h++)
    for (int k = 0; k < 2; k++) GP_TRY(load_holder(binding, h, k));
  return GP_OK;
}

/* ---- parameters ---------------------------------------------------------------------------- */

/* Parameters and constants that lie elsewhere, into the stage's own copies. */
static gp_status refresh_holder(gp_worker *worker, const gp_binding *binding, int32_t holder,
                                int k) {
  const gp_pipeline *p = worker->pipeline;
  const gp_plan *plan = binding->plan;
  const gp_shape_plan *shape = &plan->shapes[k];
  if (!shape->programs) return GP_OK;
  const gp_stage_programs *own = &shape->programs[holder / plan->copy_count];
  for (int32_t i = 0; i < own->replica_count; i++) {
    const gp_value *value = &shape->trace->graph.values[own->replicas[i].value];
    if (value->kind != GP_VALUE_PARAM) continue;
    int32_t param = gp_layout_find(&p->layout, shape->trace->graph.params[value->index]);
    const gp_tensor *tensor = p->values[param];
    GP_TRY(gp_lane_take(&worker->lane, binding->replicas[2 * holder + k] + own->replicas[i].offset,
                        gp_stage_lane(p, p->param_stage[param], 0), gp_tensor_data(tensor),
                        gp_meta_bytes(gp_tensor_meta(tensor))));
  }
  return GP_OK;
}

gp_status gp_replicas_refresh(gp_worker *worker, const gp_binding *binding) {
  const gp_plan *plan = binding->plan;
  for (int32_t h = 0; h < plan->stage_count * plan->copy_count; h++)
    for (int k = 0; k < 2 && plan->placement[h] == worker->device; k++)
      GP_TRY(refresh_holder(worker, binding, h, k));
  return GP_OK;
}
