/* plan/remat/recipe.c - see recipe.h.
 *
 * The steps become a list of nodes that might run. Then one pass from its end to its begin knows
 * what is still read: a forward node that makes nothing of it is left out, and what is still
 * wanted at the begin must have been saved by F. */
#include "plan/remat/recipe.h"

#include "base/memory.h"
#include "plan/program/program.h"
#include "plan/remat/selective.h"
#include "plan/remat/weave.h"

enum { BY_BACKWARD = 1, BY_AGAIN = 2 }; /* who reads a value: B, or R */

typedef struct maker {
  const gp_recipe_spec *spec;
  const gp_graph *graph;
  const gp_stage_nodes *nodes;
  gp_recipe_notes *notes;
  gp_recipe *out;
  gp_node_list back;  /* I and W */
  gp_node_list cheap; /* what selecting layers make again */
  gp_node_list list;  /* what might run, in order */
  size_t room;
  int32_t begin;                  /* of B in the list */
  int32_t taken;                  /* of back */
  int32_t *until;                 /* per layer: behind its last node in back */
  int32_t *layered, *layer_begin; /* the nodes of R, layer after layer */
  unsigned *modes;                /* per layer: GP_LAYER_* */
} maker;

static int32_t layer_of(const maker *m, int32_t n) {
  return m->graph->nodes[n].layer - m->spec->first_layer;
}

static gp_status append(maker *m, int32_t n) {
  GP_TRY(gp_grow_array((size_t)m->list.count, &m->room, sizeof(int32_t), (void **)&m->list.nodes));
  m->list.nodes[m->list.count++] = n;
  return GP_OK;
}

/* ---- the stage ----------------------------------------------------------------------------- */

gp_status gp_merge_backward(const gp_stage_nodes *stage, gp_node_list *list) {
  const gp_node_list *input = &stage->input, *weight = &stage->weight;
  int32_t i = 0, w = 0;
  list->count = 0;
  GP_TRY(gp_alloc_array((size_t)(input->count + weight->count) + 1, sizeof(int32_t),
                        (void **)&list->nodes));
  while (i < input->count || w < weight->count) {
    bool take_input =
        w == weight->count || (i < input->count && input->nodes[i] < weight->nodes[w]);
    list->nodes[list->count++] = take_input ? input->nodes[i++] : weight->nodes[w++];
  }
  return GP_OK;
}

/* Sort the nodes that may run again by layer; within a layer they stay in order. */
static void sort_by_layer(maker *m) {
  const gp_node_list *again = &m->nodes->recompute;
  int32_t *begin = m->layer_begin;
  for (int32_t i = 0; i < again->count; i++) begin[layer_of(m, again->nodes[i]) + 1]++;
  for (int32_t l = 0; l < m->spec->layer_count; l++) begin[l + 1] += begin[l];
  for (int32_t i = again->count - 1; i >= 0; i--) {
    const int32_t l = layer_of(m, again->nodes[i]);
    m->layered[--begin[l + 1]] = again->nodes[i];
  }
  /* begin[l + 1] is where layer l begins now */
  for (int32_t l = 0; l < m->spec->layer_count; l++) begin[l] = begin[l + 1];
  begin[m->spec->layer_count] = again->count;
}

static gp_status look_at_stage(maker *m) {
  const size_t layers = (size_t)m->spec->layer_count, again = (size_t)m->nodes->recompute.count;
  GP_TRY(gp_alloc_array(2 * layers + again + 3, sizeof(int32_t), (void **)&m->until));
  GP_TRY(gp_alloc_array(layers + 1, sizeof *m->modes, (void **)&m->modes));
  m->layer_begin = m->until + layers;
  m->layered = m->layer_begin + layers + 2;
  GP_TRY(gp_merge_backward(m->nodes, &m->back));
  for (int32_t i = 0; i < m->back.count; i++) m->until[layer_of(m, m->back.nodes[i])] = i + 1;
  for (int32_t i = 0; i < m->nodes->forward.count; i++)
    m->notes->own[m->nodes->forward.nodes[i]] = true;
  sort_by_layer(m);
  return GP_OK;
}

/* ---- what might run ------------------------------------------------------------------------ */

