/* plan/recipes.c - what every stage runs for a micro-batch, by the mode of the pipeline.
 *
 * All stages are looked at, also those that a share does not hold: which edges a stage touches, and
 * how long it holds them, depends on what it runs again and where. */
#include "base/memory.h"
#include "plan/memory/places.h"
#include "plan/remat/policy.h"

/* Find the layers of a stage; they follow each other. The loss is the layer behind the last. */
static void find_layers(const gp_shaper *s, int32_t *first, int32_t *count) {
  for (int32_t l = 0; l <= s->env->layer_count; l++) {
    const int32_t stage = s->env->stage_of[l];
    if (!count[stage]++) first[stage] = l;
  }
}

/* The mode of the variant that follows the pipeline's. Micro-batches with an R run all of their
 * forward pass again, whoever has asked for the R: the mode or the schedule. */
static gp_remat mode_of(const gp_plan_env *env) {
  return gp_remat_is_by_stage(env->remat) ? env->remat : GP_REMAT_ALWAYS;
}

static gp_status make(const gp_recipe_spec *spec, gp_remat mode, const gp_layer_remat *layers,
                      gp_recipe *recipe) {
  gp_remat_list list;
  GP_TRY(gp_remat_policy(mode, layers, spec->layer_count, &list));
  gp_status status = gp_recipe_make(spec, list.steps, list.count, recipe);
  gp_free(list.steps);
  return status;
}

static gp_status add_stage(gp_shaper *s, gp_recipe_spec *spec) {
  const gp_layer_remat *layers = s->env->layers ? s->env->layers + spec->first_layer : NULL;
  gp_recipe *recipes = s->recipes[spec->stage];
  spec->ahead = s->apart[spec->stage];
  GP_TRY(make(spec, mode_of(s->env), layers, &recipes[GP_BY_MODE]));
  return make(spec, GP_REMAT_NEVER, layers, &recipes[GP_KEEPS_ALL]);
}

static gp_status add_stages(gp_shaper *s, gp_recipe_notes *notes, int32_t *first, int32_t *count) {
  gp_recipe_spec spec = {.graph = s->graph, .stages = s->shape->stages, .notes = notes};
  GP_TRY(gp_recipe_notes_new(s->graph, notes));
  find_layers(s, first, count);
  for (; spec.stage < s->env->stage_count; spec.stage++) {
    spec.first_layer = first[spec.stage];
    spec.layer_count = count[spec.stage];
    GP_TRY(add_stage(s, &spec));
  }
  return GP_OK;
}

gp_status gp_shape_add_recipes(gp_shaper *s) {
  const size_t stages = (size_t)s->env->stage_count;
  gp_recipe_notes notes = {0};
  int32_t *first;
  GP_TRY(gp_alloc_array(stages, sizeof *s->recipes, (void **)&s->recipes));
  GP_TRY(gp_alloc_array(2 * stages, sizeof *first, (void **)&first));
  gp_status status = add_stages(s, &notes, first, first + stages);
  gp_recipe_notes_free(&notes);
  gp_free(first);
  return status;
}

void gp_shape_free_recipes(gp_shaper *s) {
  for (int32_t stage = 0; s->recipes && stage < s->env->stage_count; stage++)
    for (int v = 0; v < GP_VARIANTS; v++) gp_recipe_free(&s->recipes[stage][v]);
  gp_free(s->recipes);
  s->recipes = NULL;
}

gp_status gp_layer_remats_copy(const gp_pipeline_spec *spec, gp_layer_remat **layers) {
  *layers = NULL;
  if (spec->remat != GP_REMAT_BY_LAYER) return GP_OK;
  GP_TRY(gp_alloc_array((size_t)spec->layer_count + 1, sizeof **layers, (void **)layers));
  for (int l = 0; l < spec->layer_count; l++) (*layers)[l] = spec->layers[l];
  return GP_OK;
}
