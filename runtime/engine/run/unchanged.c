/* engine/run/unchanged.c - checks that backward reads the same parameters and inputs as forward.
 *
 * Between the two halves of a split pass the script may do anything. A change of a parameter, or an
 * update, would get into the gradients unnoticed, because recomputation and input gradients read
 * weights.
 */
#include "base/tensor.h"
#include "engine/run/weights.h"
#include "engine/state/pipeline.h"

/* Notes how often parameters and inputs have been written to so far. */
void gp_unchanged_note(gp_pipeline *p, const gp_run_args *args) {
  for (int32_t i = 0; i < p->param_count; i++)
    if (p->values[i]) p->seen.params[i] = gp_tensor_writes(p->values[i]);
  for (int i = 0; i < args->input_count; i++) p->seen.inputs[i] = gp_tensor_writes(args->inputs[i]);
  p->seen.updates = p->updates;
}

gp_status gp_unchanged_check(const gp_pipeline *p, const gp_run_args *args) {
  if (p->seen.updates != p->updates)
    return gp_fail(GP_ESTATE, "backward: the parameters were updated after forward, expected those "
                              "that forward used: call backward before the update");
  for (int32_t i = 0; i < p->param_count; i++)
    if (p->values[i] && p->seen.params[i] != gp_tensor_writes(p->values[i]) &&
        !gp_param_is_buffer(p->params[i]))
      return gp_fail(GP_ESTATE,
                     "backward: a parameter of layer %d was changed after forward, "
                     "expected the value that forward used: call forward again",
                     (int)p->main_layer[i] + 1);
  for (int i = 0; i < args->input_count; i++)
    if (p->seen.inputs[i] != gp_tensor_writes(args->inputs[i]))
      return gp_fail(GP_ESTATE,
                     "backward: input %d was changed after forward, expected the values "
                     "that forward used: call forward again",
                     i + 1);
  return GP_OK;
}
