/* engine/arena.c - where the parameters, gradients and buffers of a stage lie.
 *
 * One block each, so that an update is one pass and a version of the weights one copy. Programs know
 * offsets only: which arena, copy or version they work on is settled when they run (frame.c).
 */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/tensor.h"
#include "engine/block.h"
#include "engine/pipeline.h"
#include "graph/param.h"

enum { ALIGNMENT = 64 };

/* Trainable parameters lie first in an arena, then frozen ones; buffers have their own. */
typedef enum region { TRAINABLE, FROZEN, BUFFER } region;

/* What is never trained needs no gradient and no moments, so it stands apart. */
static region region_of(const gp_param *param) {
  if (gp_param_is_buffer(param)) return BUFFER;
  return gp_param_is_frozen(param) ? FROZEN : TRAINABLE;
}

/* Every parameter starts on a cache line of its own: threads of an update never share one. */
static gp_status padded(const gp_param *param, size_t *bytes) {
  return gp_size_align(gp_meta_bytes(gp_param_meta(param)), ALIGNMENT, bytes);
}

/* ---- making -------------------------------------------------------------------------------- */

/* Sizes of the regions of one stage's arena. */
static gp_status measure(const gp_pipeline *p, int32_t stage, size_t sizes[3]) {
  for (int32_t i = 0; i < p->param_count; i++) {
    size_t bytes, *size = &sizes[region_of(p->params[i])];
    if (p->param_stage[i] != stage) continue;
    GP_TRY(padded(p->params[i], &bytes));
    GP_TRY(gp_size_add(*size, bytes, size));
  }
  return GP_OK;
}

/* Draws the first value straight into the arena, or copies the one that is there. */
static gp_status move_in(gp_pipeline *p, int32_t i, const gp_arena *a, size_t at) {
  gp_param *param = p->params[i];
  region r = region_of(param);
  p->param_offset[i] = at;
  GP_TRY(gp_block_view(r == BUFFER ? a->buffer_memory : a->value_memory, at, param, &p->values[i]));
  GP_TRY(gp_param_move(param, p->values[i]));
  if (r == TRAINABLE) GP_TRY(gp_block_view(a->grad_memory, at, param, &p->grads[i]));
  gp_param_set_grad(param, p->grads[i]);
  return GP_OK;
}

static char *start_of(const gp_tensor *memory) { return memory ? gp_tensor_data(memory) : NULL; }

/* What the second copy of a stage cannot share with the first, or must not. */
static gp_status make_twin(const gp_pipeline *p, gp_arena *a, const gp_lane *first,
                           const gp_lane *second) {
  bool apart = !gp_lane_shares(first, second);
  a->values[1] = a->values[0];
  a->buffers[1] = a->buffers[0];
  if (apart && a->value_bytes)
    GP_TRY(gp_pipeline_take(p, second, a->value_bytes, (void **)&a->values[1]));
  if (apart && a->buffer_bytes)
    GP_TRY(gp_pipeline_take(p, second, a->buffer_bytes, (void **)&a->buffers[1]));
  if (apart && a->grad_bytes)
    GP_TRY(gp_pipeline_take(p, first, a->grad_bytes, (void **)&a->landing));
  return a->grad_bytes ? gp_pipeline_take(p, second, a->grad_bytes, (void **)&a->grads[1]) : GP_OK;
}

/* What other devices read, and scripts may keep. */
static gp_status new_block(const gp_pipeline *p, const gp_lane *lane, size_t bytes,
                           gp_tensor **block) {
  return gp_pipeline_pins(p, lane) ? gp_block_new_by(p->pinning, bytes, block)
                                   : gp_block_new(lane->space, bytes, block);
}

