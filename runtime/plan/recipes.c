/* plan/recipes.c - what every stage runs for a micro-batch, by the mode of the pipeline.
 *
 * All stages are looked at, also those that a share does not hold: which edges a stage touches, and
 * how long it holds them, depends on what it runs again and where. */
#include "base/memory.h"
#include "plan/memory/places.h"
#include "plan/refine/stage.h"
#include "plan/remat/expand.h"
#include "plan/remat/policy.h"

static gp_remat_rates rates_of(const gp_plan_env *env) {
  return gp_remat_rates_of(env->devices && env->devices[0].space);
}

enum { MOST_LAYERS = 1024 }; /* of a stage that is cut into segments: that takes about a second */

typedef struct maker {
  gp_shaper *s;
  gp_recipe_notes notes;
  gp_chain_notes chain_notes;
  int32_t *first_layer, *layer_count, *in_flight; /* per stage */
  bool *named;                                    /* per stage: the schedule names its R */
  size_t *weight;         /* per stage: bytes that it would keep if it kept everything */
  gp_stage_chain *chains; /* per stage */
  gp_recipe_spec spec;    /* of the stage at hand */
} maker;

/* ---- the stages ------------------------------------------------------------------------------ */

/* Find the layers of the stages; those of one stage follow each other. The loss is the layer behind
 * the last. */
static void find_layers(const maker *m) {
  for (int32_t l = 0; l <= m->s->env->layer_count; l++) {
    const int32_t stage = m->s->env->stage_of[l];
    if (!m->layer_count[stage]++) m->first_layer[stage] = l;
  }
}

/* Count the micro-batches that a stage has between F and the end of its backward pass, at most, and
 * note the stages with an R of the schedule's own. */
static void count_in_flight(const maker *m) {
  const gp_schedule *s = m->s->schedule;
  int32_t *live = m->layer_count; /* not in use yet */
  for (int32_t d = 0; d < s->device_count; d++) {
    for (int32_t k = 0; k < s->stage_count; k++) live[k] = 0;
    for (int32_t a = s->first[d]; a < s->first[d + 1]; a++) {
      const gp_action *x = &s->actions[a];
      if (x->op == GP_ACT_F && ++live[x->stage] > m->in_flight[x->stage])
        m->in_flight[x->stage] = live[x->stage];
      if (x->op == GP_ACT_B || x->op == GP_ACT_W) live[x->stage]--;
      if (x->op == GP_ACT_R) m->named[x->stage] = true;
    }
  }
  for (int32_t k = 0; k < s->stage_count; k++) {
    live[k] = 0;
    if (m->in_flight[k] < 1) m->in_flight[k] = 1;
  }
}

static void enter(maker *m, int32_t stage) {
  m->spec = (gp_recipe_spec){.graph = m->s->graph,
                             .stages = m->s->shape->stages,
                             .notes = &m->notes,
                             .stage = stage,
                             .first_layer = m->first_layer[stage],
                             .layer_count = m->layer_count[stage],
                             .ahead = m->s->apart[stage]};
}

