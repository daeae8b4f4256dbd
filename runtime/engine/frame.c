/* engine/frame.c - the addresses that a task works on: one per base of its plan.
 *
 * What a program does not touch keeps an old address, never read. Parameters are reached through here, so
 * that one program serves every version of the weights and both copies of a stage.
 */
#include "base/tensor.h"
#include "engine/gpu/wiring.h"
#include "engine/pipeline.h"

/* Address of this micro-batch's part of a whole mini-batch tensor: a multiple of the rows, in order. */
static void *rows_of(const gp_tensor *tensor, const gp_plan *plan, int64_t first_row) {
  size_t rows = (size_t)gp_plan_first_row(plan, plan->step_micros);
  size_t row_bytes = gp_meta_bytes(gp_tensor_meta(tensor)) / rows;
  return (char *)gp_tensor_data(tensor) + (size_t)first_row * row_bytes;
}

/* What this micro-batch keeps for later tasks. A stream takes slots in turn; otherwise they are coloured. */
static void bind_slots(void **frame, const gp_binding *binding, const gp_task *task,
                       int64_t micro) {
  const gp_plan *plan = binding->plan;
  int32_t holder = gp_plan_holder(plan, task->stage, task->copy);
  const gp_slots *slots = &plan->slots[holder];
  char *area = binding->kept[holder], *address[GP_SLOT_KINDS] = {0};
  for (int kind = 0; area && kind < GP_SLOT_KINDS; kind++) {
    int64_t slot = task->slot[kind];
    if (slot >= 0 && plan->batch) slot = micro % slots->count[kind];
    if (slot >= 0) address[kind] = area + (size_t)slot * slots->bytes[kind];
    area += (size_t)slots->count[kind] * slots->bytes[kind];
  }
  frame[GP_BASE_SAVED] = address[task->kept ? GP_SLOT_KEPT : GP_SLOT_DROPPED];
  frame[GP_BASE_RECOMPUTED] = address[GP_SLOT_RECOMPUTED];
  frame[GP_BASE_CARRIED] = address[GP_SLOT_CARRIED];
}

/* The newest version lies in the arena, older ones in the stash. */
static void bind_weights(void **frame, const gp_binding *binding, const gp_task *task,
                         int64_t micro) {
  const gp_pipeline *p = binding->pipeline;
  const gp_plan *plan = binding->plan;
  const gp_arena *own = &p->arenas[task->stage];
  const gp_versions *v = &plan->versions[task->stage];
  int32_t holder = gp_plan_holder(plan, task->stage, task->copy);
  size_t bytes = plan->shapes[task->shape].programs[task->stage].invariant_bytes, version = 0;
  char *invariant = binding->invariant[2 * holder + task->shape];
  for (int32_t s = 0; s < plan->stage_count; s++) frame[GP_BASE_VALUE + s] = p->arenas[s].values[0];
  frame[GP_BASE_VALUE + task->stage] = own->values[task->copy];
  if (plan->batch) version = (size_t)(task->version + (micro - task->micro) / plan->batch);
  if (plan->batch && !task->newest)
    frame[GP_BASE_VALUE + task->stage] =
        binding->stash[task->stage] + version % (size_t)(v->live - 1) * v->stash_bytes;
  frame[GP_BASE_INVARIANT] = invariant ? invariant + version % (size_t)v->live * bytes : NULL;
  frame[GP_BASE_GUEST] = binding->guests[2 * holder + task->shape];
  frame[GP_BASE_BUFFER] = own->buffers[task->copy];
  frame[GP_BASE_GRAD] = own->grads[task->copy];
  frame[GP_BASE_EXTRA] = own->extras[task->copy];
}

static void bind_edges(gp_worker *worker, const gp_binding *binding, const gp_task *task,
                       int64_t micro) {
  const gp_plan *plan = binding->plan;
  for (int32_t u = 0; u < task->use_count; u++) {
    int32_t edge = task->uses[u].edge;
    const gp_channel *channel = &plan->channels[edge];
    size_t slot = (size_t)(gp_plan_turn(plan, edge, micro) % channel->slots);
    char *memory = gp_binding_slots(binding, edge, task->copy, worker->device);
    worker->frame[GP_BASE_VALUE + plan->stage_count + edge] =
        memory ? memory + slot * channel->bytes : NULL;
  }
}

/* What the script gave and wants back, on the host. */
static void bind_feed(void **frame, const gp_plan *plan, const gp_feed *feed, const gp_task *task,
                      int64_t own) {
  int64_t row = feed->rows[own];
  frame[GP_BASE_EXPORT + GP_EXPORT_LOSS] = &feed->results[own].loss;
  frame[GP_BASE_EXPORT + GP_EXPORT_COUNT] = &feed->results[own].count[task->copy];
  if (feed->output) frame[GP_BASE_EXPORT + GP_EXPORT_OUTPUT] = rows_of(feed->output, plan, row);
  if (feed->out_grad) frame[GP_BASE_OUT_GRAD] = rows_of(feed->out_grad, plan, row);
  for (int i = 0; i < feed->input_count; i++)
    frame[GP_BASE_INPUT + i] = rows_of(feed->inputs[i], plan, row);
  for (int i = 0; i < feed->target_count; i++)
    frame[GP_BASE_TARGET + i] = rows_of(feed->targets[i], plan, row);
}

void gp_frame_bind(gp_worker *worker, const gp_feed *feed, const gp_task *task, int64_t micro) {
  const gp_binding *binding = worker->pipeline->run.binding;
  const gp_plan *plan = binding->plan;
  int64_t own = micro % plan->step_micros;
  void **frame = worker->frame;
  frame[GP_BASE_TEMP] = binding->devices[worker->device].temp;
  if (gp_lane_is_gpu(&worker->lane))
    gp_desk_bind(worker, feed, task, micro);
  else
    bind_feed(frame, plan, feed, task, own);
  bind_slots(frame, binding, task, micro);
  bind_weights(frame, binding, task, micro);
  bind_edges(worker, binding, task, micro);
}
