/* plan/program/stage_programs.c - the programs of every stage of a shape: those that keep what the
 * mode says, and those that keep everything (variant.c); and what runs once for all micro-batches.
 */
#include "base/memory.h"
#include "base/tensor.h"
#include "plan/memory/places.h"

/* Does the larger micro-batch's P, which runs before, make this copy already? */
static bool is_packed_before(const gp_shaper *s, const gp_node *node) {
  const gp_shape_plan *larger = s->shape->larger;
  if (!larger || !gp_is_shared_pack(s, node)) return false;
  const gp_graph *graph = &larger->trace->graph;
  const gp_param *param = gp_packed_param(s->graph, node);
  int32_t index = gp_graph_find(graph, GP_FOUND_PARAM, (uintptr_t)param, 0);
  int32_t value = index < 0 ? -1 : gp_graph_find(graph, GP_FOUND_VALUE, (uint64_t)index, 0);
  if (value < 0) return false;
  const uint64_t key = gp_graph_pack_key(value, node->op, &node->attr);
  return gp_graph_find(graph, GP_FOUND_PACK, key, node->layer) >= 0;
}

/* Does an earlier node of P make this copy? Layers of a stage that share a weight each have a node
 * for it, and the pipeline has one place: two nodes that run at once would both write it. */
static bool is_packed_twice(const gp_shaper *s, const gp_node_list *before, const gp_node *node) {
  if (!gp_is_shared_pack(s, node)) return false;
  const gp_place *place = &s->outside[node->out];
  for (int32_t i = 0; i < before->count; i++) {
    const gp_node *other = &s->graph->nodes[before->nodes[i]];
    const gp_place *its = &s->outside[other->out];
    if (gp_is_shared_pack(s, other) && its->base == place->base && its->offset == place->offset)
      return true;
  }
  return false;
}

/* Build P, without the copies that the larger micro-batches' P makes and those kept with the
 * weights. */
static gp_status build_prepare(gp_shaper *s, int32_t stage) {
  const gp_node_list *all = &s->shape->stages->stages[stage].prepare;
  gp_node_list list = {0};
  GP_TRY(gp_alloc_array((size_t)all->count + 1, sizeof(int32_t), (void **)&list.nodes));
  for (int32_t i = 0; i < all->count; i++) {
    const gp_node *node = &s->graph->nodes[all->nodes[i]];
    if (!is_packed_before(s, node) && !is_packed_twice(s, &list, node) &&
        !gp_is_shared_half(s, node))
      list.nodes[list.count++] = all->nodes[i];
  }
  gp_reset_places(s, stage);
  gp_status status = gp_shaper_build(s, &list, &s->shape->programs[stage].prepare);
  gp_free(list.nodes);
  return status;
}

/* Build S, which reads nothing that F has kept. It may read no record either, but records also say
 * that their copy reads the buffers no more, so that there is always one. */
static gp_status build_late(gp_shaper *s, int32_t stage) {
  gp_stage_programs *out = &s->shape->programs[stage];
  gp_reset_places(s, stage);
  GP_TRY(gp_shaper_build(s, &s->shape->stages->stages[stage].late, &out->late));
  if (out->late && !out->record_bytes) out->record_bytes = GP_PLACE_ALIGNMENT;
  return GP_OK;
}

/* Build both variants: except_last needs one for some micro-batches and the other for the rest. */
static gp_status build_stage(gp_shaper *s, int32_t stage) {
  GP_TRY(build_prepare(s, stage));
  GP_TRY(build_late(s, stage));
  GP_TRY(gp_build_variant(s, stage, GP_KEEPS_ALL));
  return gp_build_variant(s, stage, GP_BY_MODE);
}

/* Check that the count depends on targets and constants only: it is needed before the forward
 * pass. */
static gp_status check_count(const gp_shaper *s, const bool *needed) {
  for (int32_t n = 0; n < s->graph->node_count; n++)
    for (int i = 0; needed[n] && i < s->graph->nodes[n].n_in; i++) {
      gp_value_kind kind = s->graph->values[s->graph->nodes[n].in[i]].kind;
      if (kind == GP_VALUE_INPUT || kind == GP_VALUE_PARAM)
        return gp_fail(GP_EINVAL, "loss: the count depends on the model's output; it may depend on "
                                  "the targets alone");
    }
  return GP_OK;
}

