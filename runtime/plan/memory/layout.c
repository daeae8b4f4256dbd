/* plan/memory/layout.c - see layout.h.
 *
 * Trainable parameters of a stage come first and their gradients lie at the same offsets, so an
 * update is one pass over two arenas. What plans share (extra accumulators, packed weights) is
 * added behind what is there: offsets that earlier plans hold stay true when the arenas grow.
 */
#include "plan/memory/layout.h"

#include <string.h>

#include "base/memory.h"
#include "base/tensor.h"
#include "graph/param.h"

enum { ALIGNMENT = GP_GRADIENT_ALIGNMENT };

/* Kinds of keys in layout->found. */
enum { PARAM, EXTRA, PACKED }; /* PACKED + form */

static gp_region region_of(const gp_param *param) {
  if (gp_param_is_buffer(param)) return GP_REGION_BUFFER;
  return gp_param_is_frozen(param) ? GP_REGION_FROZEN : GP_REGION_TRAINABLE;
}

/* Every parameter starts on a cache line of its own: threads of an update never share one. */
static gp_status padded(const gp_param *param, size_t *bytes) {
  return gp_size_align(gp_meta_bytes(gp_param_meta(param)), ALIGNMENT, bytes);
}

/* ---- parameters ---------------------------------------------------------------------------- */

/* Place a parameter behind the others of its region and stage. The offset counts from where the
 * region begins; place_all knows where frozen ones begin. */
static gp_status place(gp_layout *l, int32_t i, size_t *frozen) {
  gp_layout_param *at = &l->at[i];
  gp_layout_stage *stage = &l->stages[at->stage];
  size_t bytes, *end = at->region == GP_REGION_TRAINABLE ? &stage->grads
                       : at->region == GP_REGION_BUFFER  ? &stage->buffers
                                                         : &frozen[at->stage];
  at->offset = *end;
  GP_TRY(padded(l->params[i], &bytes));
  return gp_size_add(*end, bytes, end);
}

/* Place the trainable parameters that a copy owns, of all stages, in order of declaration. */
static gp_status place_slice(gp_layout *l, int32_t copy) {
  for (int32_t s = 0; s < l->stage_count; s++)
    l->slices[s * l->copy_count + copy].begin = l->stages[s].grads;
  for (int32_t i = 0; i < l->param_count; i++)
    if (l->at[i].region == GP_REGION_TRAINABLE && l->at[i].owner == copy) GP_TRY(place(l, i, NULL));
  for (int32_t s = 0; s < l->stage_count; s++) {
    gp_layout_slice *slice = &l->slices[s * l->copy_count + copy];
    slice->values = slice->grads = l->stages[s].grads - slice->begin;
  }
  return GP_OK;
}

/* Place all parameters, within a stage in order of declaration, region by region: frozen ones
 * behind the others. What the first copy owns comes last, so that the frozen ones, which are its
 * own too, lie right behind. */
static gp_status place_all(gp_layout *l, size_t *frozen) {
  for (int32_t copy = l->copy_count; copy-- > 0;) GP_TRY(place_slice(l, copy));
  for (int32_t i = 0; i < l->param_count; i++)
    if (l->at[i].region != GP_REGION_TRAINABLE) GP_TRY(place(l, i, frozen));
  for (int32_t s = 0; s < l->stage_count; s++) {
    GP_TRY(gp_size_add(l->stages[s].grads, frozen[s], &l->stages[s].values));
    l->slices[s * l->copy_count].values += frozen[s];
  }
  for (int32_t i = 0; i < l->param_count; i++)
    if (l->at[i].region == GP_REGION_FROZEN) l->at[i].offset += l->stages[l->at[i].stage].grads;
  return GP_OK;
}

