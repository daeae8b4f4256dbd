/* engine/memory/arena.c - makes the arenas: memory for each stage's parameters, gradients and
 * buffers.
 *
 * Each of the three is one block, so that an update is one pass and a version of the weights one
 * copy. Programs know only offsets: the frame of a task says which arena, copy or version they work
 * on (run/frame.c).
 */
#include <stdio.h>

#include "base/memory.h"
#include "base/tensor.h"
#include "engine/memory/arena.h"
#include "engine/memory/block.h"
#include "engine/memory/take.h"
#include "engine/state/pipeline.h"
#include "graph/param.h"

/* ---- making -------------------------------------------------------------------------------- */

/* Does this process drive the device of a stage's first copy, which holds its parameters? */
static bool is_here(const gp_pipeline *p, int32_t stage) {
  return gp_device_is_here(p, p->placement[stage * p->copy_count]);
}

/* Move a parameter into its arena, or leave it to another rank: draw its first value there, or copy
 * the value that it has. */
static gp_status move_in(gp_pipeline *p, int32_t i) {
  gp_param *param = p->params[i];
  const gp_arena *a = &p->arenas[p->param_stage[i]];
  gp_region region = p->layout.at[i].region;
  size_t at = p->param_offset[i] = p->layout.at[i].offset;
  const gp_lane *lane = gp_stage_lane(p, p->param_stage[i], 0);
  if (!is_here(p, p->param_stage[i])) return gp_param_share(param, lane->rank, false), GP_OK;
  gp_tensor *memory = region == GP_REGION_BUFFER ? a->buffer_memory : a->value_memory;
  GP_TRY(gp_block_view(memory, at, param, &p->values[i]));
  GP_TRY(gp_param_move(param, p->values[i]));
  if (p->spread) gp_param_share(param, lane->rank, true);
  if (region == GP_REGION_TRAINABLE) GP_TRY(gp_block_view(a->grad_memory, at, param, &p->grads[i]));
  gp_param_set_grad(param, p->grads[i]);
  return GP_OK;
}

static char *start_of(const gp_tensor *memory) { return memory ? gp_tensor_data(memory) : NULL; }

/* Allocate what the second copy of a stage cannot share with the first, and its gradients, which it
 * must not share. */
static gp_status make_second_copy(const gp_pipeline *p, gp_arena *a, const gp_lane *first,
                                  const gp_lane *second) {
  bool apart = !gp_lane_shares(first, second);
  a->values[1] = a->values[0];
  a->buffers[1] = a->buffers[0];
  if (apart && a->value_bytes)
    GP_TRY(gp_pipeline_take(p, second, a->value_bytes, (void **)&a->values[1]));
  if (apart && a->buffer_bytes)
    GP_TRY(gp_pipeline_take(p, second, a->buffer_bytes, (void **)&a->buffers[1]));
  if (apart && a->grad_bytes)
    GP_TRY(gp_pipeline_take(p, first, a->grad_bytes, (void **)&a->received_grads));
  return a->grad_bytes ? gp_pipeline_take(p, second, a->grad_bytes, (void **)&a->grads[1]) : GP_OK;
}

/* Allocate a block that other devices read and scripts may keep. It is pinned if a GPU copies from
 * it: otherwise the copies would hold the GPU up. */
static gp_status new_block(const gp_pipeline *p, const gp_lane *lane, size_t bytes,
                           gp_tensor **block) {
  return gp_pipeline_pins(p, lane) ? gp_block_new_by(p->pinning, bytes, block)
                                   : gp_block_new(lane->space, bytes, block);
}

/* Allocate one block each for the values, gradients and buffers of a stage. */
static gp_status make_arena(const gp_pipeline *p, int32_t stage) {
  const gp_layout_stage *sizes = &p->layout.stages[stage];
  gp_arena *a = &p->arenas[stage];
  const gp_lane *lane = gp_stage_lane(p, stage, 0);
  a->value_bytes = sizes->values;
  a->grad_bytes = sizes->grads;
  a->buffer_bytes = sizes->buffers;
  if (is_here(p, stage)) {
    GP_TRY(new_block(p, lane, a->value_bytes, &a->value_memory));
    GP_TRY(gp_block_new(lane->space, a->grad_bytes, &a->grad_memory));
    GP_TRY(new_block(p, lane, a->buffer_bytes, &a->buffer_memory));
  }
  if (a->buffer_bytes) GP_TRY(gp_pipeline_take(p, lane, a->buffer_bytes, (void **)&a->committed));
  a->values[0] = start_of(a->value_memory);
  a->grads[0] = start_of(a->grad_memory);
  a->buffers[0] = start_of(a->buffer_memory);
  return p->copy_count > 1 ? make_second_copy(p, a, lane, gp_stage_lane(p, stage, 1)) : GP_OK;
}

/* List all gradients of a stage for the tasks that end a step. They are those of the first copy,
 * whose device adds up the gradients of both. The gradients of other ranks are only counted. */