/* One block each for values, gradients and buffers. */
static gp_status make_arena(const gp_pipeline *p, int32_t stage, const size_t sizes[3]) {
  gp_arena *a = &p->arenas[stage];
  const gp_lane *lane = gp_stage_lane(p, stage, 0);
  a->grad_bytes = sizes[TRAINABLE];
  a->buffer_bytes = sizes[BUFFER];
  GP_TRY(gp_size_add(sizes[TRAINABLE], sizes[FROZEN], &a->value_bytes));
  GP_TRY(new_block(p, lane, a->value_bytes, &a->value_memory));
  GP_TRY(gp_block_new(lane->space, a->grad_bytes, &a->grad_memory));
  GP_TRY(new_block(p, lane, a->buffer_bytes, &a->buffer_memory));
  if (a->buffer_bytes) GP_TRY(gp_pipeline_take(p, lane, a->buffer_bytes, (void **)&a->committed));
  a->values[0] = start_of(a->value_memory);
  a->grads[0] = start_of(a->grad_memory);
  a->buffers[0] = start_of(a->buffer_memory);
  return p->copy_count > 1 ? make_twin(p, a, lane, gp_stage_lane(p, stage, 1)) : GP_OK;
}

/* What ends a step works on all gradients of a stage, of which the first copy's device has the sums. */
static gp_status list_gradients(gp_pipeline *p, int32_t stage) {
  gp_lane_run *runs;
  int count = 0;
  GP_TRY(gp_alloc_array((size_t)p->param_count + 1, sizeof *runs, (void **)&runs));
  for (int32_t i = 0; i < p->param_count; i++) {
    if (p->param_stage[i] != stage) continue;
    p->grad_place[i] = p->grads[i] ? count : -1;
    if (!p->grads[i]) continue;
    const gp_tensor *grad = p->grads[i];
    runs[count++] =
        (gp_lane_run){gp_tensor_meta(grad)->dtype, gp_tensor_numel(grad), gp_tensor_data(grad)};
  }
  gp_status status =
      gp_gradients_new(gp_stage_lane(p, stage, 0), runs, count, &p->arenas[stage].gradients);
  gp_free(runs);
  return status;
}

/* The parameters of a stage in order of declaration, region by region. */
static gp_status fill_arena(gp_pipeline *p, int32_t stage) {
  size_t sizes[3] = {0}, at[3] = {0}, bytes;
  GP_TRY(measure(p, stage, sizes));
  GP_TRY(make_arena(p, stage, sizes));
  p->value_bytes[stage] = p->arenas[stage].value_bytes;
  at[FROZEN] = sizes[TRAINABLE];
  for (int32_t i = 0; i < p->param_count; i++) {
    size_t *offset = &at[region_of(p->params[i])];
    if (p->param_stage[i] != stage) continue;
    GP_TRY(move_in(p, i, &p->arenas[stage], *offset));
    GP_TRY(padded(p->params[i], &bytes));
    *offset += bytes;
  }
  return list_gradients(p, stage);
}

gp_status gp_arenas_new(gp_pipeline *p) {
  size_t stages = (size_t)p->stage_count, params = (size_t)p->param_count + 1;
  GP_TRY(gp_alloc_array(stages, sizeof(gp_arena), (void **)&p->arenas));
  GP_TRY(gp_alloc_array(stages, sizeof(size_t), (void **)&p->value_bytes));
  GP_TRY(gp_alloc_array(params, sizeof(size_t), (void **)&p->param_offset));
  for (int32_t s = 0; s < p->stage_count; s++) {
    char what[64];
    gp_status status = fill_arena(p, s);
    snprintf(what, sizeof what, "the parameters and gradients of stage %d", (int)s);
    if (status) return status == GP_ENOMEM ? gp_fail_prefix(status, what) : status;
  }
  return GP_OK;
}

/* What make_twin made. */
static void free_twin(const gp_pipeline *p, int32_t stage) {
  gp_arena *a = &p->arenas[stage];
  const gp_lane *lane = gp_stage_lane(p, stage, 1);
  if (a->values[1] != a->values[0]) gp_pipeline_give(p, lane, a->values[1], a->value_bytes);
  if (a->buffers[1] != a->buffers[0]) gp_pipeline_give(p, lane, a->buffers[1], a->buffer_bytes);
  gp_pipeline_give(p, lane, a->grads[1], a->grad_bytes);
  gp_pipeline_give(p, lane, a->extras[1], a->extra_bytes);
}

