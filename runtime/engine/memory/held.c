/* engine/memory/held.c - what a pipeline holds of a device's memory beside its plans. */
#include "base/memory.h"
#include "base/tensor.h"
#include "engine/memory/arena.h"
#include "engine/optimizer/optimizer.h"
#include "engine/state/pipeline.h"
#include "graph/param.h"

static size_t size_of(const gp_tensor *block) { return block ? gp_tensor_bytes(block) : 0; }

/* Add up the moments of the parameters that the device updates. */
static size_t moments_on(const gp_pipeline *p, int device) {
  const gp_optimizer *o = p->optimizer;
  size_t sum = 0;
  for (int32_t m = 0; o && m < o->member_count; m++) {
    const gp_param *param = o->members[m].param;
    const int32_t i = gp_layout_find(&p->layout, param);
    size_t bytes;
    if (i < 0 || gp_owner_device(p, i) != device) continue;
    if (!gp_size_align(gp_meta_bytes(gp_param_meta(param)), GP_MOMENT_ALIGNMENT, &bytes))
      sum += bytes * (size_t)o->moments;
  }
  return sum;
}

/* Add what one copy of a stage holds, in the order of make_copy (arena.c). */
static void add_copy(const gp_pipeline *p, int32_t stage, int32_t copy, size_t *bytes) {
  const gp_arena *a = &p->arenas[stage];
  const gp_arena_copy *own = &a->copies[copy];
  bytes[GP_HELD_PARAMETERS] += size_of(own->value_memory);
  bytes[GP_HELD_BUFFERS] += (copy ? 1 : 2) * size_of(own->buffer_memory);
  bytes[GP_HELD_GRADIENTS] += size_of(own->grad_memory);
  bytes[GP_HELD_EXTRAS] += a->extra_bytes;
  if (own->earlier)
    bytes[GP_HELD_GRADIENTS] += p->layout.slices[stage * p->copy_count + copy].grads;
  if (own->received_grads) bytes[GP_HELD_GRADIENTS] += gp_arena_received(p, stage, copy);
  if (own->received_extras)
    bytes[GP_HELD_EXTRAS] += gp_arena_received_extras(p, stage, copy, a->extra_bytes);
  if (copy) return;
  bytes[GP_HELD_PACKED] += a->packed_bytes;
  bytes[GP_HELD_HALVES] += a->half_bytes;
}

void gp_pipeline_held(const gp_pipeline *p, int device, size_t bytes[GP_HELD_COUNT],
                      size_t *measured) {
  const gp_worker *worker = &p->workers[device];
  for (int k = 0; k < GP_HELD_COUNT; k++) bytes[k] = 0;
  *measured = worker->taken;
  for (int32_t h = 0; h < p->stage_count * p->copy_count; h++) {
    const int32_t stage = h / p->copy_count, copy = h % p->copy_count;
    const gp_arena_copy *own = &p->arenas[stage].copies[copy];
    if (p->placement[h] != device) continue;
    add_copy(p, stage, copy, bytes);
    *measured +=
        size_of(own->value_memory) + size_of(own->grad_memory) + size_of(own->buffer_memory);
  }
  for (int32_t x = 0; x < p->extra_count; x++)
    if (p->extras[x].received && gp_owner_device(p, p->extras[x].param) == device)
      bytes[GP_HELD_EXTRAS] += gp_meta_bytes(gp_param_meta(p->params[p->extras[x].param]));
  bytes[GP_HELD_OPTIMIZER] = moments_on(p, device);
  *measured += bytes[GP_HELD_OPTIMIZER];
  bytes[GP_HELD_THREADS] = worker->scratch_bytes * (size_t)worker->threads;
}

size_t gp_pipeline_on_host(const gp_pipeline *p, int device) { return p->workers[device].on_host; }

size_t gp_pipeline_shared(const gp_pipeline *p, int device) { return p->work[device].bytes; }
