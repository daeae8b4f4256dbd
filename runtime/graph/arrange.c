/* graph/arrange.c - let elementwise ops leave values in the order of their inputs, where that saves
 * passes over memory.
 *
 * While a model is traced every op writes row-major values: a permuted input is read in long steps,
 * and an op that needs a row-major value of a permuted view gets a copy. Ops that treat elements
 * one by one (GP_OP_ANY_ORDER) can write any order, so chains of them can stay in the order of what
 * they read; then a view back, or a reader that wants this very order, needs no copy. Gradients
 * belong to the same chains: relu_dx reads what relu made.
 *
 * The orders of such a chain are chosen together. A trial gives an order to one value, from which
 * it spreads along the chain, also through permuted views. The trial is accepted if it costs less
 * than row-major values: an operand in another order costs a read in long steps, a copy costs two
 * more passes. Ops that are not elementwise see the same values as in the trace, so no bit changes.
 * Edges do not change either, because a value that another stage reads keeps its order. Graphs
 * without permuted values are left alone. */
#include "graph/arrange.h"

#include "base/memory.h"
#include "base/tensor.h"

/* The number of trials per chain: so all of them together cost no more than the graph is long. */
enum { TRIALS = 4 };

/* A cost that no gain outweighs: an op would get strides that it was not traced with. */
#define NEVER 1e300

typedef struct search {
  gp_arranger *a;
  int32_t now;    /* number of the trial; 0: none */
  int32_t *trial; /* per value: the trial that reached it */
  int32_t *seen;  /* per node: the trial that listed it */
  int8_t *failed; /* per value: trials that were rejected */
  gp_ref *members;
  int32_t *touched; /* nodes that read or make a member */
  int32_t member_count, touched_count;
} search;

static int32_t stage_of(const gp_arranger *a, int32_t layer) { return a->spec->stage_of[layer]; }

/* ---- which values may lie in any order ------------------------------------------------------ */

/* An op that draws random numbers draws by the index of an element, so it reads any order but must
 * write rows. */
static bool may_move(const gp_arranger *a, gp_ref r) {
  const gp_value *value = gp_arranged(a, r);
  if (value->kind != GP_VALUE_NODE || value->base != r || value->node < 0) return false;
  const gp_node *node = &a->graph->nodes[value->node];
  bool draws = gp_op_get(node->op)->flags & GP_OP_RANDOM;
  return gp_arranger_maps(node) && !draws && !node->accumulate && !node->snapshot &&
         !node->master && value->meta.shape.rank > 1 && gp_meta_numel(&value->meta) > 0 &&
         gp_meta_is_contiguous(&value->meta);
}

/* Find the values that may be reordered: those that leave the graph or their stage may not. */
static void find_free(const gp_arranger *a) {
  const gp_graph *graph = a->graph;
  for (gp_ref r = 0; r < a->count; r++) a->free[r] = may_move(a, r);
  for (int32_t i = 0; i < a->spec->fixed_count; i++)
    if (a->spec->fixed[i] != GP_NONE) a->free[a->spec->fixed[i]] = false;
  for (int32_t n = 0; n < graph->node_count; n++)
    for (int i = 0; i < graph->nodes[n].n_in; i++) {
      gp_ref base = gp_graph_base(graph, graph->nodes[n].in[i]);
      if (a->free[base] &&
          stage_of(a, graph->nodes[n].layer) != stage_of(a, graph->values[base].layer))
        a->free[base] = false;
    }
}

static bool is_fixed(const gp_arranger *a, gp_ref r) {
  for (int32_t i = 0; i < a->spec->fixed_count; i++)
    if (a->spec->fixed[i] == r) return true;
  return false;
}

/* A copy of memory that may be written to (buffers and accumulators) must stay. */
bool gp_arranger_elides(const gp_arranger *a, const gp_node *node) {
  if (node->op != GP_OP_copy || !a->free[node->out]) return false;
  gp_ref base = gp_graph_base(a->graph, node->in[0]);
  const gp_value *value = gp_arranged(a, base);
  if (value->kind == GP_VALUE_PARAM) return !gp_param_is_buffer(a->graph->params[value->index]);
  if (value->kind != GP_VALUE_NODE) return value->kind != GP_VALUE_SLOT;
  return !is_fixed(a, base) && stage_of(a, value->layer) == stage_of(a, node->layer);
}