/* Views keep the memory that a script still holds. */
void gp_arenas_free(gp_pipeline *p) {
  for (int32_t s = 0; p->arenas && s < p->stage_count; s++) {
    gp_arena *a = &p->arenas[s];
    const gp_lane *lane = gp_stage_lane(p, s, 0);
    gp_gradients_free(&a->gradients);
    gp_tensor_free(a->value_memory);
    gp_tensor_free(a->grad_memory);
    gp_tensor_free(a->buffer_memory);
    gp_pipeline_give(p, lane, a->committed, a->buffer_bytes);
    gp_pipeline_give(p, lane, a->extras[0], a->extra_bytes);
    gp_pipeline_give(p, lane, a->landing, a->grad_bytes);
    gp_pipeline_give(p, lane, a->extra_landing, a->extra_bytes);
    if (p->copy_count > 1) free_twin(p, s);
  }
  for (int32_t i = 0; i < p->pack_count; i++) gp_tensor_free(p->packs[i].copy);
  for (int32_t x = 0; x < p->extra_count; x++) {
    int32_t i = p->extras[x].param;
    gp_pipeline_give(p, gp_stage_lane(p, p->param_stage[i], 0), p->extras[x].landing,
                     gp_meta_bytes(gp_param_meta(p->params[i])));
  }
  p->extra_count = p->pack_count = 0;
  gp_free(p->arenas);
  gp_free(p->value_bytes);
  gp_free(p->param_offset);
  p->arenas = NULL;
  p->value_bytes = p->param_offset = NULL;
}

/* ---- what plans ask for -------------------------------------------------------------------- */

/* Linear: asked while plans are built, not while they run. */
int32_t gp_pipeline_find(const gp_pipeline *p, const gp_param *param) {
  for (int32_t i = 0; i < p->param_count; i++)
    if (p->params[i] == param) return i;
  return -1;
}

bool gp_stage_reads(const gp_pipeline *p, int32_t stage, int32_t other) {
  for (int32_t copy = 0; copy < p->copy_count; copy++)
    if (!gp_lane_shares(gp_stage_lane(p, stage, copy), gp_stage_lane(p, other, 0))) return false;
  return true;
}

/* Buffers have one memory whatever the version of the weights. What lies with another stage is read where
 * it is, if it can be. */
gp_place gp_arena_value(void *pipeline, const gp_param *param, int32_t stage) {
  const gp_pipeline *p = pipeline;
  int32_t i = gp_pipeline_find(p, param);
  if (i < 0) return (gp_place){.base = -1};
  int32_t owner = p->param_stage[i];
  bool buffer = region_of(param) == BUFFER;
  if (owner != stage && !gp_stage_reads(p, stage, owner)) return (gp_place){.base = GP_BASE_GUEST};
  if (buffer && owner == stage) return (gp_place){GP_BASE_BUFFER, p->param_offset[i]};
  if (buffer) return (gp_place){GP_BASE_ABSOLUTE, (size_t)gp_tensor_data(p->values[i])};
  return (gp_place){GP_BASE_VALUE + owner, p->param_offset[i]};
}

/* Memory of accumulators, per copy of a stage, and where the first copy takes in those of the second. */
typedef struct extras {
  void *own[2], *landing;
} extras;

static void give_extras(const gp_pipeline *p, int32_t stage, const extras *e, size_t bytes) {
  const gp_lane *first = gp_stage_lane(p, stage, 0);
  if (e->own[0]) gp_pipeline_give(p, first, e->own[0], bytes);
  if (e->own[1]) gp_pipeline_give(p, gp_stage_lane(p, stage, 1), e->own[1], bytes);
  if (e->landing) gp_pipeline_give(p, first, e->landing, bytes);
}

static gp_status take_extras(const gp_pipeline *p, int32_t stage, extras *e, size_t bytes) {
  for (int32_t copy = 0; copy < p->copy_count; copy++)
    GP_TRY(gp_pipeline_take(p, gp_stage_lane(p, stage, copy), bytes, &e->own[copy]));
  if (!p->arenas[stage].landing) return GP_OK;
  return gp_pipeline_take(p, gp_stage_lane(p, stage, 0), bytes, &e->landing);
}

/* Every backward pass begins with zeros, so that a larger block may take over; programs know offsets, graphs
 * addresses. On failure the old ones stay. */