static gp_status list_gradients(gp_pipeline *p, int32_t stage) {
  gp_lane_run *runs;
  int count = 0;
  GP_TRY(gp_alloc_array((size_t)p->param_count + 1, sizeof *runs, (void **)&runs));
  for (int32_t i = 0; i < p->param_count; i++) {
    if (p->param_stage[i] != stage) continue;
    const bool trained = p->layout.at[i].region == GP_REGION_TRAINABLE;
    p->grad_place[i] = trained ? count : -1;
    if (!trained) continue;
    const gp_tensor *grad = p->grads[i];
    if (grad)
      runs[count] =
          (gp_lane_run){gp_tensor_meta(grad)->dtype, gp_tensor_numel(grad), gp_tensor_data(grad)};
    count++;
  }
  gp_status status = GP_OK;
  if (is_here(p, stage))
    status = gp_gradients_new(gp_stage_lane(p, stage, 0), runs, count, &p->arenas[stage].gradients);
  else
    p->arenas[stage].gradients = (gp_gradients){.count = count};
  gp_free(runs);
  return status;
}

gp_status gp_arenas_new(gp_pipeline *p) {
  size_t stages = (size_t)p->stage_count, params = (size_t)p->param_count + 1;
  GP_TRY(gp_alloc_array(stages, sizeof(gp_arena), (void **)&p->arenas));
  GP_TRY(gp_alloc_array(params, sizeof(size_t), (void **)&p->param_offset));
  for (int32_t s = 0; s < p->stage_count; s++) {
    char what[64];
    gp_status status = make_arena(p, s);
    snprintf(what, sizeof what, "the parameters and gradients of stage %d", (int)s);
    if (status) return status == GP_ENOMEM ? gp_fail_prefix(status, what) : status;
  }
  for (int32_t i = 0; i < p->param_count; i++) GP_TRY(move_in(p, i));
  for (int32_t s = 0; s < p->stage_count; s++) GP_TRY(list_gradients(p, s));
  return GP_OK;
}

/* Free what make_second_copy allocated, and the second copy's extra accumulators. */
static void free_second_copy(const gp_pipeline *p, int32_t stage) {
  gp_arena *a = &p->arenas[stage];
  const gp_lane *lane = gp_stage_lane(p, stage, 1);
  if (a->values[1] != a->values[0]) gp_pipeline_give(p, lane, a->values[1], a->value_bytes);
  if (a->buffers[1] != a->buffers[0]) gp_pipeline_give(p, lane, a->buffers[1], a->buffer_bytes);
  gp_pipeline_give(p, lane, a->grads[1], a->grad_bytes);
  gp_pipeline_give(p, lane, a->extras[1], a->extra_bytes);
}

void gp_arenas_free(gp_pipeline *p) {
  for (int32_t s = 0; p->arenas && s < p->stage_count; s++) {
    gp_arena *a = &p->arenas[s];
    const gp_lane *lane = gp_stage_lane(p, s, 0);
    gp_gradients_free(&a->gradients);
    /* views that a script holds keep this memory */
    gp_tensor_free(a->value_memory);
    gp_tensor_free(a->grad_memory);
    gp_tensor_free(a->buffer_memory);
    gp_pipeline_give(p, lane, a->committed, a->buffer_bytes);
    gp_pipeline_give(p, lane, a->extras[0], a->extra_bytes);
    gp_pipeline_give(p, lane, a->received_grads, a->grad_bytes);
    gp_pipeline_give(p, lane, a->received_extras, a->extra_bytes);
    gp_pipeline_give(p, lane, a->packed, a->packed_bytes);
    gp_pipeline_give(p, lane, a->halves, a->half_bytes);
    if (p->copy_count > 1) free_second_copy(p, s);
  }
  for (int32_t x = 0; x < p->extra_count; x++) {
    int32_t i = p->extras[x].param;
    gp_pipeline_give(p, gp_stage_lane(p, p->param_stage[i], 0), p->extras[x].received,
                     gp_meta_bytes(gp_param_meta(p->params[i])));
  }
  p->extra_count = 0;
  gp_free(p->arenas);
  gp_free(p->param_offset);
  p->arenas = NULL;
  p->param_offset = NULL;
}

/* ---- what plans ask for -------------------------------------------------------------------- */

/* Memory of a stage's extra accumulators, per copy, and where the first copy's device receives
 * those of the second. */
typedef struct extras {
  void *own[2], *received;
} extras;

static void give_extras(const gp_pipeline *p, int32_t stage, const extras *e, size_t bytes) {
  const gp_lane *first = gp_stage_lane(p, stage, 0);
  if (e->own[0]) gp_pipeline_give(p, first, e->own[0], bytes);
  if (e->own[1]) gp_pipeline_give(p, gp_stage_lane(p, stage, 1), e->own[1], bytes);
  if (e->received) gp_pipeline_give(p, first, e->received, bytes);
}

static gp_status take_extras(const gp_pipeline *p, int32_t stage, extras *e, size_t bytes) {
  for (int32_t copy = 0; copy < p->copy_count; copy++)
    GP_TRY(gp_pipeline_take(p, gp_stage_lane(p, stage, copy), bytes, &e->own[copy]));
  /* a stage may have such accumulators and no gradients of its own */
  if (p->copy_count == 1 || gp_lane_shares(gp_stage_lane(p, stage, 0), gp_stage_lane(p, stage, 1)))
    return GP_OK;
  return gp_pipeline_take(p, gp_stage_lane(p, stage, 0), bytes, &e->received);
}

