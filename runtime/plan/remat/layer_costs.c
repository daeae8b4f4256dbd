/* plan/remat/layer_costs.c - see layer_costs.h. */
#include "plan/remat/layer_costs.h"

#include "base/memory.h"
#include "base/tensor.h"

enum { KEEP_ALL, SELECT, MORE, OPTIONS, MOST_OPTIONS };

/* What is alive during a layer, beside what is saved: in F by option, in a forward pass that saves
 * nothing, and in B with values made again. */
enum { F_KEEPS, F_SELECTS, F_MORE, F_ALONE, B_SELECTS, B_MORE, PEAKS };

/* Bytes of one layer, by what they are. */
typedef struct sums {
  double forward, backward; /* seconds: F, I and W */
  double again[OPTIONS];    /* likewise: of the nodes that an option makes again */
  size_t saved[OPTIONS];    /* of what backward reads, by option */
  size_t left[OPTIONS];     /* of what later layers read and the option does not save */
  size_t output;            /* of what later layers read */
  size_t gradient;          /* of what the backward is given */
  size_t peak[PEAKS];
  bool needs_input;
} sums;

typedef struct counter {
  const gp_chain_spec *spec;
  const gp_recipe_spec *stage;
  const gp_graph *graph;
  const gp_layer_groups *groups;
  sums *layers;                 /* per group */
  uint8_t *saved, *later, *own; /* the spec's notes */
  int32_t *last;
} counter;

static int32_t group_of(const counter *c, int32_t layer) {
  return c->groups->of[layer - c->stage->first_layer];
}

static sums *layer_of(const counter *c, int32_t node) {
  return &c->layers[group_of(c, c->graph->nodes[node].layer)];
}

static size_t bytes_of(const counter *c, gp_ref r) {
  const size_t bytes = gp_meta_bytes(&c->graph->values[r].meta);
  return (bytes + 63) / 64 * 64; /* as they are placed */
}

static double seconds_of(const counter *c, const gp_node *node) {
  return gp_remat_seconds(c->spec->rates, gp_node_cost(c->graph, node));
}

/* ---- what is alive --------------------------------------------------------------------------- */

/* Does the value count? What is saved by an option of the mask, lies on an edge or is accumulated
 * has its memory elsewhere. */
static bool counts(const counter *c, const gp_node *node, gp_ref r, unsigned mask) {
  return c->graph->values[r].base == r && c->stage->stages->edge_of[r] < 0 && !node->accumulate &&
         !(c->saved[r] & mask);
}

static void note_last(const counter *c, const gp_node_list *list) {
  for (int32_t i = 0; i < list->count; i++) {
    const gp_node *node = &c->graph->nodes[list->nodes[i]];
    for (gp_ref r = node->out; r < node->out + node->n_out; r++)
      if (!c->last[r]) c->last[r] = i + 1;
    for (int k = 0; k < node->n_in; k++) c->last[gp_graph_base(c->graph, node->in[k])] = i + 1;
  }
}

/* Bytes of the values that die with node i of the list, of those that the list makes. */
static size_t dying(const counter *c, const gp_node_list *list, int32_t i, unsigned mask) {
  const gp_node *node = &c->graph->nodes[list->nodes[i]];
  size_t bytes = 0;
  for (int k = 0; k < node->n_in; k++) {
    const gp_ref base = gp_graph_base(c->graph, node->in[k]);
    const int32_t maker = c->graph->values[base].node;
    bool again = false;
    for (int j = 0; j < k; j++) again |= gp_graph_base(c->graph, node->in[j]) == base;
    if (again || c->last[base] != i + 1 || maker < 0 || !c->later[base]) continue;
    if (counts(c, &c->graph->nodes[maker], base, mask)) bytes += bytes_of(c, base);
  }
  return bytes;
}

/* Find the most bytes that are alive during each layer's nodes of a list. An elementwise result may
 * take the memory of an input that dies. later[]: the list has made the value. */
