/* engine/bind/constants.c - see constants.h. */
#include "engine/bind/constants.h"

#include "base/tensor.h"
#include "engine/state/pipeline.h"
#include "graph/param.h"

/* Copy the whole storage of each constant that a stage reads in its own memory. */
static gp_status load_holder(const gp_binding *binding, int32_t holder, int k) {
  const gp_plan *plan = binding->plan;
  const gp_shape_plan *shape = &plan->shapes[k];
  const gp_lane *lane = &binding->pipeline->workers[plan->placement[holder]].lane;
  if (!shape->programs || !gp_device_is_here(binding->pipeline, plan->placement[holder]))
    return GP_OK;
  const gp_stage_programs *own = &shape->programs[holder / plan->copy_count];
  for (int32_t i = 0; i < own->constant_count; i++) {
    const gp_value *value = &shape->trace->graph.values[own->constants[i].value];
    const gp_tensor *tensor = shape->trace->graph.constants[value->index];
    const gp_meta *meta = gp_tensor_meta(tensor);
    char *from = (char *)gp_tensor_data(tensor) - (size_t)meta->offset * gp_dtype_size(meta->dtype);
    char *to = binding->constant_copies[2 * holder + k] + own->constants[i].offset;
    GP_TRY(gp_lane_copy(lane, to, from, gp_tensor_bytes(tensor)));
    GP_TRY(gp_lane_sync(lane));
  }
  return GP_OK;
}

gp_status gp_constants_load(const gp_binding *binding) {
  for (int32_t h = 0; h < binding->plan->stage_count * binding->plan->copy_count; h++)
    for (int k = 0; k < 2; k++) GP_TRY(load_holder(binding, h, k));
  return GP_OK;
}
