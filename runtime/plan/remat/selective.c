/* plan/remat/selective.c - see selective.h.
 *
 * A value is two vertices, and the arc between them costs its bytes: cutting it means to keep the
 * value. What a cheap node makes can be had from its inputs, so unbounded arcs lead from them to
 * it; what any other node makes can only be had from the source. Whatever the backward pass reads
 * leads to the sink. */
#include "plan/remat/selective.h"

#include "base/memory.h"
#include "base/tensor.h"
#include "ops/half/product.h"
#include "plan/remat/cut.h"

/* What the dear nodes of a layer take, and what they make. */
typedef struct dear {
  double flop, bytes;
} dear;

typedef struct chooser {
  const gp_selective_spec *spec;
  const gp_graph *graph;
  const gp_node_list *forward;
  int32_t *first; /* per node of F: the vertices of its first output */
  dear *dear;     /* per layer of the stage */
  gp_cut_arc *arcs;
  int32_t count, vertices;
  size_t room;
} chooser;

static unsigned mode_of(const chooser *c, const gp_node *node) {
  return c->spec->modes[node->layer - c->spec->recipe->first_layer];
}

/* Products are dear however narrow they are: what they make is wanted again as a rule. */
static bool is_cheap(const chooser *c, const gp_node *node) {
  const gp_cost cost = gp_node_cost(c->graph, node);
  const bool product = gp_op_get(node->op)->cpu.halves == GP_HALF_PRODUCTS;
  return !product && cost.flop < GP_CHEAP_INTENSITY * cost.bytes;
}

static double bytes_made(const chooser *c, const gp_node *node) {
  double bytes = 0;
  for (gp_ref r = node->out; r < node->out + node->n_out; r++)
    bytes += (double)gp_meta_bytes(&c->graph->values[r].meta);
  return bytes;
}

static dear *dear_of(const chooser *c, const gp_node *node) {
  return &c->dear[node->layer - c->spec->recipe->first_layer];
}

/* Add up the dear nodes of each layer. */
static gp_status sum_dear(chooser *c) {
  GP_TRY(gp_alloc_array((size_t)c->spec->recipe->layer_count, sizeof *c->dear, (void **)&c->dear));
  for (int32_t i = 0; i < c->forward->count; i++) {
    const gp_node *node = &c->graph->nodes[c->forward->nodes[i]];
    if (is_cheap(c, node)) continue;
    dear_of(c, node)->flop += gp_node_cost(c->graph, node).flop;
    dear_of(c, node)->bytes += bytes_made(c, node);
  }
  return GP_OK;
}

/* Is the node one of the less dear ones of its layer, for the bytes that it makes? */
static bool is_worth_it(const chooser *c, const gp_node *node) {
  const dear *all = dear_of(c, node);
  return gp_node_cost(c->graph, node).flop * all->bytes <= all->flop * bytes_made(c, node);
}

static gp_status add(chooser *c, int32_t from, int32_t to, int64_t capacity) {
  GP_TRY(gp_grow_array((size_t)c->count, &c->room, sizeof *c->arcs, (void **)&c->arcs));
  c->arcs[c->count++] = (gp_cut_arc){from, to, capacity};
  return GP_OK;
}

/* The vertex at which a value of the stage is made; the one behind it is where it is read. */
static int32_t vertex_of(const chooser *c, gp_ref base) {
  const gp_value *value = &c->graph->values[base];
  return c->first[c->spec->recipe->notes->at[value->node] - 1] + 2 * value->output;
}

/* ---- arcs ---------------------------------------------------------------------------------- */

/* Lead from what a node reads of the stage to a vertex. */
static gp_status add_reads(chooser *c, const gp_node *node, int32_t to) {
  for (int i = 0; i < node->n_in; i++) {
    const gp_ref base = gp_graph_base(c->graph, node->in[i]);
    if (!gp_recipe_owns(c->spec->recipe, base)) continue;
    GP_TRY(add(c, vertex_of(c, base) + 1, to, GP_CUT_UNBOUNDED));
  }
  return GP_OK;
}

static gp_status add_node(chooser *c, const gp_node *node, bool may_run_again) {
  for (int k = 0; k < node->n_out; k++) {
    const gp_ref out = node->out + k;
    if (gp_graph_base(c->graph, out) != out || !gp_recipe_owns(c->spec->recipe, out)) continue;
    const int32_t vertex = vertex_of(c, out);
    /* what a layer makes that runs again as a whole costs nothing more to have */
    const bool free = mode_of(c, node) & GP_LAYER_AGAIN;
    const size_t bytes = free ? 0 : gp_meta_bytes(&c->graph->values[out].meta);
    GP_TRY(add(c, vertex, vertex + 1, (int64_t)bytes));
    if (may_run_again)
      GP_TRY(add_reads(c, node, vertex));
    else
      GP_TRY(add(c, GP_CUT_SOURCE, vertex, GP_CUT_UNBOUNDED));
  }
  return GP_OK;
}

