/* plan/program/variant.c - the programs of a stage that run for each micro-batch, by a recipe.
 *
 * What one program makes and another reads must lie in memory that outlives both: so each variant
 * first gives places to what is kept, made again or carried, and every other value becomes a
 * temporary of the one program that makes it. The variants of a stage start from the same places,
 * and each forgets those of the other.
 */
#include "base/memory.h"
#include "base/tensor.h"
#include "plan/memory/places.h"

gp_status gp_shaper_room_new(gp_shaper *s) {
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

void gp_shaper_room_free(gp_shaper *s) {
  gp_free(s->outside);
  gp_free(s->places);
  gp_free(s->own);
  gp_free(s->seen);
  gp_free(s->states);
  gp_program_notes_free(&s->notes);
}

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

gp_status gp_shaper_build(gp_shaper *s, const gp_node_list *list, gp_program **program) {
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
void gp_reset_places(gp_shaper *s, int32_t stage) {
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
gp_status gp_build_variant(gp_shaper *s, int32_t stage, int variant) {
  const gp_stage_nodes *nodes = &s->shape->stages->stages[stage];
  const gp_recipe *recipe = &s->recipes[stage][variant];
  gp_stage_programs *out = &s->shape->programs[stage];
  gp_program_spec backward = {.frees = true};
  gp_reset_places(s, stage);
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
