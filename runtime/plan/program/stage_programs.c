/* plan/program/stage_programs.c - the programs of every stage of a shape: those that keep what the
 * mode says, and those that keep everything.
 *
 * What one program makes and another reads must lie in memory that outlives both: so each variant
 * first gives places to what is kept, made again or carried, and every other value becomes a
 * temporary of the one program that makes it. The variants of a stage start from the same places,
 * and each forgets those of the other.
 */
#include "base/memory.h"
#include "base/tensor.h"
#include "plan/memory/places.h"

/* ---- what a stage keeps -------------------------------------------------------------------- */

void gp_mark_reads(const gp_graph *graph, const gp_node_list *list, bool *read) {
  for (int32_t i = 0; i < list->count; i++) {
    const gp_node *node = &graph->nodes[list->nodes[i]];
    for (int k = 0; k < node->n_in; k++) read[gp_graph_base(graph, node->in[k])] = true;
  }
}

/* Give a value a place in area `base`, which grows, unless it has one. */
static gp_status keep(gp_shaper *s, gp_ref r, int32_t base, size_t *bytes) {
  size_t size;
  if (s->places[r].base >= 0 || s->graph->values[r].base != r) return GP_OK;
  s->places[r] = (gp_place){.base = base, .offset = *bytes};
  GP_TRY(gp_size_align(gp_meta_bytes(&s->graph->values[r].meta), GP_PLACE_ALIGNMENT, &size));
  return gp_size_add(*bytes, size, bytes);
}

/* Keep values in the parts of an area, by who reads them last. */
static gp_status keep_all(gp_shaper *s, const gp_ref_list *list, int32_t base,
                          size_t bytes[GP_PARTS]) {
  for (int32_t i = 0; i < list->count; i++) {
    const gp_ref r = list->refs[i];
    const int part = s->later[r] ? GP_PART_REST : s->backward[r] ? GP_PART_HEAD : GP_PART_AGAIN;
    GP_TRY(keep(s, r, base + part, &bytes[part]));
  }
  return GP_OK;
}

/* Give what `makers` make and a later program reads places in area `base`. */
static gp_status keep_read(gp_shaper *s, const gp_node_list *makers, const bool *read, int32_t base,
                           size_t *bytes) {
  for (int32_t i = 0; i < makers->count; i++) {
    const gp_node *node = &s->graph->nodes[makers->nodes[i]];
    for (gp_ref r = node->out; r < node->out + node->n_out; r++)
      if (read[r]) GP_TRY(keep(s, r, base, bytes));
  }
  return GP_OK;
}

/* ---- programs ------------------------------------------------------------------------------ */

/* Build a program of a list's nodes; an empty list has none, and its task does nothing. */
static gp_status build_as(gp_shaper *s, const gp_node_list *list, gp_program_spec spec,
                          gp_program **program) {
  if (!list->count) return GP_OK;
  spec.graph = s->graph;
  spec.nodes = list->nodes;
  spec.node_count = list->count;
  spec.places = s->places;
  spec.notes = &s->notes;
  spec.separate = s->env->finite;
  return gp_program_build(&spec, program);
}

static gp_status build(gp_shaper *s, const gp_node_list *list, gp_program **program) {
  return build_as(s, list, (gp_program_spec){0}, program);
}

/* Say how many bytes the slots of a part have, which the program is the last to read: as values die
 * there, they leave room for its temporaries. */
static void give_room(const gp_stage_programs *own, int variant, int part, gp_program_spec *spec) {
  spec->room[part] = own->saved_bytes[variant][part];
  if (variant != GP_BY_MODE) return;
  spec->room[GP_BASE_AWAY - GP_BASE_SAVED + part] = own->away_bytes[part];
  spec->room[GP_BASE_RECOMPUTED - GP_BASE_SAVED + part] = own->recomputed_bytes[part];
}

/* Forget what another variant kept, and place parameters and constants where this stage finds
 * them. */
static void reset_places(gp_shaper *s, int32_t stage) {
  for (int32_t i = 0; i < s->own_count; i++) s->places[s->own[i]] = s->outside[s->own[i]];
  gp_place_constants(s, stage);
}

/* Mark what B or I reads, and what W does. Where I and W are one program, B reads what W does. The
 * backward pass that directly follows R may overwrite what R alone reads, so that counts as read by
 * it, too. */
static void mark_readers(gp_shaper *s, int32_t stage, const gp_recipe *recipe) {
  const bool apart = s->apart[stage];
  for (int32_t i = 0; i < s->own_count; i++) {
    s->backward[s->own[i]] = false;
    s->later[s->own[i]] = false;
  }
  gp_mark_reads(s->graph, &recipe->backward, s->backward);
  gp_mark_reads(s->graph, &recipe->input, s->backward);
  gp_mark_reads(s->graph, apart ? &recipe->weight : &recipe->backward, s->later);
  if (!s->hoisted[stage]) gp_mark_reads(s->graph, &recipe->again, apart ? s->backward : s->later);
}

/* Build I and W as programs of their own: the gradients that I makes and W reads are carried from
 * one to the other. */