static gp_status append_layer(maker *m, int32_t layer) {
  for (int32_t i = m->layer_begin[layer]; i < m->layer_begin[layer + 1]; i++)
    GP_TRY(append(m, m->layered[i]));
  return GP_OK;
}

/* Append nodes of the backward pass up to the last one of a layer. Nodes of other layers between
 * them keep their places: the order of the graph holds in any case. */
static gp_status append_back(maker *m, int32_t until) {
  const int32_t first = m->taken;
  if (until <= first) return GP_OK;
  m->taken = until;
  GP_TRY(gp_program_order(m->graph, m->back.nodes + first, until - first));
  for (int32_t i = first; i < until; i++) GP_TRY(append(m, m->back.nodes[i]));
  return GP_OK;
}

/* The last step of backward steps that follow each other without anything in between. */
static int32_t run_of(const gp_remat_step *steps, int32_t count, int32_t i) {
  while (i + 1 < count && steps[i + 1].act == GP_REMAT_BACKWARD) i++;
  return i;
}

/* List the steps' nodes; B begins with the first one of a backward step. */
static gp_status list_steps(maker *m, const gp_remat_step *steps, int32_t count) {
  m->begin = -1;
  for (int32_t i = 0; i < count; i++) {
    if (steps[i].act != GP_REMAT_BACKWARD) {
      GP_TRY(append_layer(m, steps[i].layer));
      continue;
    }
    if (m->begin < 0) m->begin = m->list.count;
    const int32_t last = run_of(steps, count, i);
    int32_t until = last + 1 == count ? m->back.count : 0;
    for (; i <= last; i++)
      if (m->until[steps[i].layer] > until) until = m->until[steps[i].layer];
    i = last;
    GP_TRY(append_back(m, until));
  }
  if (m->begin < 0) m->begin = m->list.count;
  return GP_OK;
}

/* List all that runs again first, in the order of the graph, and the backward pass behind it. */
static gp_status list_ahead(maker *m) {
  const gp_node_list *again = &m->nodes->recompute;
  for (int32_t i = 0, c = 0; i < again->count; i++) {
    const int32_t n = again->nodes[i];
    while (c < m->cheap.count && m->cheap.nodes[c] < n) c++;
    const bool cheap = c < m->cheap.count && m->cheap.nodes[c] == n;
    if (cheap || m->modes[layer_of(m, n)] & GP_LAYER_AGAIN) GP_TRY(append(m, n));
  }
  m->begin = m->list.count;
  return append_back(m, m->back.count);
}

/* ---- what does run ------------------------------------------------------------------------- */

static void want(const maker *m, const gp_node *node, uint8_t by) {
  for (int i = 0; i < node->n_in; i++) {
    const gp_ref base = gp_graph_base(m->graph, node->in[i]);
    if (gp_recipe_owns(m->spec, base)) m->notes->wanted[base] |= by;
  }
}

/* Who wants what a forward node makes? Afterwards nobody does: it has been made. */
static uint8_t take(const maker *m, const gp_node *node) {
  uint8_t by = 0;
  for (gp_ref r = node->out; r < node->out + node->n_out; r++) {
    by |= m->notes->wanted[r];
    m->notes->wanted[r] = 0;
  }
  return by;
}

static gp_status add_ref(gp_ref_list *list, gp_ref ref) {
  size_t n = (size_t)list->count;
  if (!(n & (n - 1)))
    GP_TRY(gp_resize_array(n, n ? 2 * n : 1, sizeof(gp_ref), (void **)&list->refs));
  list->refs[list->count++] = ref;
  return GP_OK;
}

/* Note the values of a node of R that B reads. */
static gp_status hand(maker *m, const gp_node *node) {
  for (gp_ref r = node->out + node->n_out - 1; r >= node->out; r--)
    if (m->notes->wanted[r] & BY_BACKWARD) GP_TRY(add_ref(&m->out->handed, r));
  return GP_OK;
}

/* Walk from the end to the begin and keep the nodes that are needed, at the end of the list.
 * Returns through *kept where they begin there. */