static gp_status build(gp_layout *l, const int32_t *param_layer) {
  size_t *frozen, stages = (size_t)l->stage_count;
  GP_TRY(gp_alloc_array((size_t)l->param_count + 1, sizeof *l->at, (void **)&l->at));
  GP_TRY(gp_alloc_array(stages, sizeof *l->stages, (void **)&l->stages));
  GP_TRY(gp_alloc_array(stages * (size_t)l->copy_count, sizeof *l->slices, (void **)&l->slices));
  for (int32_t i = 0; i < l->param_count; i++) {
    l->at[i].layer = param_layer[i];
    l->at[i].stage = l->stage_of[param_layer[i]];
    l->at[i].region = region_of(l->params[i]);
    /* a parameter that is listed twice (two layers share it) is found at its first place */
    gp_map_key key = {(uintptr_t)l->params[i], PARAM, 0};
    if (gp_map_get(&l->found, key) < 0) GP_TRY(gp_map_put(&l->found, key, i));
  }
  GP_TRY(gp_layout_deal(l));
  GP_TRY(gp_alloc_array(stages, sizeof *frozen, (void **)&frozen));
  gp_status status = place_all(l, frozen);
  gp_free(frozen);
  return status;
}

gp_status gp_layout_new(const gp_pipeline_spec *spec, const int32_t *placement, gp_layout *layout) {
  *layout = (gp_layout){.stage_count = spec->stage_count,
                        .copy_count = spec->copy_count ? spec->copy_count : 1,
                        .param_count = spec->param_count,
                        .replicas = spec->replicas ? spec->replicas : 1,
                        .apart = spec->streams && spec->replicas > 1,
                        .stage_of = spec->stage_of,
                        .placement = placement,
                        .params = spec->params};
  gp_status status = build(layout, spec->param_layer);
  if (status) gp_layout_free(layout);
  return status;
}

/* Copy an array of `count` elements, with room for one more. */
static gp_status copy_array(const void *from, size_t count, size_t size, void **to) {
  GP_TRY(gp_alloc_array(count + 1, size, to));
  if (count) memcpy(*to, from, count * size);
  return GP_OK;
}

static gp_status copy_parts(const gp_layout *from, gp_layout *to) {
  const size_t params = (size_t)from->param_count, stages = (size_t)from->stage_count;
  GP_TRY(copy_array(from->at, params, sizeof *from->at, (void **)&to->at));
  const size_t holders = stages * (size_t)from->copy_count;
  GP_TRY(copy_array(from->stages, stages, sizeof *from->stages, (void **)&to->stages));
  GP_TRY(copy_array(from->slices, holders, sizeof *from->slices, (void **)&to->slices));
  GP_TRY(copy_array(from->extras, from->extra_count, sizeof *from->extras, (void **)&to->extras));
  to->extra_room = from->extra_count + 1;
  return gp_map_copy(&from->found, &to->found);
}

gp_status gp_layout_copy(const gp_layout *from, gp_layout *to) {
  *to = *from;
  to->at = NULL;
  to->stages = NULL;
  to->slices = NULL;
  to->extras = NULL;
  to->found = (gp_map){0};
  gp_status status = copy_parts(from, to);
  if (status) gp_layout_free(to);
  return status;
}

void gp_layout_adopt(gp_layout *to, gp_layout *from) {
  gp_layout_free(to);
  *to = *from;
  *from = (gp_layout){0};
}

void gp_layout_free(gp_layout *layout) {
  gp_free(layout->at);
  gp_free(layout->stages);
  gp_free(layout->slices);
  gp_free(layout->extras);
  gp_map_free(&layout->found);
  *layout = (gp_layout){0};
}

int32_t gp_layout_find(const gp_layout *l, const gp_param *param) {
  return gp_map_get(&l->found, (gp_map_key){(uintptr_t)param, PARAM, 0});
}

/* ---- what plans ask for -------------------------------------------------------------------- */

bool gp_layout_crosses(const gp_layout *l, int32_t i, int32_t stage) {
  const gp_layout_param *at = &l->at[i];
  const int32_t *own = &l->placement[stage * l->copy_count];
  const int32_t owner = l->placement[at->stage * l->copy_count + at->owner];
  for (int32_t copy = 0; at->stage != stage && copy < l->copy_count; copy++)
    if (own[copy] != owner) return true;
  return false;
}

void gp_layout_cross(gp_layout *l, int32_t i, bool half) {
  int32_t *number = half ? &l->at[i].half_crossing : &l->at[i].crossing;
  if (!*number) *number = ++l->crossing_count;
}

