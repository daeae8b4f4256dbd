/* plan/recipes.c - what every stage runs for a micro-batch, by the mode of the pipeline.
 *
 * All stages are looked at, also those that a share does not hold: which edges a stage touches, and
 * how long it holds them, depends on what it runs again and where. */
#include "base/memory.h"
#include "plan/memory/places.h"
#include "plan/remat/layer_costs.h"
#include "plan/remat/policy.h"
#include "plan/remat/stage_dp.h"

/* What a second is worth. A core runs chains of cheap ops from its cache, so they cost it little; a
 * GPU reads them from memory, and does products a hundred times as fast. */
static const gp_remat_rates host = {.flop = 1e11, .bytes = 4e10},
                            gpu = {.flop = 2e14, .bytes = 2e12};

static gp_remat_rates rates_of(const gp_plan_env *env) {
  return env->devices && env->devices[0].space ? gpu : host;
}

enum { MOST_LAYERS = 1024 }; /* of a stage that is cut into segments: that takes about a second */

typedef struct cook {
  gp_shaper *s;
  gp_recipe_notes notes;
  int32_t *first_layer, *layer_count, *in_flight; /* per stage */
  bool *named;                                    /* per stage: the schedule names its R */
  size_t *weight;         /* per stage: bytes that it would keep if it kept everything */
  gp_stage_chain *chains; /* per stage */
  gp_recipe_spec spec;    /* of the stage at hand */
} cook;

/* ---- the stages ------------------------------------------------------------------------------ */

/* Find the layers of the stages; those of one stage follow each other. The loss is the layer behind
 * the last. */
static void find_layers(const cook *c) {
  for (int32_t l = 0; l <= c->s->env->layer_count; l++) {
    const int32_t stage = c->s->env->stage_of[l];
    if (!c->layer_count[stage]++) c->first_layer[stage] = l;
  }
}

/* Count the micro-batches that a stage has between F and the end of its backward pass, at most, and
 * note the stages with an R of the schedule's own. */
static void count_in_flight(const cook *c) {
  const gp_schedule *s = c->s->schedule;
  int32_t *live = c->layer_count; /* not in use yet */
  for (int32_t d = 0; d < s->device_count; d++) {
    for (int32_t k = 0; k < s->stage_count; k++) live[k] = 0;
    for (int32_t a = s->first[d]; a < s->first[d + 1]; a++) {
      const gp_action *x = &s->actions[a];
      if (x->op == GP_ACT_F && ++live[x->stage] > c->in_flight[x->stage])
        c->in_flight[x->stage] = live[x->stage];
      if (x->op == GP_ACT_B || x->op == GP_ACT_W) live[x->stage]--;
      if (x->op == GP_ACT_R) c->named[x->stage] = true;
    }
  }
  for (int32_t k = 0; k < s->stage_count; k++) {
    live[k] = 0;
    if (c->in_flight[k] < 1) c->in_flight[k] = 1;
  }
}

static void enter(cook *c, int32_t stage) {
  c->spec = (gp_recipe_spec){.graph = c->s->graph,
                             .stages = c->s->shape->stages,
                             .notes = &c->notes,
                             .stage = stage,
                             .first_layer = c->first_layer[stage],
                             .layer_count = c->layer_count[stage],
                             .ahead = c->s->apart[stage]};
}

