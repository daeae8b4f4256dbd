/* engine/run/frame.c - the addresses that a task works on: one per base of its plan.
 *
 * A base that a program does not touch keeps an old address, which is never read. Programs reach
 * parameters through the frame, so that one program serves every version of the weights and both
 * copies of a stage.
 */
#include "base/tensor.h"
#include "engine/bind/step_links.h"
#include "engine/intake/intake.h"
#include "engine/memory/work.h"
#include "engine/run/frame.h"
#include "engine/state/pipeline.h"
#include "engine/update/sums.h"
#include "plan/records.h"

/* Set the addresses of what a micro-batch keeps for later tasks, and of the task's temporaries. */
static void bind_slots(void **frame, const gp_binding *binding, const gp_task *task,
                       int64_t micro) {
  const gp_plan *plan = binding->plan;
  int32_t holder = gp_plan_holder(plan, task->stage, task->copy);
  char *area = gp_work_area(binding, plan->placement[holder]);
  frame[GP_BASE_TEMP] = area + task->temp;
  for (int slot = 0; slot < GP_SLOT_BASES; slot++)
    if (task->slot[slot] >= 0)
      frame[GP_BASE_SAVED + slot] = area + gp_plan_slot_place(plan, task, slot, micro);
}

/* Where F records for S, or S finds what the copy that ran F has recorded. */
static char *record_of(const gp_binding *binding, const gp_task *task, int64_t micro) {
  const gp_plan *plan = binding->plan;
  const bool reads = task->op == GP_ACT_S;
  const int32_t holder = gp_plan_holder(plan, task->stage, reads ? task->from : task->copy);
  char *first = reads ? binding->recorded[holder] : binding->records[holder];
  return first ? first + gp_plan_record_at(plan, task->stage, micro) : NULL;
}

/* Set the addresses of the weights that a task reads, and of the gradients that it adds to. */
static void bind_weights(gp_worker *worker, const gp_binding *binding, const gp_task *task,
                         int64_t micro) {
  void **frame = worker->frame;
  const gp_pipeline *p = binding->pipeline;
  const gp_plan *plan = binding->plan;
  const gp_arena *own = &p->arenas[task->stage];
  int32_t holder = gp_plan_holder(plan, task->stage, task->copy);
  const gp_versions *v = &plan->versions[holder];
  size_t bytes = plan->shapes[task->shape].programs[task->stage].invariant_bytes, version = 0;
  char *invariant = binding->invariant[2 * holder + task->shape];
  /* tasks of other stages see the first copy's newest values: so again for the task before */
  frame[GP_BASE_VALUE + worker->framed] = p->arenas[worker->framed].copies[0].values;
  frame[GP_BASE_VALUE + task->stage] = binding->values[holder];
  worker->framed = task->stage;
  if (plan->batch) version = (size_t)(task->version + (micro - task->micro) / plan->batch);
  /* the newest version lies in the arena, older ones in the stash */
  if (plan->batch && !task->newest)
    frame[GP_BASE_VALUE + task->stage] =
        binding->stash[holder] + version % (size_t)(v->live - 1) * v->stash_bytes;
  frame[GP_BASE_INVARIANT] = invariant ? invariant + version % (size_t)v->live * bytes : NULL;
  frame[GP_BASE_PACKED] = own->packed;
  frame[GP_BASE_HALF] = own->halves;
  frame[GP_BASE_CONSTANT_COPY] = binding->constant_copies[2 * holder + task->shape];
  frame[GP_BASE_BUFFER] = binding->buffers[holder];
  gp_partial sum = {own->copies[task->copy].grads, own->copies[task->copy].extras};
  if (task->partial) sum = gp_partial_of(binding, task, task->partial);
  frame[GP_BASE_GRAD] = sum.grads;
  frame[GP_BASE_EXTRA] = sum.extras;
  frame[GP_BASE_RECORD] = record_of(binding, task, micro);
}

/* Set the addresses of a task's edges. Those for the stored micro-batch were looked up when the
 * plan was bound; a later micro-batch of a stream uses other slots. */
static void bind_edges(gp_worker *worker, const gp_binding *binding, const gp_task *task,
                       int64_t micro) {
  const gp_plan *plan = binding->plan;
  const gp_bound_use *bound = gp_binding_uses(binding, task);
  for (int32_t u = 0; u < task->use_count; u++) {
    int32_t edge = task->uses[u].edge;
    if (edge >= plan->edge_count) continue;
    char *address = bound[u].address;
    if (address && micro != task->micro) {
      int64_t moved = gp_binding_turn(plan, edge, micro).slot - bound[u].turn.slot;
      address += moved * (int64_t)gp_plan_channel_of(plan, edge, micro)->bytes;
    }
    worker->frame[gp_base_of_edge(plan->stage_count, edge)] = address;
  }
}

/* Set the addresses at which this device reads parameters of other devices. The device that owns
 * one reads it in place; if no other device reads it, there is no edge. */
static void bind_crossings(gp_worker *worker, const gp_binding *binding) {
  const gp_pipeline *p = binding->pipeline;
  for (int32_t i = 0; binding->plan->crossing_count && i < p->param_count; i++) {
    const int32_t crossing = p->layout.at[i].crossing - 1;
    if (crossing >= 0 && crossing < binding->plan->crossing_count && p->values[i])
      worker->frame[gp_base_of_crossing(p->stage_count, crossing)] = gp_tensor_data(p->values[i]);
  }
  for (int32_t e = 0; e < binding->plan->step_edge_count; e++) {
    const gp_step_edge *edge = &binding->plan->step_edges[e];
    if (edge->value != GP_STEP_PARAM) continue;
    const gp_layout_param *at = &p->layout.at[edge->number];
    const int32_t crossing = (edge->half ? at->half_crossing : at->crossing) - 1;
    worker->frame[gp_base_of_crossing(p->stage_count, crossing)] =
        gp_step_edge_address(binding, e, worker->device);
  }
}

void gp_frame_begin(gp_worker *worker) {
  const gp_binding *binding = worker->pipeline->run.binding;
  const gp_arena *arenas = worker->pipeline->arenas;
  int32_t stages = binding->plan->stage_count;
  for (int32_t s = 0; s < stages; s++) {
    worker->frame[GP_BASE_VALUE + s] = arenas[s].copies[0].values;
    worker->frame[GP_BASE_VALUE + stages + s] = arenas[s].copies[0].buffers;
  }
  for (int32_t k = 0; k < gp_plan_constant_count(binding->plan); k++)
    worker->frame[gp_base_of_constant(stages, k)] = binding->constants[k];
  bind_crossings(worker, binding);
  worker->framed = 0;
}

void gp_frame_bind(gp_worker *worker, gp_task_run *r) {
  const gp_binding *binding = worker->pipeline->run.binding;
  gp_intake_of(worker)->bind(worker, r);
  bind_slots(worker->frame, binding, r->task, r->micro);
  bind_weights(worker, binding, r->task, r->micro);
  bind_edges(worker, binding, r->task, r->micro);
}
