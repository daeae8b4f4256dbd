/* plan/apart.c - plans without a pipeline: for devices that are not there, or for one of many.
 *
 * The descriptions of the devices say everything that a pipeline would ask its devices. Parameters
 * get places in a layout that is freed once the plan is made: no value is ever drawn. Updates are
 * not planned, because no optimizer has been chosen.
 */
#include "base/memory.h"
#include "plan/make.h"

/* Copy the pipeline's placement; without one, stage s lies on device s. */
static gp_status copy_placement(const gp_pipeline_spec *pipeline, int32_t **placement) {
  int32_t copies = pipeline->copy_count ? pipeline->copy_count : 1;
  int32_t holders = pipeline->stage_count * copies;
  GP_TRY(gp_alloc_array((size_t)holders + 1, sizeof(int32_t), (void **)placement));
  for (int32_t h = 0; h < holders; h++)
    (*placement)[h] = pipeline->placement ? pipeline->placement[h] : h / copies;
  return GP_OK;
}

/* Count the weights in halves. A pipeline holds them beside the values, on the first copy of each
 * stage, where updates write them for all plans; this plan has no pipeline that would. */
static void note_asked(const int32_t *placement, gp_plan *plan) {
  for (int32_t s = 0; s < plan->stage_count; s++)
    plan->devices[placement[s * plan->copy_count]].asked += plan->layout.stages[s].halves;
  gp_layout_free(&plan->layout); /* it borrows the placement */
}

/* Make a plan with a layout of its own. Takes the traces on every way out, as gp_plan_make does. */
static gp_status make(const gp_pipeline_spec *pipeline, const gp_plan_device_spec *devices,
                      int device, const gp_plan_spec *spec, const int32_t *placement,
                      gp_plan **plan) {
  gp_layout layout;
  gp_layer_remat *layers = NULL;
  gp_status status = gp_layer_remats_copy(pipeline, &layers);
  gp_plan_env env = {.layout = &layout,
                     .devices = devices,
                     .stage_of = pipeline->stage_of,
                     .layer_count = pipeline->layer_count,
                     .stage_count = pipeline->stage_count,
                     .device_count = pipeline->device_count,
                     .share = device + 1,
                     .remat = pipeline->remat,
                     .layers = layers,
                     .scaled = pipeline->loss_scale.scale > 0,
                     .finite = pipeline->finite == GP_FINITE_RAISE,
                     .fuse = !pipeline->unfused};
  if (!status) status = gp_layout_new(pipeline, placement, &layout);
  if (status) {
    gp_free(layers);
    for (int k = 0; k < 2; k++) gp_trace_free(spec->shapes[k].trace);
    return status;
  }
  status = gp_plan_make(&env, spec, plan);
  if (!status) note_asked(placement, *plan);
  gp_layout_free(&layout);
  gp_free(layers);
  return status;
}

gp_status gp_plan_new(const gp_pipeline_spec *pipeline, const gp_plan_device_spec *devices,
                      int device, const gp_plan_spec *spec, gp_plan **plan) {
  int32_t *placement = NULL;
  gp_status status = copy_placement(pipeline, &placement);
  if (status)
    for (int k = 0; k < 2; k++) gp_trace_free(spec->shapes[k].trace);
  else
    status = make(pipeline, devices, device, spec, placement, plan);
  gp_free(placement);
  return status;
}

/* The areas of edges that cross to other devices are counted there too, but they are not all that
 * those devices need: so a share answers 0 for them. */
size_t gp_plan_bytes(const gp_plan *plan, int device) {
  const gp_plan_device *own = &plan->devices[device];
  return gp_plan_has(plan, device) ? gp_plan_total(plan, device) + own->asked : 0;
}

int gp_plan_devices(const gp_plan *plan) { return plan->device_count; }

int gp_plan_task_count(const gp_plan *plan, int device) {
  if (device >= plan->device_count) return 0;
  return plan->first[device + 1] - plan->first[device];
}
