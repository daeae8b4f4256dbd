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

/* Add what a copy of a stage would hold, as the engine's arenas allocate it. apart: it cannot read
 * what lies with the first copy. */
static void add_copy(const gp_layout_stage *stage, int32_t copy, bool apart, size_t *held) {
  if (!copy || apart) held[GP_HELD_PARAMETERS] += stage->values;
  if (!copy || apart) held[GP_HELD_BUFFERS] += copy ? stage->buffers : 2 * stage->buffers;
  held[GP_HELD_GRADIENTS] += stage->grads;
  held[GP_HELD_EXTRAS] += stage->extras;
  if (copy) return;
  if (apart) held[GP_HELD_GRADIENTS] += stage->grads; /* received from the second copy */
  if (apart) held[GP_HELD_EXTRAS] += stage->extras;
  held[GP_HELD_PACKED] += stage->packed;
  held[GP_HELD_HALVES] += stage->halves; /* updates write them for all plans */
}

/* Count what a pipeline would hold beside the plan, and free the layout, which borrows the
 * placement. */
static void note_held(const int32_t *placement, gp_plan *plan) {
  for (int32_t s = 0; s < plan->stage_count; s++) {
    const int32_t *at = &placement[s * plan->copy_count];
    bool apart =
        plan->copy_count > 1 && plan->devices[at[0]].spec.space != plan->devices[at[1]].spec.space;
    for (int32_t copy = 0; copy < plan->copy_count; copy++)
      add_copy(&plan->layout.stages[s], copy, apart, plan->devices[at[copy]].held);
  }
  for (int32_t d = 0; d < plan->device_count; d++)
    if (plan->devices[d].spec.packs)
      plan->devices[d].held[GP_HELD_THREADS] = (plan->scratch_bytes + 63) / 64 * 64;
  gp_layout_free(&plan->layout);
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
  if (!status) note_held(placement, *plan);
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
  return gp_plan_has(plan, device) ? gp_plan_total(plan, device) + own->held[GP_HELD_HALVES] : 0;
}

void gp_plan_held(const gp_plan *plan, int device, size_t bytes[GP_HELD_COUNT]) {
  const gp_plan_device *own = &plan->devices[device];
  for (int k = 0; k < GP_HELD_COUNT; k++) bytes[k] = gp_plan_has(plan, device) ? own->held[k] : 0;
}

int gp_plan_devices(const gp_plan *plan) { return plan->device_count; }

int gp_plan_task_count(const gp_plan *plan, int device) {
  if (device >= plan->device_count) return 0;
  return plan->first[device + 1] - plan->first[device];
}
