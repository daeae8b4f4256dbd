/* engine/bind/states.c - what CPU kernels work out once for an instruction: see states.h.
 *
 * The plan says where each state lies; this file prepares the states in the plan's order and
 * destroys them in the same order. Workers run nothing of a plan before it is bound, and only read
 * the states afterwards.
 */
#include "engine/bind/states.h"

#include "engine/state/pipeline.h"

/* A walk over all states. states: where those of one stage's copy and one shape lie. */
typedef struct visit {
  gp_binding *binding;
  char *states;
  int64_t left; /* to be destroyed */
} visit;

static gp_status prepare(void *context, const gp_instr *instr) {
  visit *v = context;
  GP_TRY(gp_op_get(instr->op)->cpu.prepare(&instr->call, v->states + instr->state.offset));
  v->binding->state_count++;
  return GP_OK;
}

static gp_status destroy(void *context, const gp_instr *instr) {
  visit *v = context;
  void (*destroy_state)(void *) = gp_op_get(instr->op)->cpu.destroy;
  /* if prepare failed for one state, the later ones do not exist */
  if (v->left-- > 0 && destroy_state) destroy_state(v->states + instr->state.offset);
  return GP_OK;
}

static gp_status each_state(visit *v, gp_state_visit visit_state) {
  const gp_plan *plan = v->binding->plan;
  for (int32_t h = 0; h < plan->stage_count * plan->copy_count; h++)
    for (int32_t k = 0; k < 2 && gp_device_is_here(v->binding->pipeline, plan->placement[h]); k++) {
      v->states = v->binding->states[2 * h + k];
      GP_TRY(gp_plan_each_state(plan, h, k, visit_state, v));
    }
  return GP_OK;
}

gp_status gp_states_new(gp_binding *b) { return each_state(&(visit){.binding = b}, prepare); }

void gp_states_free(gp_binding *b) {
  if (b->state_count) (void)each_state(&(visit){.binding = b, .left = b->state_count}, destroy);
}