static void find_peaks(const counter *c, const gp_node_list *list, unsigned mask, int peak) {
  size_t alive = 0;
  note_last(c, list);
  for (int32_t i = 0; i < list->count; i++) {
    const gp_node *node = &c->graph->nodes[list->nodes[i]];
    const bool inplace = gp_op_get(node->op)->flags & GP_OP_INPLACE;
    sums *own = layer_of(c, list->nodes[i]);
    const size_t over = dying(c, list, i, mask);
    size_t made = 0, unread = 0;
    for (gp_ref r = node->out; r < node->out + node->n_out; r++) {
      if (!counts(c, node, r, mask)) continue;
      c->later[r] = true;
      made += bytes_of(c, r);
      if (c->last[r] == i + 1) unread += bytes_of(c, r);
    }
    const size_t taken = inplace ? (over < made ? over : made) : 0;
    if (alive + made - taken > own->peak[peak]) own->peak[peak] = alive + made - taken;
    alive = alive + made - unread - over;
  }
  for (int32_t i = 0; i < list->count; i++) {
    const gp_node *node = &c->graph->nodes[list->nodes[i]];
    for (gp_ref r = node->out; r < node->out + node->n_out; r++) c->last[r] = 0, c->later[r] = 0;
    for (int k = 0; k < node->n_in; k++) c->last[gp_graph_base(c->graph, node->in[k])] = 0;
  }
}

/* ---- passes over the nodes ------------------------------------------------------------------- */

/* Was the value made in the forward pass of an earlier layer of this stage? */
static bool is_from_below(const counter *c, const gp_node *node, gp_ref base) {
  const gp_value *value = &c->graph->values[base];
  return c->own[base] && c->stage->stages->edge_of[base] < 0 &&
         group_of(c, value->layer) < group_of(c, node->layer);
}

static void note_forward(const counter *c, const gp_node_list *list) {
  for (int32_t i = 0; i < list->count; i++) {
    const gp_node *node = &c->graph->nodes[list->nodes[i]];
    sums *own = layer_of(c, list->nodes[i]);
    own->forward += seconds_of(c, node);
    for (int k = 0; k < node->n_in; k++) {
      const gp_ref base = gp_graph_base(c->graph, node->in[k]);
      if (!is_from_below(c, node, base) || c->later[base]) continue;
      sums *maker = layer_of(c, c->graph->values[base].node);
      c->later[base] = true;
      maker->output += bytes_of(c, base);
      for (int o = 0; o < OPTIONS; o++)
        if (!(c->saved[base] >> o & 1)) maker->left[o] += bytes_of(c, base);
    }
  }
}

/* Was the value made in the backward pass of a later layer? */
static bool is_from_above(const counter *c, const gp_node *node, gp_ref base) {
  const gp_value *value = &c->graph->values[base];
  return value->node >= 0 && value->layer > node->layer && c->stage->stages->edge_of[base] < 0 &&
         c->graph->nodes[value->node].phase == GP_BACKWARD &&
         group_of(c, value->layer) > group_of(c, node->layer);
}

/* A gradient that another layer made is what this layer's backward is given. */
static void note_gradients(const counter *c, const gp_node *node, sums *own) {
  for (int k = 0; k < node->n_in; k++) {
    const gp_ref base = gp_graph_base(c->graph, node->in[k]);
    if (is_from_below(c, node, base)) own->needs_input = true;
    if (c->later[base] || !is_from_above(c, node, base)) continue;
    c->later[base] = true;
    own->gradient += bytes_of(c, base);
  }
}

static void note_backward(const counter *c, const gp_node_list *list) {
  for (int32_t i = 0; i < list->count; i++) {
    const gp_node *node = &c->graph->nodes[list->nodes[i]];
    sums *own = layer_of(c, list->nodes[i]);
    if (node->phase == GP_FORWARD) continue;
    own->backward += seconds_of(c, node);
    note_gradients(c, node, own);
  }
}