/* ---- orders in a trial ---------------------------------------------------------------------- */

/* How the value lies in the trial; false if it has gaps or repeats elements. */
static bool order_at(const search *s, gp_ref ref, gp_order *order) {
  const gp_arranger *a = s->a;
  gp_ref root = a->root[ref];
  const gp_meta *meta = &gp_arranged(a, ref)->meta;
  if (!a->chosen[root] && !(s->now && s->trial[root] == s->now)) return gp_order_of(meta, order);
  *order = gp_order_behind(&a->turn[ref], &a->order[root], &meta->shape);
  return true;
}

static void note_node(search *s, int32_t n) {
  if (s->seen[n] == s->now) return;
  s->seen[n] = s->now;
  s->touched[s->touched_count++] = n;
}

/* Give a value its order in this trial; the first order that reaches it stays. */
static void reach(search *s, gp_ref ref, const gp_order *order) {
  if (!s->a->free[ref] || s->a->chosen[ref] || s->trial[ref] == s->now) return;
  s->trial[ref] = s->now;
  s->a->order[ref] = *order;
  s->members[s->member_count++] = ref;
}

/* Spread the order to the value that `ref` shows, also through permuted views. */
static void reach_input(search *s, gp_ref ref, const gp_order *order) {
  gp_ref root = s->a->root[ref];
  gp_order own = gp_order_before(&s->a->turn[ref], order, &gp_arranged(s->a, root)->meta.shape);
  reach(s, root, &own);
}

/* Spread the order to what one reader of the value makes. */
static void reach_output(search *s, gp_ref ref, const gp_node *node, const gp_order *order) {
  const gp_arranger *a = s->a;
  for (int i = 0; gp_arranger_maps(node) && i < node->n_in; i++) {
    if (a->root[node->in[i]] != ref || !gp_arranger_is_whole(a, node, i)) continue;
    gp_order view =
        gp_order_behind(&a->turn[node->in[i]], order, &gp_arranged(a, node->in[i])->meta.shape);
    reach(s, node->out, &view);
  }
}

/* Find all values to which the order of one spreads. */
static void spread(search *s, gp_ref seed, const gp_order *order) {
  s->member_count = s->touched_count = 0;
  reach(s, seed, order);
  for (int32_t m = 0; m < s->member_count; m++) {
    gp_ref ref = s->members[m];
    int32_t maker = gp_arranged(s->a, ref)->node;
    const gp_node *node = &s->a->graph->nodes[maker];
    gp_order own = s->a->order[ref];
    note_node(s, maker);
    for (int i = 0; i < node->n_in; i++)
      if (gp_arranger_is_whole(s->a, node, i)) reach_input(s, node->in[i], &own);
    for (int32_t k = s->a->first[ref]; k < s->a->first[ref + 1]; k++) {
      note_node(s, s->a->nodes[k]);
      reach_output(s, ref, &s->a->graph->nodes[s->a->nodes[k]], &own);
    }
  }
}

/* ---- costs, in elements moved --------------------------------------------------------------- */

static double elements(const gp_arranger *a, gp_ref ref) {
  return (double)gp_meta_numel(&gp_arranged(a, ref)->meta);
}

/* The cost of an elementwise node: operands in another order are read in long steps. */
static double cost_of_map(const search *s, const gp_node *node) {
  gp_order in, out;
  double cost = 0;
  if (!order_at(s, node->out, &out)) return 0;
  bool same = true;
  for (int i = 0; i < node->n_in; i++) {
    if (!gp_arranger_is_whole(s->a, node, i) || !order_at(s, node->in[i], &in)) continue;
    same = same && gp_order_equal(&in, &out);
    if (!gp_order_equal(&in, &out)) cost += elements(s->a, node->out);
  }
  if (node->op != GP_OP_copy || (same && gp_arranger_elides(s->a, node))) return cost;
  return cost + 2 * elements(s->a, node->out);
}

