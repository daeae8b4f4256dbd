/* plan/memory/states.c - where the states of CPU kernels lie: what a kernel works out once for an
 * instruction (ops/op.h).
 *
 * A state belongs to a node: the programs of a stage in which the node occurs (forward passes that
 * keep or drop, recomputation) share it, so that it is made once on each device that holds the
 * stage. Micro-batches of the other size have another graph, with metas and states of its own.
 * Devices with memory of their own have none, because they run other kernels.
 */
#include "base/memory.h"
#include "plan/memory/places.h"

enum { ALIGNMENT = 64 };

/* Place the state of an instruction. *known: the offset of its node's state + 1; 0: it has none
 * yet. */
static gp_status place(gp_instr *instr, size_t *known, size_t *end) {
  gp_instr_state *state = &instr->state;
  size_t bytes;
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

gp_status gp_place_states(gp_shaper *s, int32_t stage) {
  gp_stage_programs *programs = &s->shape->programs[stage];
  gp_program *list[GP_STAGE_PROGRAM_KINDS];
  int count = gp_stage_programs_list(programs, list);
  for (int i = 0; i < count; i++)
    for (int32_t n = 0; n < list[i]->instr_count; n++) {
      gp_instr *instr = &list[i]->instrs[n];
      GP_TRY(place(instr, &s->states[instr->node], &programs->state_bytes));
    }
  return GP_OK;
}

gp_status gp_plan_each_state(const gp_plan *plan, int32_t holder, int32_t shape,
                             gp_state_visit visit, void *context) {
  if (!plan->states[2 * holder + shape].bytes) return GP_OK;
  gp_program *list[GP_STAGE_PROGRAM_KINDS];
  int count =
      gp_stage_programs_list(&plan->shapes[shape].programs[holder / plan->copy_count], list);
  for (int i = 0; i < count; i++)
    for (int32_t n = 0; n < list[i]->instr_count; n++)
      if (list[i]->instrs[n].state.first) GP_TRY(visit(context, &list[i]->instrs[n]));
  return GP_OK;
}
