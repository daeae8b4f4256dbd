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

/* ---- copies -------------------------------------------------------------------------------- */

static bool shares(const gp_pipeline *p, int32_t stage, int32_t a, int32_t b) {
  return gp_lane_shares(gp_stage_lane(p, stage, a), gp_stage_lane(p, stage, b));
}

/* The first of the copies that share memory with this one: its buffers are theirs. */
static int32_t leader_of(const gp_pipeline *p, int32_t stage, int32_t copy) {
  int32_t first = 0;
  while (!shares(p, stage, first, copy)) first++;
  return first;
}

/* The copy whose values are this one's, too. */
static int32_t holder_of(const gp_pipeline *p, int32_t stage, int32_t copy) {
  return p->layout.apart ? copy : leader_of(p, stage, copy);
}

/* How many copies lie apart from this one, among the first `end`? */
static size_t count_apart(const gp_pipeline *p, int32_t stage, int32_t copy, int32_t end) {
  size_t apart = 0;
  for (int32_t other = 0; other < end; other++) apart += !shares(p, stage, other, copy);
  return apart;
}

size_t gp_arena_part(const gp_pipeline *p, int32_t stage, int32_t copy, int32_t from) {
  return count_apart(p, stage, copy, from);
}

static const gp_layout_slice *slice_of(const gp_pipeline *p, int32_t stage, int32_t copy) {
  return &p->layout.slices[stage * p->copy_count + copy];
}

size_t gp_arena_received(const gp_pipeline *p, int32_t stage, int32_t copy) {
  return slice_of(p, stage, copy)->grads * count_apart(p, stage, copy, p->copy_count);
}

/* Does a copy of the stage own the parameter of one of its extra accumulators? */
static bool owns_extras(const gp_pipeline *p, int32_t stage, int32_t copy) {
  for (size_t x = 0; x < p->layout.extra_count; x++) {
    const gp_layout_extra *extra = &p->layout.extras[x];
    if (extra->stage == stage && p->layout.at[extra->param].owner == copy) return true;
  }
  return false;
}

size_t gp_arena_received_extras(const gp_pipeline *p, int32_t stage, int32_t copy, size_t bytes) {
  return owns_extras(p, stage, copy) ? bytes * count_apart(p, stage, copy, p->copy_count) : 0;
}

/* ---- making -------------------------------------------------------------------------------- */

/* Does this process drive the device of a copy? */
static bool is_here(const gp_pipeline *p, int32_t stage, int32_t copy) {
  return gp_device_is_here(p, p->placement[stage * p->copy_count + copy]);
}

/* Move a parameter into the arena of the copy that owns it, or leave it to another rank: draw its
 * first value there, or copy the value that it has. */
static gp_status move_in(gp_pipeline *p, int32_t i) {
  gp_param *param = p->params[i];
  const int32_t stage = p->param_stage[i], owner = p->layout.at[i].owner;
  gp_region region = p->layout.at[i].region;
  size_t at = p->param_offset[i] = p->layout.at[i].offset;
  const gp_lane *lane = gp_stage_lane(p, stage, owner);
  if (!is_here(p, stage, owner)) return gp_param_share(param, lane->rank, false), GP_OK;
  const gp_arena_copy *own = &p->arenas[stage].copies[owner];
  const gp_arena_copy *leader = &p->arenas[stage].copies[leader_of(p, stage, owner)];
  const gp_arena_copy *holder = &p->arenas[stage].copies[holder_of(p, stage, owner)];
  gp_tensor *memory = region == GP_REGION_BUFFER ? leader->buffer_memory : holder->value_memory;
  GP_TRY(gp_block_view(memory, at, param, &p->values[i]));
  GP_TRY(gp_param_move(param, p->values[i]));
  if (p->spread) gp_param_share(param, lane->rank, true);
  if (region == GP_REGION_TRAINABLE)
    GP_TRY(gp_block_view(own->grad_memory, at, param, &p->grads[i]));
  gp_param_set_grad(param, p->grads[i]);
  return GP_OK;
}

static char *start_of(const gp_tensor *memory) { return memory ? gp_tensor_data(memory) : NULL; }

/* Allocate a block that other devices read and scripts may keep. It is pinned if a GPU copies from
 * it: otherwise the copies would hold the GPU up. */
