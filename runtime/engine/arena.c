/* engine/arena.c - where the parameters, gradients and buffers of a stage lie.
 *
 * One block each, so that an update is one pass and a version of the weights one copy. Programs know
 * offsets only: which arena, copy or version they work on is settled when they run (frame.c).
 */
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

/* One block each for values, gradients and buffers; gradients twice where two devices make them. */
static gp_status make_arena(gp_arena *a, const size_t sizes[3], int32_t copies) {
  a->grad_bytes = sizes[TRAINABLE];
  a->buffer_bytes = sizes[BUFFER];
  GP_TRY(gp_size_add(sizes[TRAINABLE], sizes[FROZEN], &a->value_bytes));
  GP_TRY(gp_block_new(a->value_bytes, &a->value_memory));
  GP_TRY(gp_block_new(a->grad_bytes, &a->grad_memory));
  GP_TRY(gp_block_new(a->buffer_bytes, &a->buffer_memory));
  if (a->buffer_bytes) GP_TRY(gp_alloc(a->buffer_bytes, (void **)&a->committed));
  if (copies > 1 && a->grad_bytes) GP_TRY(gp_alloc(a->grad_bytes, (void **)&a->mirror));
  a->values = start_of(a->value_memory);
  a->grads = start_of(a->grad_memory);
  a->buffers = start_of(a->buffer_memory);
  return GP_OK;
}

/* The parameters of a stage in order of declaration, region by region. */
static gp_status fill_arena(gp_pipeline *p, int32_t stage) {
  size_t sizes[3] = {0}, at[3] = {0}, bytes;
  GP_TRY(measure(p, stage, sizes));
  GP_TRY(make_arena(&p->arenas[stage], sizes, p->copy_count));
  p->value_bytes[stage] = p->arenas[stage].value_bytes;
  at[FROZEN] = sizes[TRAINABLE];
  for (int32_t i = 0; i < p->param_count; i++) {
    size_t *offset = &at[region_of(p->params[i])];
    if (p->param_stage[i] != stage) continue;
    GP_TRY(move_in(p, i, &p->arenas[stage], *offset));
    GP_TRY(padded(p->params[i], &bytes));
    *offset += bytes;
  }
  return GP_OK;
}

gp_status gp_arenas_new(gp_pipeline *p) {
  size_t stages = (size_t)p->stage_count, params = (size_t)p->param_count + 1;
  GP_TRY(gp_alloc_array(stages, sizeof(gp_arena), (void **)&p->arenas));
  GP_TRY(gp_alloc_array(stages, sizeof(size_t), (void **)&p->value_bytes));
  GP_TRY(gp_alloc_array(params, sizeof(size_t), (void **)&p->param_offset));
  for (int32_t s = 0; s < p->stage_count; s++) GP_TRY(fill_arena(p, s));
  return GP_OK;
}

/* Views keep the memory that a script still holds. */
void gp_arenas_free(gp_pipeline *p) {
  for (int32_t s = 0; p->arenas && s < p->stage_count; s++) {
    gp_arena *a = &p->arenas[s];
    gp_tensor_free(a->value_memory);
    gp_tensor_free(a->grad_memory);
    gp_tensor_free(a->buffer_memory);
    gp_free(a->committed);
    gp_free(a->mirror);
    gp_free(a->extras[0]);
    gp_free(a->extras[1]);
  }
  for (int32_t i = 0; i < p->pack_count; i++) gp_tensor_free(p->packs[i].copy);
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

/* Buffers have one memory whatever the version of the weights. */
gp_place gp_arena_value(void *pipeline, const gp_param *param) {
  const gp_pipeline *p = pipeline;
  int32_t i = gp_pipeline_find(p, param);
  if (i < 0) return (gp_place){.base = -1};
  if (region_of(param) == BUFFER)
    return (gp_place){GP_BASE_ABSOLUTE, (size_t)gp_tensor_data(p->values[i])};
  return (gp_place){GP_BASE_VALUE + p->param_stage[i], p->param_offset[i]};
}

/* Their contents are zero between runs, so that a larger block may take over; programs know offsets. */
static gp_status grow_extras(gp_pipeline *p, int32_t stage, size_t bytes) {
  gp_arena *a = &p->arenas[stage];
  for (int32_t copy = 0; copy < p->copy_count; copy++) {
    char *memory;
    GP_TRY(gp_alloc(bytes, (void **)&memory));
    gp_free(a->extras[copy]);
    a->extras[copy] = memory;
  }
  a->extra_bytes = bytes;
  return GP_OK;
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
  p->extras[p->extra_count++] = (gp_extra_slot){param, layer, stage, offset};
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
