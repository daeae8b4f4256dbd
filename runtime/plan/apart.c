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

static bool share_memory(const gp_plan *plan, int32_t stage, int32_t a, int32_t b) {
  return gp_plan_shares(plan, plan->placement[gp_plan_holder(plan, stage, a)],
                        plan->placement[gp_plan_holder(plan, stage, b)]);
}

/* Is no copy before this one in the same memory? Then its values and buffers are its own; in a
 * stream with replicas the values of all are. */
static bool leads(const gp_plan *plan, int32_t stage, int32_t copy) {
  for (int32_t other = 0; other < copy; other++)
    if (share_memory(plan, stage, other, copy)) return false;
  return true;
}

static bool owns_extras(const gp_layout *layout, int32_t stage, int32_t copy) {
  for (size_t x = 0; x < layout->extra_count; x++)
    if (layout->extras[x].stage == stage && layout->at[layout->extras[x].param].owner == copy)
      return true;
  return false;
}

/* Add what a copy of a stage would hold, as the engine's arenas allocate it. */
static void add_copy(const gp_plan *plan, int32_t stage, int32_t copy, size_t *held) {
  const gp_layout_stage *sizes = &plan->layout.stages[stage];
  const gp_layout_slice *own = &plan->layout.slices[gp_plan_holder(plan, stage, copy)];
  size_t apart = 0; /* copies from which it receives what it owns */
  for (int32_t other = 0; other < plan->copy_count; other++)
    apart += !share_memory(plan, stage, other, copy);
  if (plan->layout.apart || leads(plan, stage, copy)) held[GP_HELD_PARAMETERS] += sizes->values;
  if (leads(plan, stage, copy)) held[GP_HELD_BUFFERS] += (copy ? 1 : 2) * sizes->buffers;
  held[GP_HELD_GRADIENTS] += sizes->grads + apart * own->grads;
  held[GP_HELD_EXTRAS] += sizes->extras;
  if (owns_extras(&plan->layout, stage, copy)) held[GP_HELD_EXTRAS] += apart * sizes->extras;
  if (copy) return;
  held[GP_HELD_PACKED] += sizes->packed;
  held[GP_HELD_HALVES] += sizes->halves; /* updates write them for all plans */
}

/* Count what a pipeline would hold beside the plan, and free the layout, which borrows the
 * placement. */
static void note_held(const int32_t *placement, gp_plan *plan) {
  for (int32_t s = 0; s < plan->stage_count; s++)
    for (int32_t copy = 0; copy < plan->copy_count; copy++)
      add_copy(plan, s, copy, plan->devices[placement[s * plan->copy_count + copy]].held);
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
                     .share = device < 0 ? 0 : device + 1,
                     .remat = pipeline->remat,
                     .layers = layers,
                     .scaled = pipeline->loss_scale.scale > 0,
                     .finite = pipeline->finite == GP_FINITE_RAISE,
                     .fuse = !pipeline->unfused,
                     .sum_group = pipeline->sum_group,
                     .bucket = pipeline->bucket};
  if (!status) status = gp_layout_new(pipeline, placement, &layout);
  if (status) {
    gp_free(layers);
    for (int k = 0; k < 2; k++) gp_trace_free(spec->shapes[k].trace);
    return status;
  }
  if (device == GP_PLAN_SHOWN) env.share = gp_plan_share_of_shown(&env, spec);
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
