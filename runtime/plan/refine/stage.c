/* plan/refine/stage.c - see stage.h.
 *
 * The programme over the chain knows segments, but takes layers for independent of each other; so
 * it is asked for more memory than there is, too. That all layers do the same is the other kind of
 * beginning: changes lead from there to mixtures that no chain describes. */
#include "plan/refine/stage.h"

#include "base/memory.h"
#include "plan/refine/refine.h"
#include "plan/remat/expand.h"

enum {
  WORK = 1 << 18,    /* nodes in programs that are built for all stages: a third of a second */
  FEWEST_LOOKS = 32, /* fewer lead nowhere */
  QUANTA = 64,       /* points of a curve: the answer is only where refining begins */
  MOST_LAYERS = 256, /* of a chain that the programme is asked about */
  REFINED = 4        /* lists that are refined: the best ones to begin with */
};

/* Quarters of the memory that the programme is given. */
static const size_t asked[] = {4, 5, 6};
enum { ASKED = sizeof asked / sizeof *asked, UNIFORM = GP_RECIPE_SELECTS_MORE + 1 };

typedef struct finder {
  const gp_refine_stage_spec *spec;
  gp_refine_spec refine;
  gp_appraiser appraiser;
  bool *busy; /* per layer */
  gp_refined starts[ASKED + UNIFORM + 1];
  int32_t count;
  int32_t looks;
} finder;

static gp_status judge(void *context, const gp_remat_list *list, gp_worth *worth) {
  finder *f = context;
  gp_recipe recipe;
  GP_TRY(gp_recipe_make(f->spec->stage, list->steps, list->count, &recipe));
  gp_status status = gp_appraise(&f->appraiser, &recipe, worth);
  gp_recipe_free(&recipe);
  return status;
}

static const gp_stage_nodes *nodes_of(const gp_refine_stage_spec *spec) {
  return &spec->shaper->shape->stages->stages[spec->stage->stage];
}

/* How many lists may be judged. */
static int32_t count_looks(const gp_refine_stage_spec *spec) {
  const gp_stage_nodes *nodes = nodes_of(spec);
  const int64_t size = nodes->forward.count + nodes->input.count + nodes->weight.count + 1;
  return (int32_t)(WORK / size / spec->shaper->env->stage_count);
}

static gp_status find_busy(finder *f) {
  const gp_recipe_spec *stage = f->spec->stage;
  const gp_node_list *forward = &nodes_of(f->spec)->forward;
  GP_TRY(gp_alloc_array((size_t)stage->layer_count, sizeof *f->busy, (void **)&f->busy));
  for (int32_t i = 0; i < forward->count; i++)
    f->busy[stage->graph->nodes[forward->nodes[i]].layer - stage->first_layer] = true;
  return GP_OK;
}

/* ---- where to begin -------------------------------------------------------------------------- */

/* Judge a list, which is taken. One that takes what an earlier one does is left out. */
static gp_status add_start(finder *f, gp_remat_list list) {
  gp_refined *start = &f->starts[f->count];
  start->list = list;
  f->looks--;
  gp_status status = judge(f, &list, &start->worth);
  for (int32_t i = 0; !status && i < f->count; i++)
    if (f->starts[i].worth.bytes == start->worth.bytes &&
        f->starts[i].worth.seconds == start->worth.seconds)
      return gp_remat_list_free(&start->list), GP_OK;
  f->count++;
  return status;
}

/* Add the programme's answer for so much memory; where nothing fits, the one that takes least. */
static gp_status add_asked(finder *f, const gp_remat_table *table, size_t memory) {
  const gp_remat_chain *chain = &f->spec->chain->chain;
  const gp_remat_stage stage = {.table = table, .end = chain->count};
  const gp_remat_limits limits = {.memory = memory, .in_flight = f->spec->limits.in_flight};
  gp_remat_list list, all;
  gp_status status = gp_remat_solve(&stage, &limits, &list);
  if (status == GP_ENOMEM) status = gp_remat_least(chain, &limits, &list);
  GP_TRY(status);
  status = gp_remat_expand(f->spec->chain, &list, &all);
  gp_remat_list_free(&list);
  return status ? status : add_start(f, all);
}

