/* engine/memory/held.c - what a pipeline holds of a device's memory beside its plans. */
#include "base/memory.h"
#include "base/tensor.h"
#include "engine/optimizer/optimizer.h"
#include "engine/state/pipeline.h"
#include "graph/param.h"

static size_t size_of(const gp_tensor *block) { return block ? gp_tensor_bytes(block) : 0; }

/* Add up the moments of the parameters whose stage lies on the device. */
static size_t moments_on(const gp_pipeline *p, int device) {
  const gp_optimizer *o = p->optimizer;
  size_t sum = 0;
  for (int32_t m = 0; o && m < o->member_count; m++) {
    const gp_param *param = o->members[m].param;
    const int32_t i = gp_layout_find(&p->layout, param);
    size_t bytes;
    if (i < 0 || p->placement[p->param_stage[i] * p->copy_count] != device) continue;
    if (!gp_size_align(gp_meta_bytes(gp_param_meta(param)), GP_MOMENT_ALIGNMENT, &bytes))
      sum += bytes * (size_t)o->moments;
  }
  return sum;
}

/* Add what one copy of a stage holds, in the order of make_second_copy (arena.c). */
static void add_copy(const gp_pipeline *p, int32_t stage, int32_t copy, size_t *bytes) {
  const gp_arena *a = &p->arenas[stage];
  const bool own = !copy || a->values[1] != a->values[0];
  if (own) bytes[GP_HELD_PARAMETERS] += copy ? a->value_bytes : size_of(a->value_memory);
  if (own) bytes[GP_HELD_BUFFERS] += copy ? a->buffer_bytes : 2 * size_of(a->buffer_memory);
  bytes[GP_HELD_GRADIENTS] += copy ? a->grad_bytes : size_of(a->grad_memory);
  bytes[GP_HELD_EXTRAS] += a->extra_bytes;
  if (copy) return;
  if (a->received_grads) bytes[GP_HELD_GRADIENTS] += a->grad_bytes;
  if (a->received_extras) bytes[GP_HELD_EXTRAS] += a->extra_bytes;
  bytes[GP_HELD_PACKED] += a->packed_bytes;
  bytes[GP_HELD_HALVES] += a->half_bytes;
}

void gp_pipeline_held(const gp_pipeline *p, int device, size_t bytes[GP_HELD_COUNT],
                      size_t *measured) {
  const gp_worker *worker = &p->workers[device];
  for (int k = 0; k < GP_HELD_COUNT; k++) bytes[k] = 0;
  *measured = worker->taken;
  for (int32_t h = 0; h < p->stage_count * p->copy_count; h++) {
    const int32_t stage = h / p->copy_count;
    const gp_arena *a = &p->arenas[stage];
    if (p->placement[h] != device) continue;
    add_copy(p, stage, h % p->copy_count, bytes);
    if (h % p->copy_count == 0)
      *measured += size_of(a->value_memory) + size_of(a->grad_memory) + size_of(a->buffer_memory);
  }
  for (int32_t x = 0; x < p->extra_count; x++) {
    const int32_t param = p->extras[x].param;
    if (p->extras[x].received && p->placement[p->param_stage[param] * p->copy_count] == device)
      bytes[GP_HELD_EXTRAS] += gp_meta_bytes(gp_param_meta(p->params[param]));
  }
  bytes[GP_HELD_OPTIMIZER] = moments_on(p, device);
  *measured += bytes[GP_HELD_OPTIMIZER];
  bytes[GP_HELD_THREADS] = worker->scratch_bytes * (size_t)worker->threads;
}

size_t gp_pipeline_shared(const gp_pipeline *p, int device) { return p->work[device].bytes; }