static gp_status prune(maker *m, int32_t *kept) {
  int32_t *nodes = m->list.nodes, at = m->list.count, begin = m->list.count;
  for (int32_t i = m->list.count - 1; i >= 0; i--) {
    const gp_node *node = &m->graph->nodes[nodes[i]];
    const uint8_t by = i >= m->begin ? BY_BACKWARD : BY_AGAIN;
    if (node->phase == GP_FORWARD) {
      if (by == BY_AGAIN) GP_TRY(hand(m, node));
      if (!take(m, node)) continue;
    }
    want(m, node, by);
    nodes[--at] = nodes[i];
    if (i >= m->begin) begin = at;
  }
  m->begin = begin;
  *kept = at;
  return GP_OK;
}

static gp_status copy_part(const maker *m, int32_t first, int32_t end, gp_node_list *to) {
  GP_TRY(gp_alloc_array((size_t)(end - first) + 1, sizeof(int32_t), (void **)&to->nodes));
  for (int32_t i = first; i < end; i++) to->nodes[to->count++] = m->list.nodes[i];
  return GP_OK;
}

/* List what F saves, in the order in which it makes it, and apart from it what goes to the host. */
static gp_status list_saved(const maker *m) {
  const gp_node_list *forward = &m->nodes->forward;
  for (int32_t i = 0; i < forward->count; i++) {
    const gp_node *node = &m->graph->nodes[forward->nodes[i]];
    const bool away = m->modes[layer_of(m, forward->nodes[i])] & GP_LAYER_GOES;
    for (gp_ref r = node->out; r < node->out + node->n_out; r++)
      if (m->notes->wanted[r]) GP_TRY(add_ref(away ? &m->out->away : &m->out->saved, r));
  }
  return GP_OK;
}

/* Put what is handed over into the order in which R makes it: it was found from the end on. */
static void reverse_handed(const maker *m) {
  gp_ref_list *handed = &m->out->handed;
  for (int32_t i = 0, k = handed->count - 1; i < k; i++, k--) {
    const gp_ref ref = handed->refs[i];
    handed->refs[i] = handed->refs[k];
    handed->refs[k] = ref;
  }
}

/* ---- all of it ----------------------------------------------------------------------------- */

/* Note which layers run again as a whole, which in part, and whose saved values go to the host. */
static void note_modes(const maker *m, const gp_remat_step *steps, int32_t count) {
  for (int32_t i = 0; i < count; i++) {
    if (steps[i].act != GP_REMAT_BACKWARD)
      m->modes[steps[i].layer] |= GP_LAYER_AGAIN;
    else if (steps[i].option == GP_RECIPE_SELECTS)
      m->modes[steps[i].layer] |= GP_LAYER_SELECTS;
    else if (steps[i].option == GP_RECIPE_SELECTS_MORE)
      m->modes[steps[i].layer] |= GP_LAYER_SELECTS | GP_LAYER_SELECTS_MORE;
    else if (steps[i].option == GP_RECIPE_OFFLOADS)
      m->modes[steps[i].layer] |= GP_LAYER_GOES;
  }
}

static gp_status choose_cheap(maker *m) {
  unsigned any = 0;
  for (int32_t l = 0; l < m->spec->layer_count; l++) any |= m->modes[l] & GP_LAYER_SELECTS;
  if (!any) return GP_OK;
  const gp_selective_spec selective = {m->spec, m->modes, &m->back};
  return gp_selective_nodes(&selective, &m->cheap);
}

/* Make a recipe whose B and R are found in m->list. */
static gp_status make_joined(maker *m) {
  int32_t kept;
  GP_TRY(prune(m, &kept));
  reverse_handed(m);
  GP_TRY(list_saved(m));
  GP_TRY(copy_part(m, kept, m->begin, &m->out->again));
  return copy_part(m, m->begin, m->list.count, &m->out->backward);
}

static gp_status copy_list(const gp_node_list *from, gp_node_list *to) {
  GP_TRY(gp_alloc_array((size_t)from->count + 1, sizeof(int32_t), (void **)&to->nodes));
  for (int32_t i = 0; i < from->count; i++) to->nodes[to->count++] = from->nodes[i];
  return GP_OK;
}