static bool is_trained(const maker *m) {
  const gp_stage_nodes *nodes = &m->s->shape->stages->stages[m->spec.stage];
  return nodes->input.count + nodes->weight.count > 0;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static gp_status make_named(const maker *m, gp_remat mode, gp_recipe *recipe) {
  const gp_layer_remat *layers = m->s->env->layers;
  gp_remat_list list;
  GP_TRY(gp_remat_policy(mode, layers ? layers + m->spec.first_layer : NULL, m->spec.layer_count,
                         &list));
  gp_status status = gp_recipe_make(&m->spec, list.steps, list.count, recipe);
  gp_free(list.steps);
  return status;
}

/* Make the recipe of a stage that makes again what is cheap and some of what is dear. Where I and W
 * run apart, both would make it, so it is the one of SELECTIVE there. */
static gp_status make_more(const maker *m, gp_recipe *recipe) {
  const int32_t layers = m->spec.layer_count;
  const int32_t option = m->spec.ahead || m->s->whole ? GP_RECIPE_SELECTS : GP_RECIPE_SELECTS_MORE;
  gp_remat_step *steps;
  GP_TRY(gp_alloc_array((size_t)layers + 1, sizeof *steps, (void **)&steps));
  for (int32_t l = 0; l < layers; l++)
    steps[l] = (gp_remat_step){GP_REMAT_BACKWARD, layers - 1 - l, option};
  gp_status status = gp_recipe_make(&m->spec, steps, layers, recipe);
  gp_free(steps);
  return status;
}

/* How the stage reaches the host's memory, if AUTO may send something there: its share is that of
 * its device's stages. */
static gp_host_link link_of(const maker *m, int32_t stage) {
  const gp_plan_env *env = m->s->env;
  const gp_schedule *schedule = m->s->schedule;
  const int32_t device = schedule->placement[stage * schedule->copy_count];
  size_t stages = 0;
  if (env->remat != GP_REMAT_AUTO || !env->devices || m->s->stays || schedule->batch)
    return (gp_host_link){0};
  gp_host_link link = env->devices[device].host;
  for (int32_t k = 0; k < schedule->stage_count; k++)
    stages += gp_schedule_holds(schedule, device, k);
  if (link.bytes) link.bytes = link.bytes / stages + !(link.bytes / stages);
  return link;
}

/* Make the chain of the stage at hand, from its recipes that keep everything and what is dear. */
static gp_status make_chain(const maker *m, const gp_recipe *keeps, const gp_recipe *selects,
                            const gp_recipe *more, gp_stage_chain *chain) {
  const gp_chain_spec spec = {.stage = &m->spec,
                              .notes = &m->chain_notes,
                              .keeps = keeps,
                              .selects = selects,
                              .more = more,
                              .rates = rates_of(m->s->env),
                              .link = link_of(m, m->spec.stage)};
  return gp_stage_chain_new(&spec, chain);
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

/* Make the recipe of a list of the chain's steps, which is freed. */
static gp_status make_steps(const maker *m, const gp_stage_chain *chain, gp_remat_list *list,
                            gp_recipe *recipe) {
  gp_remat_list all;
  gp_status status = gp_remat_expand(chain, list, &all);
  if (!status) status = gp_recipe_make(&m->spec, all.steps, all.count, recipe);
  gp_remat_list_free(&all);
  gp_remat_list_free(list);
  return status;
}

/* ---- modes ----------------------------------------------------------------------------------- */

/* Run all layers again, in segments if that lowers the peak. Only the last segment can run ahead of
 * the gradient that the stage waits for. */
static gp_status make_always(const maker *m, const gp_recipe *keeps, gp_recipe *recipe) {
  const gp_remat_limits limits = {.in_flight = m->in_flight[m->spec.stage], .once = true};
  gp_stage_chain chain;
  gp_remat_list list = {0};
  size_t whole = 0;
  const bool whole_only = m->spec.layer_count < 2 || m->spec.layer_count > MOST_LAYERS;
  const bool unused = m->s->env->remat == GP_REMAT_NEVER && !m->named[m->spec.stage];
  if (whole_only || unused || m->spec.ahead) return make_named(m, GP_REMAT_ALWAYS, recipe);
  GP_TRY(make_chain(m, keeps, keeps, keeps, &chain));
  gp_status status = peak_of_one(&chain.chain, limits.in_flight, &whole);
  if (!status) status = gp_remat_least(&chain.chain, &limits, &list);
  const bool in_segments = !status && list.peak < whole;
  if (in_segments) status = make_steps(m, &chain, &list, recipe);
  gp_remat_list_free(&list);
  gp_stage_chain_free(&chain);
  return status || in_segments ? status : make_named(m, GP_REMAT_ALWAYS, recipe);
}

/* The share of its device's budget that a stage gets: as much as it would keep if it kept all. */
static size_t budget_of(const maker *m, int32_t stage) {
  const gp_schedule *schedule = m->s->schedule;
  const int32_t device = schedule->placement[stage * schedule->copy_count];
  const size_t budget = m->s->budgets ? m->s->budgets[device] : SIZE_MAX;
  double all = 0;
  if (budget >= GP_BUDGET_SELECTS) return budget;
  for (int32_t k = 0; k < schedule->stage_count; k++)
    if (gp_schedule_holds(schedule, device, k)) all += (double)m->weight[k];
  return all > 0 ? (size_t)((double)budget * ((double)m->weight[stage] / all)) : budget;
}

/* Refine what the programme says, if the stage is small enough for that. */
static gp_status make_refined(const maker *m, const gp_remat_limits *limits, bool *made,
                              gp_recipe *recipe) {
  const gp_refine_stage_spec spec = {.shaper = m->s,
                                     .stage = &m->spec,
                                     .chain = &m->chains[m->spec.stage],
                                     .limits = *limits,
                                     .rates = rates_of(m->s->env)};
  *made = false;
  return m->s->refine ? gp_refine_stage(&spec, made, recipe) : GP_OK;
}

/* Keep what the stage's budget allows, so that the time is least; where nothing fits, what comes
 * nearest. */
static gp_status make_auto(const maker *m, gp_recipe *recipe) {
  const gp_stage_chain *chain = &m->chains[m->spec.stage];
  gp_remat_limits limits = {.memory = budget_of(m, m->spec.stage),
                            .in_flight = m->in_flight[m->spec.stage]};
  gp_remat_list list;
  bool refined;
  if (limits.memory == GP_BUDGET_SELECTS) return make_named(m, GP_REMAT_SELECTIVE, recipe);
  if (!limits.memory) return make_always(m, &m->s->recipes[m->spec.stage][GP_KEEPS_ALL], recipe);
  if (limits.memory == SIZE_MAX || m->spec.layer_count > GP_REMAT_LAYERS)
    return make_named(m, GP_REMAT_NEVER, recipe);
  GP_TRY(make_refined(m, &limits, &refined, recipe));
  if (refined) return GP_OK;
  gp_status status = gp_remat_plan(&chain->chain, &limits, 0, &list);
  if (status == GP_ENOMEM) status = gp_remat_least(&chain->chain, &limits, &list);
  if (status) return status;
  return make_steps(m, chain, &list, recipe);
}

/* Make the variant that follows the pipeline's mode. Micro-batches with an R run all of their
 * forward pass again, whoever has asked for the R: the mode or the schedule. */
static gp_status make_by_mode(const maker *m, const gp_recipe *keeps, gp_recipe *recipe) {
  const gp_remat mode = m->s->env->remat;
  if (mode == GP_REMAT_AUTO) return make_auto(m, recipe);
  if (mode == GP_REMAT_SELECTIVE && m->s->keeps && m->s->keeps[m->spec.stage])
    return make_named(m, GP_REMAT_NEVER, recipe);
  if (gp_remat_is_by_stage(mode)) return make_named(m, mode, recipe);
  return make_always(m, keeps, recipe);
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Has a device a budget, which its stages share? */
static bool has_budget(const maker *m) {
  const size_t *budgets = m->s->budgets;
  for (int32_t d = 0; budgets && d < m->s->schedule->device_count; d++)
    if (budgets[d] < SIZE_MAX) return true;
  return false;
}

/* Make the recipes that keep everything; a budget is shared out by what these would keep. */
static gp_status keep_everything(maker *m, int32_t stage) {
  gp_recipe *keeps = &m->s->recipes[stage][GP_KEEPS_ALL], selects, more = {0};
  enter(m, stage);
  if (!is_trained(m)) return GP_OK;
  GP_TRY(make_named(m, GP_REMAT_NEVER, keeps));
  if (m->s->env->remat != GP_REMAT_AUTO || !has_budget(m)) return GP_OK;
  GP_TRY(make_named(m, GP_REMAT_SELECTIVE, &selects));
  gp_status status = make_more(m, &more);
  if (!status) status = make_chain(m, keeps, &selects, &more, &m->chains[stage]);
  gp_recipe_free(&more);
  gp_recipe_free(&selects);
  GP_TRY(status);
  for (int32_t l = 0; l < m->chains[stage].chain.count; l++)
    m->weight[stage] += (size_t)m->in_flight[stage] * m->chains[stage].layers[l].options[0].kept;
  return GP_OK;
}

static gp_status make_all(maker *m) {
  gp_shaper *s = m->s;
  GP_TRY(gp_recipe_notes_new(s->graph, &m->notes));
  GP_TRY(gp_chain_notes_new(s->graph, &m->chain_notes));
  count_in_flight(m);
  find_layers(m);
  for (int32_t k = 0; k < s->env->stage_count; k++) GP_TRY(keep_everything(m, k));
  for (int32_t k = 0; k < s->env->stage_count; k++) {
    enter(m, k);
    if (!is_trained(m)) continue;
    GP_TRY(make_by_mode(m, &s->recipes[k][GP_KEEPS_ALL], &s->recipes[k][GP_BY_MODE]));
  }
  return GP_OK;
}

gp_status gp_shape_add_recipes(gp_shaper *s) {
  const size_t stages = (size_t)s->env->stage_count;
  maker m = {.s = s};
  gp_status status = gp_alloc_array(stages, sizeof *s->recipes, (void **)&s->recipes);
  if (!status) status = gp_alloc_array(stages, sizeof *m.chains, (void **)&m.chains);
  if (!status) status = gp_alloc_array(stages, sizeof *m.weight, (void **)&m.weight);
  if (!status) status = gp_alloc_array(stages, sizeof *m.named, (void **)&m.named);
  if (!status) status = gp_alloc_array(3 * stages, sizeof *m.first_layer, (void **)&m.first_layer);
  if (!status) {
    m.layer_count = m.first_layer + stages;
    m.in_flight = m.layer_count + stages;
    status = make_all(&m);
  }
  for (size_t k = 0; m.chains && k < stages; k++) gp_stage_chain_free(&m.chains[k]);
  gp_free(m.chains);
  gp_free(m.weight);
  gp_free(m.named);
  gp_free(m.first_layer);
  gp_recipe_notes_free(&m.notes);
  gp_chain_notes_free(&m.chain_notes);
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