/* Buffers have bases of their own, because they have one memory whatever the version of the
 * weights. */
gp_place gp_layout_value(const gp_layout *l, const gp_param *param, int32_t stage) {
  int32_t i = gp_layout_find(l, param);
  if (i < 0) return (gp_place){.base = -1};
  const gp_layout_param *at = &l->at[i];
  if (at->crossing && gp_layout_crosses(l, i, stage))
    return (gp_place){gp_base_of_crossing(l->stage_count, at->crossing - 1), 0};
  if (at->region != GP_REGION_BUFFER) return (gp_place){GP_BASE_VALUE + at->stage, at->offset};
  if (at->stage == stage) return (gp_place){GP_BASE_BUFFER, at->offset};
  return (gp_place){GP_BASE_VALUE + l->stage_count + at->stage, at->offset};
}

/* Add an accumulator for a further layer. Each such layer has its own: their sums are added in the
 * order of layers at the end, whatever the cut. */
static gp_status add_extra(gp_layout *l, int32_t param, int32_t layer) {
  int32_t stage = l->stage_of[layer];
  size_t bytes, *end = &l->stages[stage].extras;
  GP_TRY(padded(l->params[param], &bytes));
  GP_TRY(gp_size_add(*end, bytes, &bytes));
  GP_TRY(gp_grow_array(l->extra_count, &l->extra_room, sizeof *l->extras, (void **)&l->extras));
  GP_TRY(
      gp_map_put(&l->found, (gp_map_key){(uint64_t)param, EXTRA, layer}, (int32_t)l->extra_count));
  l->extras[l->extra_count++] = (gp_layout_extra){param, layer, stage, *end};
  *end = bytes;
  return GP_OK;
}

/* The main accumulator serves the layer that owns the parameter; other layers get extra ones. */
gp_status gp_layout_slot(gp_layout *l, const gp_param *param, int32_t layer, gp_place *place) {
  int32_t i = gp_layout_find(l, param);
  if (i < 0 || l->at[i].region != GP_REGION_TRAINABLE)
    return gp_fail(GP_EINVAL,
                   "a parameter needs a gradient but is not trained: expected a trainable one "
                   "of the model");
  *place = (gp_place){GP_BASE_GRAD, l->at[i].offset};
  if (layer == l->at[i].layer) return GP_OK;
  gp_map_key key = {(uint64_t)i, EXTRA, layer};
  if (gp_map_get(&l->found, key) < 0) GP_TRY(add_extra(l, i, layer));
  *place = (gp_place){GP_BASE_EXTRA, l->extras[gp_map_get(&l->found, key)].offset};
  return GP_OK;
}

/* Stages run at the same time, so each makes a packed copy of its own. The map holds offsets as
 * numbers of cache lines. */
gp_status gp_layout_packed(gp_layout *l, const gp_layout_pack *pack, gp_place *place) {
  gp_map_key key = {(uintptr_t)pack->param, PACKED + pack->form, pack->stage};
  size_t bytes, *end = &l->stages[pack->stage].packed;
  int32_t line = gp_map_get(&l->found, key);
  if (line < 0) {
    line = (int32_t)(*end / ALIGNMENT);
    GP_TRY(gp_size_align(pack->bytes, ALIGNMENT, &bytes));
    GP_TRY(gp_size_add(*end, bytes, &bytes));
    GP_TRY(gp_map_put(&l->found, key, line));
    *end = bytes;
  }
  *place = (gp_place){GP_BASE_PACKED, (size_t)line * ALIGNMENT};
  return GP_OK;
}

bool gp_layout_half(gp_layout *l, const gp_param *param, int32_t stage, gp_dtype dtype,
                    gp_place *place) {
  int32_t i = gp_layout_find(l, param);
  gp_layout_stage *own = &l->stages[stage];
  if (i < 0 || l->at[i].stage != stage || l->at[i].region == GP_REGION_BUFFER) return false;
  if (gp_param_meta(param)->dtype != GP_F32 || (own->halves && own->half != dtype)) return false;
  own->halves = own->values / 2;
  own->half = dtype;
  *place = (gp_place){GP_BASE_HALF, l->at[i].offset / 2};
  return own->halves > 0;
}