/* May node i of F run again by itself? *r: where the list of R is up to. */
static bool may_again(const chooser *c, int32_t i, int32_t *r) {
  const gp_recipe_spec *recipe = c->spec->recipe;
  const gp_node_list *again = &recipe->stages->stages[recipe->stage].recompute;
  const int32_t n = c->forward->nodes[i];
  const gp_node *node = &c->graph->nodes[n];
  while (*r < again->count && again->nodes[*r] < n) (*r)++;
  if (*r == again->count || again->nodes[*r] != n || !(mode_of(c, node) & GP_LAYER_SELECTS))
    return false;
  return is_cheap(c, node) || (mode_of(c, node) & GP_LAYER_SELECTS_MORE && is_worth_it(c, node));
}

static gp_status add_all(chooser *c, bool *may) {
  for (int32_t i = 0, r = 0; i < c->forward->count; i++) {
    const gp_node *node = &c->graph->nodes[c->forward->nodes[i]];
    may[i] = may_again(c, i, &r);
    GP_TRY(add_node(c, node, may[i]));
    if (mode_of(c, node) & GP_LAYER_AGAIN) GP_TRY(add_reads(c, node, GP_CUT_SINK));
  }
  for (int32_t i = 0; i < c->spec->backward->count; i++)
    GP_TRY(add_reads(c, &c->graph->nodes[c->spec->backward->nodes[i]], GP_CUT_SINK));
  return GP_OK;
}

/* ---- the choice ---------------------------------------------------------------------------- */

/* A node runs again if the cut leaves one of its values on the side of the sink. */
static void list_again(const chooser *c, const bool *may, const bool *behind, gp_node_list *list) {
  for (int32_t i = 0; i < c->forward->count; i++) {
    const gp_node *node = &c->graph->nodes[c->forward->nodes[i]];
    bool again = false;
    for (int k = 0; k < node->n_out; k++) again |= behind[c->first[i] + 2 * k];
    if (may[i] && again) list->nodes[list->count++] = c->forward->nodes[i];
  }
}

static gp_status choose(chooser *c, bool *may, gp_node_list *list) {
  bool *behind;
  GP_TRY(add_all(c, may));
  GP_TRY(gp_alloc_array((size_t)c->vertices, sizeof *behind, (void **)&behind));
  gp_status status = gp_cut_find(c->arcs, c->count, c->vertices, behind);
  if (!status) list_again(c, may, behind, list);
  gp_free(behind);
  return status;
}

/* Number the nodes of F and the vertices of what they make. */
static gp_status number(chooser *c) {
  const size_t nodes = (size_t)c->forward->count + 1;
  GP_TRY(gp_alloc_array(nodes, sizeof *c->first, (void **)&c->first));
  c->vertices = GP_CUT_VERTICES;
  for (int32_t i = 0; i < c->forward->count; i++) {
    c->spec->recipe->notes->at[c->forward->nodes[i]] = i + 1;
    c->first[i] = c->vertices;
    c->vertices += 2 * c->graph->nodes[c->forward->nodes[i]].n_out;
  }
  return GP_OK;
}

gp_status gp_selective_nodes(const gp_selective_spec *spec, gp_node_list *list) {
  const gp_recipe_spec *recipe = spec->recipe;
  chooser c = {.spec = spec,
               .graph = recipe->graph,
               .forward = &recipe->stages->stages[recipe->stage].forward};
  const size_t nodes = (size_t)c.forward->count + 1;
  bool *may = NULL;
  list->count = 0;
  gp_status status = number(&c);
  if (!status) status = sum_dear(&c);
  if (!status) status = gp_alloc_array(nodes, sizeof(int32_t), (void **)&list->nodes);
  if (!status) status = gp_alloc_array(nodes, sizeof *may, (void **)&may);
  if (!status) status = choose(&c, may, list);
  for (int32_t i = 0; i < c.forward->count; i++) recipe->notes->at[c.forward->nodes[i]] = 0;
  gp_free(may);
  gp_free(c.dear);
  gp_free(c.first);
  gp_free(c.arcs);
  return status;
}