/* List what a program runs: a part of the backward pass, and the cheap values that it reads. */
static gp_status list_program(maker *m, const gp_node_list *part, gp_node_list *to) {
  int32_t kept;
  gp_free(m->list.nodes);
  m->list = (gp_node_list){0};
  m->begin = 0;
  GP_TRY(copy_list(part, &m->list));
  GP_TRY(gp_weave(m->spec, &m->cheap, 0, &m->list));
  GP_TRY(prune(m, &kept));
  return copy_part(m, kept, m->list.count, to);
}

/* Make the recipe of a stage whose I and W run apart. If whole layers run again, that is done once,
 * in R; W may run much later than I, so cheap values are not held until then but made in both. */
static gp_status make_apart(maker *m, bool layers) {
  const gp_node_list *input = &m->nodes->input, *weight = &m->nodes->weight;
  if (layers) {
    GP_TRY(list_ahead(m));
    GP_TRY(make_joined(m));
    GP_TRY(copy_list(input, &m->out->input));
    return copy_list(weight, &m->out->weight);
  }
  GP_TRY(gp_program_order(m->graph, m->back.nodes, m->back.count));
  GP_TRY(list_program(m, &m->back, &m->out->backward));
  GP_TRY(list_program(m, input, &m->out->input));
  GP_TRY(list_program(m, weight, &m->out->weight));
  return list_saved(m);
}

static gp_status make(maker *m, const gp_remat_step *steps, int32_t count) {
  bool layers = false;
  GP_TRY(look_at_stage(m));
  note_modes(m, steps, count);
  for (int32_t l = 0; l < m->spec->layer_count; l++) layers |= (m->modes[l] & GP_LAYER_AGAIN) != 0;
  GP_TRY(choose_cheap(m));
  if (m->spec->ahead) return make_apart(m, layers);
  GP_TRY(list_steps(m, steps, count));
  GP_TRY(gp_weave(m->spec, &m->cheap, m->begin, &m->list));
  return make_joined(m);
}

/* Clear the notes of the stage. */
static void forget(const maker *m) {
  const gp_node_list *forward = &m->nodes->forward;
  for (int32_t i = 0; i < forward->count; i++) {
    const gp_node *node = &m->graph->nodes[forward->nodes[i]];
    m->notes->own[forward->nodes[i]] = false;
    for (gp_ref r = node->out; r < node->out + node->n_out; r++) m->notes->wanted[r] = 0;
  }
}

gp_status gp_recipe_make(const gp_recipe_spec *spec, const gp_remat_step *steps, int32_t count,
                         gp_recipe *recipe) {
  maker m = {.spec = spec,
             .graph = spec->graph,
             .nodes = &spec->stages->stages[spec->stage],
             .notes = spec->notes,
             .out = recipe};
  *recipe = (gp_recipe){0};
  gp_status status = make(&m, steps, count);
  forget(&m);
  gp_free(m.until);
  gp_free(m.modes);
  gp_free(m.back.nodes);
  gp_free(m.cheap.nodes);
  gp_free(m.list.nodes);
  if (status) gp_recipe_free(recipe);
  return status;
}

void gp_recipe_free(gp_recipe *recipe) {
  gp_free(recipe->again.nodes);
  gp_free(recipe->backward.nodes);
  gp_free(recipe->input.nodes);
  gp_free(recipe->weight.nodes);
  gp_free(recipe->saved.refs);
  gp_free(recipe->away.refs);
  gp_free(recipe->handed.refs);
  *recipe = (gp_recipe){0};
}

gp_status gp_recipe_notes_new(const gp_graph *graph, gp_recipe_notes *notes) {
  const size_t nodes = (size_t)graph->node_count + 1, values = (size_t)graph->value_count + 1;
  GP_TRY(gp_alloc_array(nodes, sizeof *notes->at, (void **)&notes->at));
  GP_TRY(gp_alloc_array(nodes, sizeof *notes->own, (void **)&notes->own));
  return gp_alloc_array(values, sizeof *notes->wanted, (void **)&notes->wanted);
}

void gp_recipe_notes_free(gp_recipe_notes *notes) {
  gp_free(notes->at);
  gp_free(notes->own);
  gp_free(notes->wanted);
  *notes = (gp_recipe_notes){0};
}