/* The cost of any other node: it must see what it saw in the trace, so an input that was row-major
 * is copied. */
static double cost_of_others(const search *s, const gp_node *node) {
  double cost = 0;
  for (int i = 0; i < node->n_in; i++) {
    const gp_meta *meta = &gp_arranged(s->a, node->in[i])->meta;
    gp_order now, before;
    if (!order_at(s, node->in[i], &now) || !gp_order_of(meta, &before)) continue;
    if (gp_order_equal(&now, &before)) continue;
    cost += gp_meta_is_contiguous(meta) ? 3 * elements(s->a, node->in[i]) : NEVER;
  }
  return cost;
}

/* The cost of the nodes that the last trial touched. */
static double cost(const search *s) {
  double sum = 0;
  for (int32_t i = 0; i < s->touched_count; i++) {
    const gp_node *node = &s->a->graph->nodes[s->touched[i]];
    sum += gp_arranger_maps(node) ? cost_of_map(s, node) : cost_of_others(s, node);
  }
  return sum;
}

/* ---- the search ----------------------------------------------------------------------------- */

/* Try an order: does the value, with all values that the order spreads to, cost less in it? */
static bool try_order(search *s, int32_t number, gp_ref seed, const gp_order *order) {
  s->now = number;
  spread(s, seed, order);
  double tried = cost(s);
  s->now = 0;
  bool taken = tried < cost(s);
  for (int32_t m = 0; m < s->member_count; m++) {
    if (taken) s->a->chosen[s->members[m]] = true;
    if (!taken && s->failed[s->members[m]] < TRIALS) s->failed[s->members[m]]++;
  }
  return taken;
}

/* The order that suits a node best on its own: that of an input which keeps its order. For a copy
 * it is the copy's own order, so that its input need not be copied. */
static bool find_seed(const search *s, const gp_node *node, gp_order *order) {
  const gp_shape *shape = &gp_arranged(s->a, node->out)->meta.shape;
  for (int i = 0; i < node->n_in; i++) {
    if (!gp_arranger_is_whole(s->a, node, i) || !order_at(s, node->in[i], order)) continue;
    if (gp_order_is_row_major(order, shape)) continue;
    if (node->op == GP_OP_copy) *order = gp_order_row_major(shape);
    return true;
  }
  return false;
}

/* Try both orders for copies: their own, and that of their input. */
static bool find_orders(search *s) {
  const gp_graph *graph = s->a->graph;
  bool any = false;
  int32_t number = 0;
  for (int32_t n = 0; n < graph->node_count; n++) {
    const gp_node *node = &graph->nodes[n];
    gp_order order, input;
    if (!gp_arranger_maps(node) || !s->a->free[node->out]) continue;
    bool open = !s->a->chosen[node->out] && s->failed[node->out] < TRIALS;
    if (!open || !find_seed(s, node, &order)) continue;
    bool taken = try_order(s, ++number, node->out, &order);
    if (!taken && node->op == GP_OP_copy && order_at(s, node->in[0], &input))
      taken = try_order(s, ++number, node->out, &input);
    any |= taken;
  }
  return any;
}

/* ---- preparing ------------------------------------------------------------------------------ */

/* Find the roots: a permuted view comes after the value that it shows. */
static gp_status find_roots(gp_arranger *a) {
  const gp_graph *graph = a->graph;
  size_t values = (size_t)a->count + 1;
  GP_TRY(gp_alloc_array(values, sizeof *a->root, (void **)&a->root));
  GP_TRY(gp_alloc_array(values, sizeof *a->turn, (void **)&a->turn));
  for (gp_ref r = 0; r < a->count; r++) {
    a->root[r] = r;
    a->turn[r].rank = graph->values[r].meta.shape.rank;
    for (int d = 0; d < a->turn[r].rank; d++) a->turn[r].at[d] = (int8_t)d;
  }
  for (int32_t n = 0; n < graph->node_count; n++) {
    const gp_node *node = &graph->nodes[n];
    if (node->op != GP_OP_permute) continue;
    a->root[node->out] = a->root[node->in[0]];
    for (int d = 0; d < a->turn[node->out].rank; d++)
      a->turn[node->out].at[d] = a->turn[node->in[0]].at[node->attr.permute.order.at[d]];
  }
  return GP_OK;
}