/* Add up what a recipe makes again. */
static void note_again(const counter *c, const gp_recipe *recipe, int option) {
  const gp_node_list *lists[] = {&recipe->again, &recipe->backward};
  for (int k = 0; k < 2; k++)
    for (int32_t i = 0; i < lists[k]->count; i++) {
      const gp_node *node = &c->graph->nodes[lists[k]->nodes[i]];
      if (node->phase == GP_FORWARD)
        layer_of(c, lists[k]->nodes[i])->again[option] += seconds_of(c, node);
    }
}

static void note_saved(const counter *c, const gp_ref_list *list, int option) {
  for (int32_t i = 0; i < list->count; i++) {
    c->saved[list->refs[i]] |= (uint8_t)(1u << option);
    layer_of(c, c->graph->values[list->refs[i]].node)->saved[option] += bytes_of(c, list->refs[i]);
  }
}

static void forget(const counter *c, const gp_node_list *list) {
  for (int32_t i = 0; i < list->count; i++) {
    const gp_node *node = &c->graph->nodes[list->nodes[i]];
    for (gp_ref r = node->out; r < node->out + node->n_out; r++) c->saved[r] = c->later[r] = 0;
  }
}

/* ---- the chain ------------------------------------------------------------------------------- */

static int64_t nanoseconds(double seconds) {
  const double most = 1e15; /* eleven days: sums of thousands of layers stay in range */
  return (int64_t)(1e9 * seconds < most ? 1e9 * seconds : most) + 1;
}

static size_t less(size_t a, size_t b) { return a > b ? a - b : 0; }

/* What an option of a layer costs. left: what later layers read and the option does not save. */
static gp_remat_option option_of(const sums *s, const sums *before, int o) {
  static const int backward_peaks[OPTIONS] = {B_SELECTS, B_SELECTS, B_MORE};
  const size_t given = s->gradient, handed = before ? before->gradient : 0;
  const size_t left = s->left[o] + (before ? before->left[o] : 0);
  return (gp_remat_option){.forward = nanoseconds(s->forward),
                           .backward = nanoseconds(s->backward + s->again[o]),
                           .kept = s->saved[o] + s->left[o],
                           .forward_extra = less(s->peak[F_KEEPS + o], left),
                           .backward_extra = less(s->peak[backward_peaks[o]], given + handed)};
}

/* Where the options of a layer are written. */
typedef struct writer {
  gp_remat_layer *layer;
  gp_remat_option *options;
  uint8_t *names;
} writer;

static void add_option(writer *w, gp_remat_option option, int name) {
  w->options[w->layer->option_count] = option;
  w->names[w->layer->option_count++] = (uint8_t)name;
}

/* Write down a layer. What it is given and what it hands on are counted by the chain itself. goes:
 * it may wait in the host's memory. */
static void set_layer(const sums *s, const sums *before, bool goes, writer w) {
  static const int names[OPTIONS] = {GP_RECIPE_KEEPS, GP_RECIPE_SELECTS, GP_RECIPE_SELECTS_MORE};
  *w.layer = (gp_remat_layer){.forward = nanoseconds(s->forward),
                              .forward_extra =
                                  less(s->peak[F_ALONE], s->output + (before ? before->output : 0)),
                              .output = s->output,
                              .gradient = s->gradient,
                              .needs_input = s->needs_input,
                              .options = w.options};
  for (int o = 0; o < OPTIONS; o++) {
    const gp_remat_option option = option_of(s, before, o);
    const int32_t count = w.layer->option_count;
    if (!count || option.kept < w.options[count - 1].kept) add_option(&w, option, names[o]);
  }
  if (!goes || !w.options[0].kept) return;
  gp_remat_option away = w.options[0];
  away.away = away.kept;
  away.kept = 0;
  add_option(&w, away, GP_RECIPE_OFFLOADS);
}

int32_t gp_stage_chain_name(const gp_stage_chain *chain, int32_t layer, int32_t option) {
  return chain->names[MOST_OPTIONS * layer + option];
}

static void mark_own(const counter *c, const gp_node_list *forward, bool own) {
  for (int32_t i = 0; i < forward->count; i++) {
    const gp_node *node = &c->graph->nodes[forward->nodes[i]];
    for (gp_ref r = node->out; r < node->out + node->n_out; r++) c->own[r] = own;
  }
}

