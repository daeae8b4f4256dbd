/* engine/bind/states.c - what CPU kernels work out once for an instruction: see states.h.
 *
 * The plan says where each state lies; here they are prepared, in its order, and destroyed in the
 * same. Workers run nothing of a plan before it is bound, and only read the states afterwards.
 */
#include "engine/bind/states.h"

/* The states of one device. */
typedef struct visit {
  gp_bound_device *device;
  int64_t left; /* to be destroyed */
} visit;

static gp_status prepare(void *context, gp_instr *instr) {
  visit *v = context;
  char *state = v->device->states + instr->state.offset;
  if (instr->state.first) {
    GP_TRY(gp_op_get(instr->op)->cpu.prepare(&instr->call, state));
    v->device->state_count++;
  }
  instr->call.state = state;
  return GP_OK;
}

/* After a failure the later ones were not prepared. */
static gp_status destroy(void *context, gp_instr *instr) {
  visit *v = context;
  void (*destroy_state)(void *) = gp_op_get(instr->op)->cpu.destroy;
  if (!instr->state.first || v->left-- <= 0) return GP_OK;
  if (destroy_state) destroy_state(v->device->states + instr->state.offset);
  return GP_OK;
}

gp_status gp_states_new(gp_binding *b) {
  for (int32_t d = 0; d < b->plan->device_count; d++) {
    visit v = {.device = &b->devices[d]};
    GP_TRY(gp_plan_each_state(b->plan, d, prepare, &v));
  }
  return GP_OK;
}

void gp_states_free(gp_binding *b) {
  for (int32_t d = 0; b->devices && d < b->plan->device_count; d++) {
    visit v = {.device = &b->devices[d], .left = b->devices[d].state_count};
    if (v.left) (void)gp_plan_each_state(b->plan, d, destroy, &v);
  }
}
