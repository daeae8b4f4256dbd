/* plan/uses.c - which edges a task touches: who acquires a slot, who waits, and whose use is the last.
 *
 * Programs say what they touch; nothing is declared twice.
 */
#include "base/memory.h"
#include "plan/plan.h"

/* Only edges need slots of channels; their bases are the last. */
static void touch(const gp_plan *plan, const gp_place *place, bool *touched) {
  int32_t edge = place->base - GP_BASE_VALUE - plan->stage_count;
  if (edge >= 0) touched[edge] = true;
}

/* List the edges that a task's program touches. */
static gp_status find_uses(gp_plan *plan, gp_task *task, bool *touched) {
  int32_t count = 0;
  for (int32_t e = 0; e < plan->edge_count; e++) touched[e] = false;
  for (int32_t n = 0; task->program && n < task->program->instr_count; n++) {
    const gp_instr *instr = &task->program->instrs[n];
    for (int i = 0; i < instr->call.n_in; i++) touch(plan, &instr->in[i], touched);
    for (int k = 0; k < instr->call.n_out; k++) touch(plan, &instr->out[k], touched);
  }
  for (int32_t e = 0; e < plan->edge_count; e++) count += touched[e];
  GP_TRY(gp_alloc_array((size_t)count + 1, sizeof(gp_edge_use), (void **)&task->uses));
  for (int32_t e = 0; e < plan->edge_count; e++)
    if (touched[e]) task->uses[task->use_count++] = (gp_edge_use){.edge = e};
  return GP_OK;
}

/* First use by a stage: the maker acquires and publishes, readers wait. Last use: release. A micro-batch
 * runs on one device of the stage. */
static void mark_uses(gp_plan *plan, int32_t holder, bool *seen) {
  int32_t stage = holder / plan->copy_count, device = plan->placement[holder];
  int32_t begin = plan->first[device], end = plan->first[device + 1];
  int32_t cells = plan->edge_count * plan->micro_count;
  for (int pass = 0; pass < 2; pass++) {
    for (int32_t i = 0; i < cells; i++) seen[i] = false;
    for (int32_t k = 0; k < end - begin; k++) {
      gp_task *task = &plan->tasks[pass ? end - 1 - k : begin + k];
      for (int32_t u = 0; task->stage == stage && u < task->use_count; u++) {
        gp_edge_use *use = &task->uses[u];
        bool *cell = &seen[use->edge * plan->micro_count + task->micro], first = !*cell;
        bool made_here = gp_plan_edge(plan, use->edge)->from == stage;
        *cell = true;
        if (!first) continue;
        if (pass)
          use->release = true;
        else
          use->wait = !made_here, use->acquire = use->publish = made_here;
      }
    }
  }
}

gp_status gp_plan_add_uses(gp_plan *plan) {
  bool *cells;
  size_t room = (size_t)plan->edge_count * (size_t)plan->micro_count;
  GP_TRY(gp_alloc_array(room + (size_t)plan->edge_count + 1, sizeof *cells, (void **)&cells));
  gp_status status = GP_OK;
  for (int32_t t = 0; !status && t < plan->first[plan->device_count]; t++)
    status = find_uses(plan, &plan->tasks[t], cells);
  for (int32_t h = 0; !status && h < plan->stage_count * plan->copy_count; h++)
    mark_uses(plan, h, cells);
  gp_free(cells);
  return status;
}
