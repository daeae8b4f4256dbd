/* engine/watch/tags.h - where in a program something went wrong: the tags that devices with a queue
 * write into fault words, and the texts of such failures. */
#ifndef GP_ENGINE_TAGS_H
#define GP_ENGINE_TAGS_H

#include "engine/state/binding.h"

/* What a tag in a fault word says: the task, its instruction, and whether a value was not
 * finite. */
typedef struct gp_tag {
  int32_t task, instr;
  bool finite;
} gp_tag;

/* Bits of a tag below the task's number. */
int32_t gp_tag_bits(const gp_plan *plan);
/* Make and read a tag. task: counted on its device for gp_tag_of, in the plan for gp_tag_read. */
uint32_t gp_tag_of(const gp_binding *binding, int32_t task, int32_t instr, bool finite);
gp_tag gp_tag_read(const gp_binding *binding, int32_t device, uint32_t tag);

/* Fail because a value is not finite. */
gp_status gp_instr_not_finite(const gp_program *program, const gp_instr *instr);
/* Put the layer's name before the text of a failure. Returns status. */
gp_status gp_instr_name_failure(const gp_program *program, const gp_instr *instr, gp_status status);

#endif