static void count_layers(const counter *c) {
  const gp_stage_nodes *nodes = &c->stage->stages->stages[c->stage->stage];
  note_saved(c, &c->spec->keeps->saved, KEEP_ALL);
  note_saved(c, &c->spec->selects->saved, SELECT);
  note_saved(c, &c->spec->more->saved, MORE);
  find_peaks(c, &nodes->forward, 1u << KEEP_ALL, F_KEEPS);
  find_peaks(c, &nodes->forward, 1u << SELECT, F_SELECTS);
  find_peaks(c, &nodes->forward, 1u << MORE, F_MORE);
  find_peaks(c, &nodes->forward, 0, F_ALONE);
  note_forward(c, &nodes->forward);
  forget(c, &nodes->forward);
  find_peaks(c, &c->spec->selects->backward, 0, B_SELECTS);
  find_peaks(c, &c->spec->more->backward, 0, B_MORE);
  note_again(c, c->spec->selects, SELECT);
  note_again(c, c->spec->more, MORE);
  note_backward(c, &c->spec->selects->backward);
  forget(c, &c->spec->selects->backward);
}

static gp_status make_room(counter *c, gp_stage_chain *chain) {
  GP_TRY(gp_layer_groups_new(c->stage, c->own, &chain->groups));
  const size_t count = (size_t)chain->groups.count;
  c->groups = &chain->groups;
  GP_TRY(gp_alloc_array(count, sizeof *c->layers, (void **)&c->layers));
  GP_TRY(gp_alloc_array(count, sizeof *chain->layers, (void **)&chain->layers));
  GP_TRY(gp_alloc_array(MOST_OPTIONS * count, sizeof *chain->names, (void **)&chain->names));
  return gp_alloc_array(MOST_OPTIONS * count, sizeof *chain->options, (void **)&chain->options);
}

static void write_chain(const counter *c, gp_stage_chain *chain) {
  for (int32_t g = 0; g < chain->groups.count; g++)
    set_layer(&c->layers[g], g ? &c->layers[g - 1] : NULL, c->spec->link.bandwidth > 0,
              (writer){&chain->layers[g], &chain->options[MOST_OPTIONS * g],
                       &chain->names[MOST_OPTIONS * g]});
  chain->chain = (gp_remat_chain){
      .layers = chain->layers, .count = chain->groups.count, .link = c->spec->link};
}

gp_status gp_stage_chain_new(const gp_chain_spec *spec, gp_stage_chain *chain) {
  counter c = {.spec = spec,
               .stage = spec->stage,
               .graph = spec->stage->graph,
               .saved = spec->notes->saved,
               .later = spec->notes->later,
               .own = spec->notes->own,
               .last = spec->notes->last};
  const gp_node_list *forward = &c.stage->stages->stages[c.stage->stage].forward;
  *chain = (gp_stage_chain){0};
  mark_own(&c, forward, true);
  gp_status status = make_room(&c, chain);
  if (!status) {
    count_layers(&c);
    write_chain(&c, chain);
  } else {
    gp_stage_chain_free(chain);
  }
  mark_own(&c, forward, false);
  gp_free(c.layers);
  return status;
}

gp_status gp_chain_notes_new(const gp_graph *graph, gp_chain_notes *notes) {
  const size_t values = (size_t)graph->value_count + 1;
  GP_TRY(gp_alloc_array(3 * values, sizeof *notes->saved, (void **)&notes->saved));
  notes->later = notes->saved + values;
  notes->own = notes->later + values;
  return gp_alloc_array(values, sizeof *notes->last, (void **)&notes->last);
}

void gp_chain_notes_free(gp_chain_notes *notes) {
  gp_free(notes->saved);
  gp_free(notes->last);
  *notes = (gp_chain_notes){0};
}

void gp_stage_chain_free(gp_stage_chain *chain) {
  gp_layer_groups_free(&chain->groups);
  gp_free(chain->layers);
  gp_free(chain->options);
  gp_free(chain->names);
  *chain = (gp_stage_chain){0};
}