static bool is_trained(const cook *c) {
  const gp_stage_nodes *nodes = &c->s->shape->stages->stages[c->spec.stage];
  return nodes->input.count + nodes->weight.count > 0;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static gp_status make_named(const cook *c, gp_remat mode, gp_recipe *recipe) {
  const gp_layer_remat *layers = c->s->env->layers;
  gp_remat_list list;
  GP_TRY(gp_remat_policy(mode, layers ? layers + c->spec.first_layer : NULL, c->spec.layer_count,
                         &list));
  gp_status status = gp_recipe_make(&c->spec, list.steps, list.count, recipe);
  gp_free(list.steps);
  return status;
}

/* Make the chain of the stage at hand; keeps: its recipe that keeps everything. */
static gp_status make_chain(const cook *c, const gp_recipe *keeps, gp_stage_chain *chain) {
  gp_recipe selects;
  GP_TRY(make_named(c, GP_REMAT_SELECTIVE, &selects));
  const gp_chain_spec spec = {&c->spec, keeps, &selects, rates_of(c->s->env)};
  gp_status status = gp_stage_chain_new(&spec, chain);
  gp_recipe_free(&selects);
  return status;
}

/* The peak if all layers of a stage run again at once. */
static gp_status peak_of_one(const gp_remat_chain *chain, int32_t in_flight, size_t *peak) {
  const int32_t layers = chain->count;
  gp_remat_list list = {.count = 3 * layers, .backward_begins = layers};
  gp_remat_cost cost;
  GP_TRY(gp_alloc_array((size_t)list.count, sizeof *list.steps, (void **)&list.steps));
  for (int32_t l = 0; l < layers; l++) {
    const gp_remat_act act = l ? GP_REMAT_FORWARD : GP_REMAT_CHECKPOINT;
    list.steps[l] = (gp_remat_step){act, l, 0};
    list.steps[layers + l] = (gp_remat_step){GP_REMAT_KEEP, l, 0};
    list.steps[3 * layers - 1 - l] = (gp_remat_step){GP_REMAT_BACKWARD, l, 0};
  }
  gp_status status = gp_remat_simulate(chain, &list, in_flight, &cost);
  if (!status) *peak = cost.peak;
  gp_free(list.steps);
  return status;
}

static gp_status make_steps(const cook *c, gp_remat_list *list, gp_recipe *recipe) {
  gp_status status = gp_recipe_make(&c->spec, list->steps + list->backward_begins,
                                    list->count - list->backward_begins, recipe);
  gp_remat_list_free(list);
  return status;
}

/* ---- modes ----------------------------------------------------------------------------------- */

/* Run all layers again, in segments if that lowers the peak. Only the last segment can run ahead of
 * the gradient that the stage waits for. */
static gp_status make_always(const cook *c, const gp_recipe *keeps, gp_recipe *recipe) {
  const gp_remat_limits limits = {.in_flight = c->in_flight[c->spec.stage], .once = true};
  gp_stage_chain chain;
  gp_remat_list list = {0};
  size_t whole = 0;
  const bool whole_only = c->spec.layer_count < 2 || c->spec.layer_count > MOST_LAYERS;
  const bool unused = c->s->env->remat == GP_REMAT_NEVER && !c->named[c->spec.stage];
  if (whole_only || unused || c->spec.ahead) return make_named(c, GP_REMAT_ALWAYS, recipe);
  GP_TRY(make_chain(c, keeps, &chain));
  gp_status status = peak_of_one(&chain.chain, limits.in_flight, &whole);
  if (!status) status = gp_remat_least(&chain.chain, &limits, &list);
  gp_stage_chain_free(&chain);
  if (status) return status;
  if (list.peak < whole) return make_steps(c, &list, recipe);
  gp_remat_list_free(&list);
  return make_named(c, GP_REMAT_ALWAYS, recipe);
}

/* The share of its device's budget that a stage gets: as much as it would keep if it kept all. */
static size_t budget_of(const cook *c, int32_t stage) {
  const gp_schedule *schedule = c->s->schedule;
  const int32_t device = schedule->placement[stage * schedule->copy_count];
  const size_t budget = c->s->budgets ? c->s->budgets[device] : SIZE_MAX;
  double all = 0;
  if (budget >= GP_BUDGET_SELECTS) return budget;
  for (int32_t k = 0; k < schedule->stage_count; k++)
    if (gp_schedule_holds(schedule, device, k)) all += (double)c->weight[k];
  return all > 0 ? (size_t)((double)budget * ((double)c->weight[stage] / all)) : budget;
}

/* Keep what the stage's budget allows, so that the time is least; where nothing fits, what comes
 * nearest. */
static gp_status make_auto(const cook *c, gp_recipe *recipe) {
  const gp_stage_chain *chain = &c->chains[c->spec.stage];
  gp_remat_limits limits = {.memory = budget_of(c, c->spec.stage),
                            .in_flight = c->in_flight[c->spec.stage]};
  gp_remat_list list;
  if (limits.memory == GP_BUDGET_SELECTS) return make_named(c, GP_REMAT_SELECTIVE, recipe);
  if (!limits.memory) return make_always(c, &c->s->recipes[c->spec.stage][GP_KEEPS_ALL], recipe);
  if (limits.memory == SIZE_MAX || c->spec.layer_count > GP_REMAT_LAYERS)
    return make_named(c, GP_REMAT_NEVER, recipe);
  gp_status status = gp_remat_plan(&chain->chain, &limits, 0, &list);
  if (status == GP_ENOMEM) status = gp_remat_least(&chain->chain, &limits, &list);
  return status ? status : make_steps(c, &list, recipe);
}

/* Make the variant that follows the pipeline's mode. Micro-batches with an R run all of their
 * forward pass again, whoever has asked for the R: the mode or the schedule. */
static gp_status make_by_mode(const cook *c, const gp_recipe *keeps, gp_recipe *recipe) {
  const gp_remat mode = c->s->env->remat;
  if (mode == GP_REMAT_AUTO) return make_auto(c, recipe);
  if (gp_remat_is_by_stage(mode)) return make_named(c, mode, recipe);
  return make_always(c, keeps, recipe);
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Make the recipes that keep everything; a budget is shared out by what these would keep. */
static gp_status keep_everything(cook *c, int32_t stage) {
  gp_recipe *keeps = &c->s->recipes[stage][GP_KEEPS_ALL];
  enter(c, stage);
  if (!is_trained(c)) return GP_OK;
  GP_TRY(make_named(c, GP_REMAT_NEVER, keeps));
  if (c->s->env->remat != GP_REMAT_AUTO) return GP_OK;
  GP_TRY(make_chain(c, keeps, &c->chains[stage]));
  for (int32_t l = 0; l < c->spec.layer_count; l++)
    c->weight[stage] += (size_t)c->in_flight[stage] * c->chains[stage].options[2 * l].kept;
  return GP_OK;
}

static gp_status cook_all(cook *c) {
  gp_shaper *s = c->s;
  GP_TRY(gp_recipe_notes_new(s->graph, &c->notes));
  count_in_flight(c);
  find_layers(c);
  for (int32_t k = 0; k < s->env->stage_count; k++) GP_TRY(keep_everything(c, k));
  for (int32_t k = 0; k < s->env->stage_count; k++) {
    enter(c, k);
    if (!is_trained(c)) continue;
    GP_TRY(make_by_mode(c, &s->recipes[k][GP_KEEPS_ALL], &s->recipes[k][GP_BY_MODE]));
  }
  return GP_OK;
}

gp_status gp_shape_add_recipes(gp_shaper *s) {
  const size_t stages = (size_t)s->env->stage_count;
  cook c = {.s = s};
  gp_status status = gp_alloc_array(stages, sizeof *s->recipes, (void **)&s->recipes);
  if (!status) status = gp_alloc_array(stages, sizeof *c.chains, (void **)&c.chains);
  if (!status) status = gp_alloc_array(stages, sizeof *c.weight, (void **)&c.weight);
  if (!status) status = gp_alloc_array(stages, sizeof *c.named, (void **)&c.named);
  if (!status) status = gp_alloc_array(3 * stages, sizeof *c.first_layer, (void **)&c.first_layer);
  if (!status) {
    c.layer_count = c.first_layer + stages;
    c.in_flight = c.layer_count + stages;
    status = cook_all(&c);
  }
  for (size_t k = 0; c.chains && k < stages; k++) gp_stage_chain_free(&c.chains[k]);
  gp_free(c.chains);
  gp_free(c.weight);
  gp_free(c.named);
  gp_free(c.first_layer);
  gp_recipe_notes_free(&c.notes);
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