/* Build C, which computes the count: a program of its own on the last stage, apart from F. */
static gp_status build_count(gp_shaper *s) {
  gp_node_list list = {0};
  bool *needed;
  if (s->shape->count == GP_NONE) return GP_OK;
  size_t nodes = (size_t)s->graph->node_count + 1;
  GP_TRY(gp_alloc_array(nodes, sizeof *needed, (void **)&needed));
  gp_status status = gp_alloc_array(nodes, sizeof(int32_t), (void **)&list.nodes);
  if (!status) status = gp_graph_reach(s->graph, &s->shape->count, 1, needed);
  if (!status) status = check_count(s, needed);
  for (int32_t n = 0; !status && n < s->graph->node_count; n++)
    if (needed[n] && !(gp_op_get(s->graph->nodes[n].op)->flags & GP_OP_VIEW))
      list.nodes[list.count++] = n;
  int32_t last = s->env->stage_count - 1;
  gp_reset_places(s, last);
  if (!status) status = gp_shaper_build(s, &list, &s->shape->programs[last].count);
  gp_free(list.nodes);
  gp_free(needed);
  return status;
}

/* ---- all of it ----------------------------------------------------------------------------- */

/* Does the plan hold the stage, on one of its devices? */
static bool is_planned(const gp_shaper *s, int32_t stage) {
  const int32_t share = s->env->share, copies = s->schedule->copy_count;
  if (share >= 0) return !share || gp_schedule_holds(s->schedule, share - 1, stage);
  for (int32_t copy = 0; copy < copies; copy++) {
    const int32_t device = s->schedule->placement[stage * copies + copy];
    if (gp_share_has(share, &s->env->devices[device], device)) return true;
  }
  return false;
}

/* Build the programs of the stages that the plan holds. Prepared values get places first, because
 * the programs of their stage read them. */
static gp_status build_programs(gp_shaper *s) {
  size_t stages = (size_t)s->env->stage_count;
  GP_TRY(gp_shaper_room_new(s));
  GP_TRY(gp_alloc_array(stages, sizeof(gp_stage_programs), (void **)&s->shape->programs));
  GP_TRY(gp_place_outside(s));
  for (int32_t stage = 0; stage < s->env->stage_count; stage++) {
    if (!is_planned(s, stage)) continue;
    GP_TRY(gp_place_prepared(s, stage));
    GP_TRY(gp_shaper_enter(s, stage));
    GP_TRY(gp_find_constants(s, stage));
    GP_TRY(build_stage(s, stage));
  }
  if (is_planned(s, s->env->stage_count - 1))
    GP_TRY(build_count(s)); /* the values of the last stage are still listed */
  for (int32_t stage = 0; stage < s->env->stage_count; stage++) GP_TRY(gp_place_states(s, stage));
  return GP_OK;
}

gp_status gp_shape_add_programs(gp_shaper *s) {
  gp_status status = build_programs(s);
  gp_shaper_room_free(s);
  return status;
}

int gp_stage_programs_list(const gp_stage_programs *p, gp_program *list[GP_STAGE_PROGRAM_KINDS]) {
  gp_program *const all[GP_STAGE_PROGRAM_KINDS] = {
      p->prepare,     p->count,    p->forward[0], p->forward[1], p->recompute, p->backward[0],
      p->backward[1], p->input[0], p->input[1],   p->weight[0],  p->weight[1], p->late};
  int count = 0;
  for (int i = 0; i < GP_STAGE_PROGRAM_KINDS; i++)
    if (all[i]) list[count++] = all[i];
  return count;
}

gp_program *gp_stage_program_of(const gp_stage_programs *p, gp_act op, int kept) {
  switch (op) {
  case GP_ACT_F: return p->forward[kept];
  case GP_ACT_B: return p->backward[kept];
  case GP_ACT_I: return p->input[kept];
  case GP_ACT_W: return p->weight[kept];
  case GP_ACT_R: return p->recompute;
  case GP_ACT_C: return p->count;
  case GP_ACT_P: return p->prepare;
  case GP_ACT_S: return p->late;
  default: return NULL;
  }
}
