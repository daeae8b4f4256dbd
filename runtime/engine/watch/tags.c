/* engine/watch/tags.c - see tags.h. */
#include "engine/watch/tags.h"

#include <stdio.h>

/* ---- tags ---------------------------------------------------------------------------------- */

/* Tags have 32 bits: the task, the instruction, and the kind of fault. */
uint32_t gp_tag_of(const gp_binding *binding, int32_t task, int32_t instr, bool finite) {
  return (uint32_t)task << binding->tag_bits | (uint32_t)instr << 1 | (uint32_t)finite;
}

gp_tag gp_tag_read(const gp_binding *binding, int32_t device, uint32_t tag) {
  int32_t bits = binding->tag_bits;
  return (gp_tag){.task = binding->plan->first[device] + (int32_t)(tag >> bits),
                  .instr = (int32_t)(tag & ((1u << bits) - 1)) >> 1,
                  .finite = tag & 1};
}

int32_t gp_tag_bits(const gp_plan *plan) {
  int32_t most = 1, bits = 1;
  for (int32_t t = 0; t < plan->first[plan->device_count]; t++) {
    const gp_program *program = plan->tasks[t].program;
    if (program && program->instr_count > most) most = program->instr_count;
  }
  while (most >> bits) bits++;
  return bits + 1;
}

/* ---- texts --------------------------------------------------------------------------------- */

/* The module that applied the op, "3.fc (Linear 256 -> 10)": what every failure names first. */
static const char *label_of(const gp_program *program, const gp_instr *instr) {
  return program->graph->labels[program->graph->nodes[instr->node].label];
}

/* Kernels know the numbers; this function knows the layer, so it puts the layer before their
 * text. */
gp_status gp_instr_name_failure(const gp_program *program, const gp_instr *instr,
                                gp_status status) {
  char prefix[256];
  snprintf(prefix, sizeof prefix, "%s", label_of(program, instr));
  return gp_fail_prefix(status, prefix);
}

gp_status gp_instr_not_finite(const gp_program *program, const gp_instr *instr) {
  bool backward = program->graph->nodes[instr->node].phase == GP_BACKWARD;
  return gp_fail(GP_EFINITE, "%s: %s made a value that is not finite%s", label_of(program, instr),
                 gp_op_name(instr->op), backward ? " in the backward pass" : "");
}