static gp_status new_block(const gp_pipeline *p, const gp_lane *lane, size_t bytes,
                           gp_tensor **block) {
  return gp_pipeline_pins(p, lane) ? gp_block_new_by(p->pinning, bytes, block)
                                   : gp_block_new(lane->space, bytes, block);
}

/* Allocate the values, gradients and buffers of a copy of a stage, except what it shares with an
 * earlier one. Gradients of other copies than the first are read by other devices. */
static gp_status make_copy(const gp_pipeline *p, int32_t stage, int32_t copy) {
  const gp_arena *a = &p->arenas[stage];
  gp_arena_copy *own = &a->copies[copy];
  const gp_lane *lane = gp_stage_lane(p, stage, copy);
  const int32_t leader = leader_of(p, stage, copy), holder = holder_of(p, stage, copy);
  if (is_here(p, stage, copy)) {
    if (holder == copy) GP_TRY(new_block(p, lane, a->value_bytes, &own->value_memory));
    if (p->copy_count > 1)
      GP_TRY(new_block(p, lane, a->grad_bytes, &own->grad_memory));
    else
      GP_TRY(gp_block_new(lane->space, a->grad_bytes, &own->grad_memory));
    if (leader == copy) GP_TRY(new_block(p, lane, a->buffer_bytes, &own->buffer_memory));
  }
  own->values = holder == copy ? start_of(own->value_memory) : a->copies[holder].values;
  own->buffers = leader == copy ? start_of(own->buffer_memory) : a->copies[leader].buffers;
  own->grads = start_of(own->grad_memory);
  const size_t received = gp_arena_received(p, stage, copy);
  return received ? gp_pipeline_take(p, lane, received, (void **)&own->received_grads) : GP_OK;
}

/* Allocate the memory of all copies of a stage. */
static gp_status make_arena(const gp_pipeline *p, int32_t stage) {
  const gp_layout_stage *sizes = &p->layout.stages[stage];
  gp_arena *a = &p->arenas[stage];
  a->value_bytes = sizes->values;
  a->grad_bytes = sizes->grads;
  a->buffer_bytes = sizes->buffers;
  GP_TRY(gp_alloc_array((size_t)p->copy_count, sizeof *a->copies, (void **)&a->copies));
  for (int32_t copy = 0; copy < p->copy_count; copy++) GP_TRY(make_copy(p, stage, copy));
  if (!a->buffer_bytes) return GP_OK;
  return gp_pipeline_take(p, gp_stage_lane(p, stage, 0), a->buffer_bytes, (void **)&a->committed);
}

/* List the gradients that a copy of a stage owns, for the tasks that end a step. The gradients of
 * other ranks are only counted. */