static gp_status grow_extras(gp_pipeline *p, int32_t stage, size_t bytes) {
  gp_arena *a = &p->arenas[stage];
  extras old = {{a->extras[0], a->extras[1]}, a->extra_landing}, larger = {{NULL}, NULL};
  gp_status status = take_extras(p, stage, &larger, bytes);
  if (status) return give_extras(p, stage, &larger, bytes), status;
  give_extras(p, stage, &old, a->extra_bytes);
  a->extras[0] = larger.own[0];
  a->extras[1] = larger.own[1];
  a->extra_landing = larger.landing;
  a->extra_bytes = bytes;
  for (int32_t i = 0; i < p->binding_count; i++) gp_binding_forget(p->bindings[i]);
  return GP_OK;
}

/* Where the owner of the parameter cannot read the accumulator, it takes it in. */
static gp_status make_landing(const gp_pipeline *p, gp_extra_slot *extra) {
  int32_t owner = p->param_stage[extra->param];
  if (gp_lane_shares(gp_stage_lane(p, extra->stage, 0), gp_stage_lane(p, owner, 0))) return GP_OK;
  return gp_pipeline_take(p, gp_stage_lane(p, owner, 0),
                          gp_meta_bytes(gp_param_meta(p->params[extra->param])), &extra->landing);
}

/* Kept for the life of the pipeline: every plan of the model will ask for the same ones. */
static gp_status add_extra(gp_pipeline *p, int32_t param, int32_t layer, gp_place *place) {
  size_t n = (size_t)p->extra_count, bytes, total;
  int32_t stage = p->stage_of[layer];
  GP_TRY(padded(p->params[param], &bytes));
  GP_TRY(gp_size_add(p->arenas[stage].extra_bytes, bytes, &total));
  GP_TRY(gp_resize_array(n, n + 1, sizeof(gp_extra_slot), (void **)&p->extras));
  size_t offset = p->arenas[stage].extra_bytes;
  GP_TRY(grow_extras(p, stage, total));
  p->extras[n] = (gp_extra_slot){param, layer, stage, offset, NULL};
  GP_TRY(make_landing(p, &p->extras[n]));
  p->extra_count++;
  *place = (gp_place){GP_BASE_EXTRA, offset};
  return GP_OK;
}

/* The main accumulator serves the layer that owns the parameter; other layers get extra ones. */
gp_status gp_arena_slot(void *pipeline, gp_param *param, int32_t layer, gp_place *place) {
  gp_pipeline *p = pipeline;
  int32_t i = gp_pipeline_find(p, param);
  if (i < 0 || !p->grads[i])
    return gp_fail(GP_EINVAL, "a parameter that is not part of the model needs a gradient");
  *place = (gp_place){GP_BASE_GRAD, p->param_offset[i]};
  if (layer == p->main_layer[i]) return GP_OK;
  for (int32_t x = 0; x < p->extra_count; x++)
    if (p->extras[x].param == i && p->extras[x].layer == layer)
      return *place = (gp_place){GP_BASE_EXTRA, p->extras[x].offset}, GP_OK;
  return add_extra(p, i, layer, place);
}

/* One copy per (parameter, stage): stages run at once and each makes its own. */
gp_status gp_arena_packed(void *pipeline, gp_param *param, int32_t stage, void **address) {
  gp_pipeline *p = pipeline;
  int32_t index = gp_pipeline_find(p, param);
  for (int32_t i = 0; i < p->pack_count; i++)
    if (p->packs[i].param == index && p->packs[i].stage == stage)
      return *address = gp_tensor_data(p->packs[i].copy), GP_OK;
  const gp_meta *meta = gp_param_meta(param);
  size_t n = (size_t)p->pack_count;
  GP_TRY(gp_resize_array(n, n + 1, sizeof(gp_packed), (void **)&p->packs));
  GP_TRY(gp_tensor_new(meta->dtype, &meta->shape, &p->packs[n].copy));
  p->packs[n].param = index;
  p->packs[n].stage = stage;
  p->pack_count++;
  *address = gp_tensor_data(p->packs[n].copy);
  return GP_OK;
}