/* Replace a stage's extra accumulators by larger ones; on failure the old ones stay. Nothing is
 * copied, because every backward pass begins accumulators anew. Programs know only offsets, but
 * captured graphs hold the old addresses. */
static gp_status grow_extras(gp_pipeline *p, int32_t stage, size_t bytes) {
  gp_arena *a = &p->arenas[stage];
  extras old = {{a->extras[0], a->extras[1]}, a->received_extras}, larger = {{NULL}, NULL};
  gp_status status = take_extras(p, stage, &larger, bytes);
  if (status) return give_extras(p, stage, &larger, bytes), status;
  give_extras(p, stage, &old, a->extra_bytes);
  a->extras[0] = larger.own[0];
  a->extras[1] = larger.own[1];
  a->received_extras = larger.received;
  a->extra_bytes = bytes;
  return GP_OK;
}

/* Allocate the memory where the parameter's owner receives an accumulator that it cannot read. */
static gp_status make_received(const gp_pipeline *p, gp_extra_slot *extra) {
  int32_t owner = p->param_stage[extra->param];
  if (gp_lane_shares(gp_stage_lane(p, extra->stage, 0), gp_stage_lane(p, owner, 0))) return GP_OK;
  return gp_pipeline_take(p, gp_stage_lane(p, owner, 0),
                          gp_meta_bytes(gp_param_meta(p->params[extra->param])), &extra->received);
}

/* Add an accumulator for the life of the pipeline: every plan of the model asks for the same
 * ones. */
static gp_status add_extra(gp_pipeline *p, const gp_layout_extra *from) {
  size_t n = (size_t)p->extra_count;
  GP_TRY(gp_resize_array(n, n + 1, sizeof(gp_extra_slot), (void **)&p->extras));
  p->extras[n] = (gp_extra_slot){from->param, from->layer, from->stage, from->offset, NULL};
  GP_TRY(make_received(p, &p->extras[n]));
  p->extra_count++;
  return GP_OK;
}

/* Enlarge the memory for packed weights. Its contents move along, because the backward half of a
 * pass may still read them without packing them again. */
static gp_status grow_packed(gp_pipeline *p, int32_t stage, size_t bytes) {
  gp_arena *a = &p->arenas[stage];
  const gp_lane *lane = gp_stage_lane(p, stage, 0);
  void *larger;
  GP_TRY(gp_pipeline_take(p, lane, bytes, &larger));
  gp_status status = gp_lane_copy(lane, larger, a->packed, a->packed_bytes);
  if (!status) status = gp_lane_sync(lane);
  if (status) return gp_pipeline_give(p, lane, larger, bytes), status;
  gp_pipeline_give(p, lane, a->packed, a->packed_bytes);
  a->packed = larger;
  a->packed_bytes = bytes;
  return GP_OK;
}

/* Allocate the halves of all values of a stage, half as many bytes. They stay for the life of the
 * pipeline. */
static gp_status make_halves(gp_pipeline *p, int32_t stage, const gp_layout_stage *wanted) {
  gp_arena *a = &p->arenas[stage];
  GP_TRY(gp_pipeline_take(p, gp_stage_lane(p, stage, 0), wanted->halves, (void **)&a->halves));
  a->half_bytes = wanted->halves;
  a->half = wanted->half;
  a->halved = false;
  return GP_OK;
}

gp_status gp_arenas_grow(gp_pipeline *p, bool *moved) {
  *moved = false;
  for (int32_t s = 0; s < p->stage_count; s++) {
    const gp_layout_stage *wanted = &p->layout.stages[s];
    if (wanted->extras > p->arenas[s].extra_bytes) {
      GP_TRY(grow_extras(p, s, wanted->extras));
      *moved = true;
    }
    if (wanted->packed > p->arenas[s].packed_bytes) GP_TRY(grow_packed(p, s, wanted->packed));
    if (wanted->halves && !p->arenas[s].halves) GP_TRY(make_halves(p, s, wanted));
  }
  while ((size_t)p->extra_count < p->layout.extra_count)
    GP_TRY(add_extra(p, &p->layout.extras[p->extra_count]));
  return GP_OK;
}

static size_t beyond(size_t wanted, size_t had) { return wanted > had ? wanted - had : 0; }

size_t gp_arenas_growth(const gp_pipeline *p, const gp_plan *plan, int32_t device) {
  size_t bytes = 0;
  for (int32_t s = 0; s < p->stage_count; s++) {
    const gp_layout_stage *wanted = &plan->layout.stages[s];
    const gp_arena *a = &p->arenas[s];
    for (int32_t copy = 0; copy < p->copy_count; copy++) {
      if (p->placement[s * p->copy_count + copy] != device) continue;
      bytes += beyond(wanted->extras, a->extra_bytes);
      if (!copy)
        bytes += beyond(wanted->packed, a->packed_bytes) + beyond(wanted->halves, a->half_bytes);
    }
  }
  return bytes;
}
