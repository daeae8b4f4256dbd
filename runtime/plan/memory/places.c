/* plan/memory/places.c - gives places to the values of a shape that belong to no single program.
 *
 * Inputs, parameters, accumulators, constants, exports and edges have their memory before any stage
 * is looked at. What depends on parameters only gets memory of the shape's own, or, for packed
 * weights, of the pipeline's. The rest is placed with the stages (program/stage_programs.c) and
 * their programs (temp.c).
 */
#include "plan/memory/places.h"

#include "base/memory.h"
#include "base/tensor.h"

/* ---- places -------------------------------------------------------------------------------- */

/* Place a parameter. One that was captured from outside of the model would never be trained, so it
 * is refused. Each stage places it again where it finds it (gp_place_constants). */
static gp_status place_param(gp_shaper *s, const gp_value *value, gp_place *place) {
  *place = gp_layout_value(s->env->layout, s->graph->params[value->index], 0);
  if (place->base >= 0) return GP_OK;
  return gp_fail(GP_EINVAL,
                 "a parameter of shape %s is used in forward but is not part of the model: "
                 "assign it to a module of it",
                 gp_shape_print(&value->meta.shape, (char[64]){0}, 64));
}

/* Place what F records for S: one value behind the other. */
static gp_status place_record(gp_shaper *s, const gp_value *value, gp_place *place) {
  const int32_t stage = s->env->stage_of[s->graph->nodes[value->node].layer];
  size_t bytes, *end = &s->shape->programs[stage].record_bytes;
  *place = (gp_place){GP_BASE_RECORD, *end};
  GP_TRY(gp_size_align(gp_meta_bytes(&value->meta), GP_PLACE_ALIGNMENT, &bytes));
  return gp_size_add(*end, bytes, end);
}

/* Find the place of a value that leaves the pipeline; base -1 for any other. */
static gp_place export_of(const gp_shape_plan *shape, gp_ref r) {
  gp_place place = {.base = -1};
  if (r == shape->loss) place.base = GP_BASE_LOSS;
  if (r == shape->count) place.base = GP_BASE_COUNT;
  for (int k = 0; k < shape->output_count; k++)
    if (r == shape->outputs[k]) place.base = GP_BASE_OUTPUT + k;
  for (int k = 0; k < shape->input_grad_count; k++)
    if (r == shape->input_grads[k]) place.base = GP_BASE_INPUT_GRAD + k;
  return place;
}

bool gp_is_outside(const gp_shaper *s, gp_ref r) {
  const gp_value *value = &s->graph->values[r];
  return value->kind != GP_VALUE_NODE || s->graph->nodes[value->node].records ||
         s->shape->stages->edge_of[r] >= 0 || export_of(s->shape, r).base >= 0;
}

/* Place a value that has memory before any stage is looked at; base -1 for any other. */
static gp_status place_outside(gp_shaper *s, gp_ref r, gp_place *place) {
  const gp_value *value = &s->graph->values[r];
  int32_t edge = s->shape->stages->edge_of[r];
  *place = (gp_place){.base = -1};
  switch (value->kind) {
  case GP_VALUE_INPUT: place->base = GP_BASE_INPUT + value->index; break;
  case GP_VALUE_TARGET: place->base = GP_BASE_TARGET + value->index; break;
  case GP_VALUE_OUT_GRAD: place->base = GP_BASE_OUT_GRAD + value->index; break;
  case GP_VALUE_CONST:
    place->base = gp_base_of_constant(s->env->stage_count, s->shape->first_constant + value->index);
    break;
  case GP_VALUE_PARAM: return place_param(s, value, place);
  case GP_VALUE_SLOT:
    GP_TRY(gp_layout_slot(s->env->layout, s->graph->params[value->index], value->layer, place));
    s->shape->tied |= place->base == GP_BASE_EXTRA;
    break;
  case GP_VALUE_NODE:
    if (s->graph->nodes[value->node].records) return place_record(s, value, place);
    *place = export_of(s->shape, r);
    if (edge >= 0 && place->base < 0)
      place->base = gp_base_of_edge(s->env->stage_count, s->shape->first_edge + edge);
    break;
  }
  return GP_OK;
}

/* Place base values only: views follow them. */
gp_status gp_place_outside(gp_shaper *s) {
  for (gp_ref r = 0; r < s->graph->value_count; r++)
    if (s->graph->values[r].base == r) GP_TRY(place_outside(s, r, &s->outside[r]));
  return GP_OK;
}

/* ---- values that are the same for all micro-batches ----------------------------------------- */