static gp_status ask(finder *f) {
  const size_t memory = f->spec->limits.memory, most = SIZE_MAX / 4 / asked[ASKED - 1];
  const size_t quarter = (memory < most ? memory : most) / 4 + 1;
  const gp_remat_table_spec spec = {
      .chain = &f->spec->chain->chain, .memory = asked[ASKED - 1] * quarter, .quanta = QUANTA};
  gp_remat_table *table;
  if (spec.chain->count > MOST_LAYERS) return GP_OK;
  GP_TRY(gp_remat_table_new(&spec, &table));
  gp_status status = GP_OK;
  for (int32_t k = 0; !status && k < ASKED; k++) status = add_asked(f, table, asked[k] * quarter);
  gp_remat_table_free(table);
  return status;
}

/* Add the list in which all layers have an option, or run again all at once. */
static gp_status add_uniform(finder *f, int32_t option) {
  gp_remat_list list = {0};
  const bool again = option == f->refine.options;
  size_t room = 0;
  for (int32_t l = 0; again && l < f->refine.layers; l++)
    GP_TRY(gp_remat_append(&list, &room, (gp_remat_step){GP_REMAT_KEEP, l, 0}));
  if (again) option = 0;
  for (int32_t l = f->refine.layers - 1; l >= 0; l--)
    GP_TRY(gp_remat_append(&list, &room, (gp_remat_step){GP_REMAT_BACKWARD, l, option}));
  return add_start(f, list);
}

static gp_status find_starts(finder *f) {
  GP_TRY(ask(f));
  for (int32_t o = 0; o <= f->refine.options; o++) GP_TRY(add_uniform(f, o));
  return GP_OK;
}

/* ---- the best -------------------------------------------------------------------------------- */

/* Put the start that suits best behind those that have been refined. */
static void choose(finder *f, int32_t at) {
  for (int32_t i = at + 1; i < f->count; i++) {
    if (!gp_refine_suits(&f->refine, &f->starts[i].worth, &f->starts[at].worth)) continue;
    const gp_refined better = f->starts[i];
    f->starts[i] = f->starts[at];
    f->starts[at] = better;
  }
}

/* Refine the lists that suit best, each with its share of the looks, and the best of them with what
 * is left. */
static gp_status refine_some(finder *f) {
  const int32_t count = f->count < REFINED ? f->count : REFINED, share = f->looks / (count + 1);
  for (int32_t i = 0; i < count; i++) {
    int32_t looks = share;
    choose(f, i);
    GP_TRY(gp_refine(&f->refine, &looks, &f->starts[i]));
    f->looks -= share - looks;
  }
  choose(f, 0);
  return gp_refine(&f->refine, &f->looks, &f->starts[0]);
}

static gp_status find(finder *f, gp_recipe *recipe) {
  GP_TRY(gp_appraiser_new(f->spec->shaper, f->spec->stage->stage, f->spec->rates, &f->appraiser));
  GP_TRY(find_busy(f));
  f->refine.busy = f->busy;
  GP_TRY(find_starts(f));
  GP_TRY(refine_some(f));
  const gp_remat_list *list = &f->starts[0].list;
  return gp_recipe_make(f->spec->stage, list->steps, list->count, recipe);
}

gp_status gp_refine_stage(const gp_refine_stage_spec *spec, bool *made, gp_recipe *recipe) {
  finder f = {.spec = spec, .looks = count_looks(spec)};
  *made = f.looks >= FEWEST_LOOKS;
  if (!*made) return GP_OK;
  /* where I and W run apart, both would make dear values again, and all layers run again at once */
  f.refine = (gp_refine_spec){.groups = &spec->chain->groups,
                              .layers = spec->stage->layer_count,
                              .options = spec->stage->ahead ? UNIFORM - 1 : UNIFORM,
                              .joins = !spec->stage->ahead,
                              .memory = spec->limits.memory,
                              .judge = judge,
                              .context = &f};
  gp_status status = find(&f, recipe);
  for (int32_t i = 0; i < f.count; i++) gp_remat_list_free(&f.starts[i].list);
  gp_appraiser_free(&f.appraiser);
  gp_free(f.busy);
  return status;
}
