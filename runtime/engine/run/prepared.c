/* engine/run/prepared.c - what depends on the weights alone (packed copies, casts) is made once per
 * change of the weights.
 *
 * Every run begins with tasks P that make it. If no weight was written to and no update was made
 * since the plan's last run, the results of that run are still there, and the tasks do nothing.
 * Runs with updates of their own always make it anew.
 */
#include "base/tensor.h"
#include "engine/run/weights.h"
#include "engine/state/pipeline.h"

/* Return a number that grows with every write of the script and every update; it is never 0. */
static uint64_t state_of_weights(const gp_pipeline *p) {
  uint64_t state = 1 + p->updates;
  for (int32_t i = 0; i < p->param_count; i++)
    if (p->values[i] && !gp_param_is_buffer(p->params[i])) state += gp_tensor_writes(p->values[i]);
  return state;
}

/* Do devices here read weights of other ranks, which may have been written to unnoticed? */
static bool reads_far(const gp_pipeline *p) {
  return p->spread && (p->copy_count > 1 || p->run.plan->crossing_count > 0);
}

void gp_prepared_begin(gp_pipeline *p) {
  gp_run *run = &p->run;
  run->weights = state_of_weights(p);
  run->prepared = run->binding->prepared == run->weights && !reads_far(p);
  run->binding->prepared = 0; /* until the run has succeeded */
}

void gp_prepared_end(gp_pipeline *p) {
  gp_run *run = &p->run;
  if (!run->status || run->prepared) run->binding->prepared = run->weights;
}