/* The first input is a parameter: graph/pack.c packs nothing else. */
gp_param *gp_packed_param(const gp_graph *graph, const gp_node *node) {
  return graph->params[graph->values[node->in[0]].index];
}

/* The pipeline holds no packed weights if weights have versions, each of which needs a copy of its
 * own, or if two devices run the stage and each makes one. */
bool gp_is_shared_pack(const gp_shaper *s, const gp_node *node) {
  return gp_op_packs(node->op) && !s->schedule->batch && s->schedule->copy_count == 1;
}

/* Place a packed weight in the pipeline, where all plans share it. */
static gp_status place_packed(gp_shaper *s, const gp_node *node, int32_t stage) {
  const int32_t form = (int32_t)(gp_graph_pack_key(0, node->op, &node->attr) & 1);
  gp_layout_pack pack = {gp_packed_param(s->graph, node), stage, form,
                         gp_meta_bytes(&s->graph->values[node->out].meta)};
  return gp_layout_packed(s->env->layout, &pack, &s->outside[node->out]);
}

bool gp_keeps_halves(const gp_shaper *s, int32_t stage) {
  const gp_schedule *schedule = s->schedule;
  if (!s->env->devices || schedule->batch || schedule->copy_count > 1) return false;
  return s->env->devices[schedule->placement[stage]].halves;
}

/* Find the halves of a parameter that cross to the stage. */
static bool place_crossing(const gp_shaper *s, int32_t stage, const gp_param *param,
                           gp_place *place) {
  const gp_layout *layout = s->env->layout;
  const int32_t i = gp_layout_find(layout, param);
  for (int32_t k = 0; k < s->shape->crossing_count; k++) {
    const gp_crossing *c = &s->shape->crossings[k];
    if (!c->half || c->param != i || c->stage != stage) continue;
    *place =
        (gp_place){gp_base_of_crossing(layout->stage_count, layout->at[i].half_crossing - 1), 0};
    return true;
  }
  return false;
}

/* Place weights that are read in halves. They lie in the pipeline too, where updates write them, so
 * that P makes none; when anything else has written the weights, the engine casts all of them at
 * once. Returns false for other nodes, and where weights have versions or two copies. */
static bool place_half(const gp_shaper *s, int32_t stage, const gp_node *node, gp_place *place) {
  const gp_value *from = &s->graph->values[node->in[0]], *to = &s->graph->values[node->out];
  bool halves = to->meta.dtype == GP_BF16 || to->meta.dtype == GP_F16;
  if (node->op != GP_OP_cast || from->kind != GP_VALUE_PARAM || !halves) return false;
  if (place_crossing(s, stage, s->graph->params[from->index], place)) return true;
  if (!gp_keeps_halves(s, stage)) return false;
  if (!gp_meta_is_contiguous(&from->meta) || !gp_meta_is_contiguous(&to->meta)) return false;
  return gp_layout_half(s->env->layout, s->graph->params[from->index], stage, to->meta.dtype,
                        place);
}

bool gp_is_shared_half(const gp_shaper *s, const gp_node *node) {
  const int32_t base = s->outside[node->out].base;
  const int32_t behind = base - gp_base_of_crossing(s->env->stage_count, 0);
  const bool crosses = node->op == GP_OP_cast && behind >= 0 && behind % 3 == 0;
  return base == GP_BASE_HALF || crosses;
}

/* Packed weights and halves lie in the pipeline; other invariant values in memory of this shape's
 * own. */
gp_status gp_place_prepared(gp_shaper *s, int32_t stage) {
  const gp_node_list *list = &s->shape->stages->stages[stage].prepare;
  gp_stage_programs *out = &s->shape->programs[stage];
  for (int32_t i = 0; i < list->count; i++) {
    const gp_node *node = &s->graph->nodes[list->nodes[i]];
    if (gp_is_shared_pack(s, node)) {
      GP_TRY(place_packed(s, node, stage));
      continue;
    }
    if (place_half(s, stage, node, &s->outside[node->out])) continue;
    for (gp_ref r = node->out; r < node->out + node->n_out; r++) {
      size_t size;
      if (s->graph->values[r].base != r) continue;
      s->outside[r] = (gp_place){.base = GP_BASE_INVARIANT, .offset = out->invariant_bytes};
      GP_TRY(gp_size_align(gp_meta_bytes(&s->graph->values[r].meta), GP_PLACE_ALIGNMENT, &size));
      GP_TRY(gp_size_add(out->invariant_bytes, size, &out->invariant_bytes));
    }
  }
  return GP_OK;
}
