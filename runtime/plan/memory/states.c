/* plan/memory/states.c - where the states of CPU kernels lie: what a kernel works out once for an
 * instruction (ops/op.h).
 *
 * A state belongs to a node and a device: the programs of a stage in which the node occurs (forward
 * passes that keep or drop, recomputation) share it, so that it is made once. Micro-batches of
 * another size are another graph, with metas and states of their own. Devices with memory of their
 * own have none: their kernels are other ones.
 */
#include "base/memory.h"
#include "plan/make.h"

enum { ALIGNMENT = 64 };

/* Where a device's programs are looked for: the copy-th runs of the stages of a shape. */
typedef struct walk {
  const gp_plan *plan;
  const gp_shape_plan *shape;
  int32_t stage, copy;
} walk;

static int32_t device_of(const walk *w) {
  return w->plan->placement[gp_plan_holder(w->plan, w->stage, w->copy)];
}

/* Those of the second copy stand behind those of the first. */
static const gp_stage_programs *programs_of(const walk *w) {
  return &w->shape->programs[w->copy * w->plan->stage_count + w->stage];
}

/* ---- places -------------------------------------------------------------------------------- */

/* offset[node]: of its state, plus one; 0: it has none yet. */
static gp_status place(gp_instr *instr, size_t *offset, size_t *end) {
  gp_instr_state *state = &instr->state;
  size_t bytes, *known = &offset[instr->node];
  if (!state->bytes) return GP_OK;
  state->first = *known == 0;
  if (state->first) {
    *known = *end + 1;
    GP_TRY(gp_size_align(state->bytes, ALIGNMENT, &bytes));
    GP_TRY(gp_size_add(*end, bytes, end));
  }
  state->offset = *known - 1;
  return GP_OK;
}

static gp_status place_stage(gp_plan *plan, const walk *w, size_t *offset) {
  gp_program *list[GP_STAGE_PROGRAM_KINDS];
  int count = gp_stage_programs_list(programs_of(w), list);
  int32_t device = device_of(w);
  if (!gp_plan_on_host(plan, device)) return GP_OK;
  for (int i = 0; i < count; i++)
    for (int32_t n = 0; n < list[i]->instr_count; n++)
      GP_TRY(place(&list[i]->instrs[n], offset, &plan->devices[device].states.bytes));
  return GP_OK;
}

/* A node belongs to one stage, so one table serves all of them. */
static gp_status place_shape(gp_plan *plan, walk w) {
  size_t *offset;
  gp_status status = GP_OK;
  GP_TRY(gp_alloc_array((size_t)w.shape->trace->graph.node_count + 1, sizeof *offset,
                        (void **)&offset));
  for (w.stage = 0; !status && w.stage < plan->stage_count; w.stage++)
    status = place_stage(plan, &w, offset);
  gp_free(offset);
  return status;
}

gp_status gp_plan_place_states(gp_plan *plan) {
  for (int k = 0; k < 2; k++)
    for (int32_t copy = 0; plan->shapes[k].programs && copy < plan->copy_count; copy++)
      GP_TRY(place_shape(plan, (walk){plan, &plan->shapes[k], 0, copy}));
  return GP_OK;
}

/* ---- visits -------------------------------------------------------------------------------- */

static gp_status visit_stage(const walk *w, gp_state_visit visit, void *context) {
  gp_program *list[GP_STAGE_PROGRAM_KINDS];
  int count = gp_stage_programs_list(programs_of(w), list);
  for (int i = 0; i < count; i++)
    for (int32_t n = 0; n < list[i]->instr_count; n++)
      if (list[i]->instrs[n].state.bytes) GP_TRY(visit(context, &list[i]->instrs[n]));
  return GP_OK;
}

gp_status gp_plan_each_state(const gp_plan *plan, int32_t device, gp_state_visit visit,
                             void *context) {
  walk w = {.plan = plan};
  if (!plan->devices[device].states.bytes) return GP_OK;
  for (int k = 0; k < 2; k++) {
    w.shape = &plan->shapes[k];
    for (w.stage = 0; w.shape->programs && w.stage < plan->stage_count; w.stage++)
      for (w.copy = 0; w.copy < plan->copy_count; w.copy++)
        if (device_of(&w) == device) GP_TRY(visit_stage(&w, visit, context));
  }
  return GP_OK;
}