static bool is_read(const gp_node *node) { return node->op != GP_OP_permute; }

/* List the readers, counts first, then places: the readers of a value are in the order of the
 * nodes. */
static gp_status list_readers(gp_arranger *a) {
  const gp_graph *graph = a->graph;
  size_t reads = 0, values = (size_t)a->count;
  for (int32_t n = 0; n < graph->node_count; n++) reads += (size_t)graph->nodes[n].n_in;
  GP_TRY(gp_alloc_array(values + 2, sizeof *a->first, (void **)&a->first));
  GP_TRY(gp_alloc_array(reads + 1, sizeof *a->nodes, (void **)&a->nodes));
  for (int32_t n = 0; n < graph->node_count; n++)
    for (int i = 0; is_read(&graph->nodes[n]) && i < graph->nodes[n].n_in; i++)
      a->first[a->root[graph->nodes[n].in[i]] + 2]++;
  for (size_t v = 1; v < values + 2; v++) a->first[v] += a->first[v - 1];
  for (int32_t n = 0; n < graph->node_count; n++)
    for (int i = 0; is_read(&graph->nodes[n]) && i < graph->nodes[n].n_in; i++)
      a->nodes[a->first[a->root[graph->nodes[n].in[i]] + 1]++] = n;
  return GP_OK;
}

static gp_status search_room(search *s) {
  size_t values = (size_t)s->a->count + 1, nodes = (size_t)s->a->graph->node_count + 1;
  GP_TRY(gp_alloc_array(values, sizeof *s->trial, (void **)&s->trial));
  GP_TRY(gp_alloc_array(values, sizeof *s->failed, (void **)&s->failed));
  GP_TRY(gp_alloc_array(values, sizeof *s->members, (void **)&s->members));
  GP_TRY(gp_alloc_array(nodes, sizeof *s->seen, (void **)&s->seen));
  return gp_alloc_array(nodes, sizeof *s->touched, (void **)&s->touched);
}

static gp_status choose(gp_arranger *a, bool *any) {
  search s = {.a = a};
  gp_status status = search_room(&s);
  if (!status) find_free(a);
  if (!status) *any = find_orders(&s);
  gp_free(s.trial);
  gp_free(s.failed);
  gp_free(s.members);
  gp_free(s.seen);
  gp_free(s.touched);
  return status;
}

static gp_status arrange(gp_arranger *a) {
  size_t values = (size_t)a->count + 1;
  bool any = false;
  GP_TRY(find_roots(a));
  GP_TRY(list_readers(a));
  GP_TRY(gp_alloc_array(2 * values, sizeof *a->free, (void **)&a->free));
  a->chosen = a->free + values;
  GP_TRY(gp_alloc_array(values, sizeof *a->order, (void **)&a->order));
  GP_TRY(choose(a, &any));
  return any ? gp_arranger_rewrite(a) : GP_OK;
}

/* Is any value not row-major? */
static bool has_permuted(const gp_graph *graph) {
  gp_order order;
  for (gp_ref r = 0; r < graph->value_count; r++) {
    const gp_meta *meta = &graph->values[r].meta;
    if (!gp_meta_is_contiguous(meta) && gp_order_of(meta, &order)) return true;
  }
  return false;
}

gp_status gp_graph_arrange(gp_graph *graph, const gp_arrange_spec *spec) {
  gp_arranger a = {.graph = graph, .spec = spec, .count = graph->value_count};
  if (!has_permuted(graph)) return GP_OK;
  gp_status status = arrange(&a);
  gp_free(a.root);
  gp_free(a.turn);
  gp_free(a.first);
  gp_free(a.nodes);
  gp_free(a.free);
  gp_free(a.order);
  return status;
}
