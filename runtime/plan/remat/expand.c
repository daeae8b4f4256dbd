/* plan/remat/expand.c - see expand.h. */
#include "plan/remat/expand.h"

#include "base/memory.h"

/* Write a step of a chain as steps of its layers. */
static void write_layers(const gp_stage_chain *chain, gp_remat_step step, gp_remat_list *list) {
  const int32_t *first = &chain->groups.first[step.layer];
  const bool back = step.act == GP_REMAT_BACKWARD;
  step.option = back ? gp_stage_chain_name(chain, step.layer, step.option) : 0;
  for (int32_t l = 0; l < first[1] - first[0]; l++) {
    step.layer = back ? first[1] - 1 - l : first[0] + l;
    list->steps[list->count++] = step;
  }
}

gp_status gp_remat_expand(const gp_stage_chain *chain, const gp_remat_list *from,
                          gp_remat_list *to) {
  const int32_t *first = chain->groups.first;
  size_t count = 0;
  *to = (gp_remat_list){0};
  for (int32_t i = from->backward_begins; i < from->count; i++)
    count += (size_t)(first[from->steps[i].layer + 1] - first[from->steps[i].layer]);
  GP_TRY(gp_alloc_array(count + 1, sizeof *to->steps, (void **)&to->steps));
  for (int32_t i = from->backward_begins; i < from->count; i++)
    write_layers(chain, from->steps[i], to);
  return GP_OK;
}