static gp_status list_gradients(gp_pipeline *p, int32_t stage, int32_t copy) {
  gp_arena_copy *own = &p->arenas[stage].copies[copy];
  gp_lane_run *runs;
  int count = 0;
  GP_TRY(gp_alloc_array((size_t)p->param_count + 1, sizeof *runs, (void **)&runs));
  for (int32_t i = 0; i < p->param_count; i++) {
    if (p->param_stage[i] != stage || p->layout.at[i].owner != copy) continue;
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
  if (is_here(p, stage, copy))
    status = gp_gradients_new(gp_stage_lane(p, stage, copy), runs, count, &own->gradients);
  else
    own->gradients = (gp_gradients){.count = count};
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
  for (int32_t s = 0; s < p->stage_count; s++)
    for (int32_t copy = 0; copy < p->copy_count; copy++) GP_TRY(list_gradients(p, s, copy));
  return GP_OK;
}

static void free_copy(const gp_pipeline *p, int32_t stage, int32_t copy) {
  const gp_arena *a = &p->arenas[stage];
  gp_arena_copy *own = &a->copies[copy];
  const gp_lane *lane = gp_stage_lane(p, stage, copy);
  gp_gradients_free(&own->gradients);
  /* views that a script holds keep this memory */
  gp_tensor_free(own->value_memory);
  gp_tensor_free(own->grad_memory);
  gp_tensor_free(own->buffer_memory);
  gp_pipeline_give(p, lane, own->extras, a->extra_bytes);
  gp_pipeline_give(p, lane, own->earlier, slice_of(p, stage, copy)->grads);
  gp_pipeline_give(p, lane, own->received_grads, gp_arena_received(p, stage, copy));
  gp_pipeline_give(p, lane, own->received_extras,
                   gp_arena_received_extras(p, stage, copy, a->extra_bytes));
}

void gp_arenas_free(gp_pipeline *p) {
  for (int32_t s = 0; p->arenas && s < p->stage_count; s++) {
    gp_arena *a = &p->arenas[s];
    const gp_lane *lane = gp_stage_lane(p, s, 0);
    gp_pipeline_give(p, lane, a->committed, a->buffer_bytes);
    gp_pipeline_give(p, lane, a->packed, a->packed_bytes);
    gp_pipeline_give(p, lane, a->halves, a->half_bytes);
    for (int32_t copy = 0; a->copies && copy < p->copy_count; copy++) free_copy(p, s, copy);
    gp_free(a->copies);
  }
  for (int32_t x = 0; x < p->extra_count; x++) {
    int32_t i = p->extras[x].param;
    gp_pipeline_give(p, gp_owner_lane(p, i), p->extras[x].received,
                     gp_meta_bytes(gp_param_meta(p->params[i])));
  }
  p->extra_count = 0;
  gp_free(p->arenas);
  gp_free(p->param_offset);
  p->arenas = NULL;
  p->param_offset = NULL;
}

/* ---- what plans ask for -------------------------------------------------------------------- */

/* The memory of one copy's extra accumulators, and where its device receives those of others. */
typedef struct extras {
  void *own, *received;
} extras;

static void give_extras(const gp_pipeline *p, int32_t stage, const extras *list, size_t bytes) {
  for (int32_t copy = 0; copy < p->copy_count; copy++) {
    const gp_lane *lane = gp_stage_lane(p, stage, copy);
    const size_t received = gp_arena_received_extras(p, stage, copy, bytes);
    if (list[copy].own) gp_pipeline_give(p, lane, list[copy].own, bytes);
    if (list[copy].received) gp_pipeline_give(p, lane, list[copy].received, received);
  }
}

/* A stage may have such accumulators and no gradients of its own. */
static gp_status take_extras(const gp_pipeline *p, int32_t stage, extras *list, size_t bytes) {
  for (int32_t copy = 0; copy < p->copy_count; copy++) {
    const gp_lane *lane = gp_stage_lane(p, stage, copy);
    const size_t received = gp_arena_received_extras(p, stage, copy, bytes);
    GP_TRY(gp_pipeline_take(p, lane, bytes, &list[copy].own));
    if (received) GP_TRY(gp_pipeline_take(p, lane, received, &list[copy].received));
  }
  return GP_OK;
}

/* Replace a stage's extra accumulators by larger ones; on failure the old ones stay. Nothing is
 * copied, because every backward pass begins accumulators anew. Programs know only offsets, but
 * captured graphs hold the old addresses. */
static gp_status swap_extras(gp_pipeline *p, int32_t stage, extras *larger, size_t bytes) {
  gp_arena *a = &p->arenas[stage];
  gp_status status = take_extras(p, stage, larger, bytes);
  if (status) return give_extras(p, stage, larger, bytes), status;
  for (int32_t copy = 0; copy < p->copy_count; copy++) {
    gp_arena_copy *own = &a->copies[copy];
    const extras old = {own->extras, own->received_extras};
    own->extras = larger[copy].own;
    own->received_extras = larger[copy].received;
    larger[copy] = old;
  }
  return GP_OK;
}

static gp_status grow_extras(gp_pipeline *p, int32_t stage, size_t bytes) {
  extras *list;
  GP_TRY(gp_alloc_array((size_t)p->copy_count, sizeof *list, (void **)&list));
  gp_status status = swap_extras(p, stage, list, bytes);
  if (!status) {
    give_extras(p, stage, list, p->arenas[stage].extra_bytes); /* the old ones */
    p->arenas[stage].extra_bytes = bytes;
  }
  gp_free(list);
  return status;
}

/* Allocate the memory where the parameter's owner receives an accumulator that it cannot read. */
static gp_status make_received(const gp_pipeline *p, gp_extra_slot *extra) {
  const gp_lane *owner = gp_owner_lane(p, extra->param);
  const int32_t copy = p->layout.at[extra->param].owner;
  if (gp_lane_shares(gp_stage_lane(p, extra->stage, copy), owner)) return GP_OK;
  return gp_pipeline_take(p, owner, gp_meta_bytes(gp_param_meta(p->params[extra->param])),
                          &extra->received);
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