static gp_status build_apart(gp_shaper *s, int32_t stage, int variant) {
  const gp_stage_nodes *nodes = &s->shape->stages->stages[stage];
  const gp_recipe *recipe = &s->recipes[stage][variant];
  gp_stage_programs *out = &s->shape->programs[stage];
  if (!s->apart[stage]) return GP_OK;
  out->carried_bytes = 0; /* the same in both variants */
  GP_TRY(keep_read(s, &nodes->input, s->later, GP_BASE_CARRIED, &out->carried_bytes));
  gp_program_spec input = {.frees = true, .later = s->later}, weight = {.frees = true};
  give_room(out, variant, GP_PART_HEAD, &input);
  give_room(out, variant, GP_PART_REST, &weight);
  GP_TRY(build_as(s, &recipe->input, input, &out->input[variant]));
  return build_as(s, &recipe->weight, weight, &out->weight[variant]);
}

/* Build F or R. The slots that it fills, from `base` on, have room for its temporaries until it
 * does. */
static gp_status build_filling(gp_shaper *s, const gp_node_list *list, int32_t base,
                               const size_t bytes[GP_PARTS], gp_program **program) {
  gp_program_spec spec = {0};
  for (int part = 0; part < GP_PARTS; part++) spec.room[base - GP_BASE_SAVED + part] = bytes[part];
  return build_as(s, list, spec, program);
}

/* Build the programs of a variant by its recipe. F comes first: what R makes again has no place
 * yet, so F drops it. The values that a recipe saves and those that R hands on are never the
 * same. */
static gp_status build_variant(gp_shaper *s, int32_t stage, int variant) {
  const gp_stage_nodes *nodes = &s->shape->stages->stages[stage];
  const gp_recipe *recipe = &s->recipes[stage][variant];
  gp_stage_programs *out = &s->shape->programs[stage];
  gp_program_spec backward = {.frees = true};
  reset_places(s, stage);
  mark_readers(s, stage, recipe);
  GP_TRY(keep_all(s, &recipe->saved, GP_BASE_SAVED, out->saved_bytes[variant]));
  GP_TRY(keep_all(s, &recipe->away, GP_BASE_AWAY, out->away_bytes));
  GP_TRY(build_filling(s, &nodes->forward, GP_BASE_SAVED, out->saved_bytes[variant],
                       &out->forward[variant]));
  GP_TRY(keep_all(s, &recipe->handed, GP_BASE_RECOMPUTED, out->recomputed_bytes));
  if (variant == GP_BY_MODE)
    GP_TRY(build_filling(s, &recipe->again, GP_BASE_RECOMPUTED, out->recomputed_bytes,
                         &out->recompute));
  give_room(out, variant, GP_PART_REST, &backward);
  give_room(out, variant, GP_PART_HEAD, &backward);
  GP_TRY(build_as(s, &recipe->backward, backward, &out->backward[variant]));
  return build_apart(s, stage, variant);
}

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
  reset_places(s, stage);
  gp_status status = build(s, &list, &s->shape->programs[stage].prepare);
  gp_free(list.nodes);
  return status;
}

/* Build S, which reads nothing that F has kept. It may read no record either, but records also say
 * that their copy reads the buffers no more, so that there is always one. */
static gp_status build_late(gp_shaper *s, int32_t stage) {
  gp_stage_programs *out = &s->shape->programs[stage];
  reset_places(s, stage);
  GP_TRY(build(s, &s->shape->stages->stages[stage].late, &out->late));
  if (out->late && !out->record_bytes) out->record_bytes = GP_PLACE_ALIGNMENT;
  return GP_OK;
}

/* Build both variants: except_last needs one for some micro-batches and the other for the rest. */
static gp_status build_stage(gp_shaper *s, int32_t stage) {
  GP_TRY(build_prepare(s, stage));
  GP_TRY(build_late(s, stage));
  GP_TRY(build_variant(s, stage, GP_KEEPS_ALL));
  return build_variant(s, stage, GP_BY_MODE);
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
  reset_places(s, last);
  if (!status) status = build(s, &list, &s->shape->programs[last].count);
  gp_free(list.nodes);
  gp_free(needed);
  return status;
}

/* ---- all of it ----------------------------------------------------------------------------- */

/* Allocate arrays as long as the graph's values, or its nodes. */
static gp_status make_room(gp_shaper *s) {
  size_t values = (size_t)s->graph->value_count + 1, nodes = (size_t)s->graph->node_count + 1;
  GP_TRY(gp_alloc_array(nodes, sizeof(size_t), (void **)&s->states));
  GP_TRY(gp_alloc_array(values, sizeof(gp_place), (void **)&s->outside));
  GP_TRY(gp_alloc_array(values, sizeof(gp_place), (void **)&s->places));
  GP_TRY(gp_alloc_array(values, sizeof(gp_ref), (void **)&s->own));
  GP_TRY(gp_alloc_array(3 * values, sizeof(bool), (void **)&s->seen));
  s->later = s->seen + values;
  s->backward = s->later + values;
  return gp_program_notes_new(s->graph, &s->notes);
}

static void free_room(gp_shaper *s) {
  gp_free(s->outside);
  gp_free(s->places);
  gp_free(s->own);
  gp_free(s->seen);
  gp_free(s->states);
  gp_program_notes_free(&s->notes);
}

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
  GP_TRY(make_room(s));
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
  free_room(s);
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
