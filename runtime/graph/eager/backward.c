/* graph/eager/backward.c - gradients of a value that was computed at once.
 *
 * The applications that the value came from become the nodes of a graph. Its gradient is made by
 * the rules that pipelines use (graph/gradient.c), and the new nodes then run one after the other.
 * The values that they read must not have changed since: each tensor's count of writes is
 * compared. */
#include <stdlib.h>

#include "base/memory.h"
#include "base/tensor.h"
#include "graph/eager/history.h"
#include "graph/graph.h"
#include "graph/param.h"
#include "ops/eager/eager.h"

typedef struct pass {
  gp_graph graph;
  gp_history **list; /* the applications that the value came from, oldest first */
  int32_t count;
  size_t room;
  gp_kept *known;   /* per value: the tensor from before this pass, if there is one; borrowed */
  gp_tensor **made; /* per value: the tensor that this pass made; for a slot, its sum */
  int32_t *uses;    /* per value: reads that are still to come */
  int32_t values;   /* elements of the three arrays above */
} pass;

/* ---- what the value came from -------------------------------------------------------------- */

static gp_status visit(pass *p, gp_history *h) {
  if (!h || h->first != GP_NONE) return GP_OK;
  GP_TRY(gp_grow_array((size_t)p->count, &p->room, sizeof *p->list, (void **)&p->list));
  h->first = 0;
  p->list[p->count++] = h;
  return GP_OK;
}

static int by_serial(const void *a, const void *b) {
  const gp_history *x = *(gp_history *const *)a, *y = *(gp_history *const *)b;
  return x->serial < y->serial ? -1 : x->serial > y->serial;
}

static gp_status collect(pass *p, gp_history *root) {
  GP_TRY(visit(p, root));
  for (int32_t n = 0; n < p->count; n++)
    for (int i = 0; i < p->list[n]->n_in; i++) GP_TRY(visit(p, p->list[n]->in[i].history));
  qsort(p->list, (size_t)p->count, sizeof *p->list, by_serial);
  return GP_OK;
}

/* ---- the graph of the applications --------------------------------------------------------- */

static gp_status add_leaf(pass *p, gp_param *leaf, gp_ref *ref) {
  int32_t index;
  if (gp_param_owner(leaf))
    return gp_fail(GP_ESTATE, "backward: a parameter belongs to a live pipeline, whose gradients "
                              "pipe:backward makes, or to a compiled function (gp.compile): "
                              "close it first");
  GP_TRY(gp_graph_param(&p->graph, leaf, &index));
  return gp_graph_param_value(&p->graph, index, ref);
}

static gp_status add_input(pass *p, const gp_history *h, int i, gp_ref *ref) {
  const gp_history_input *in = &h->in[i];
  if (in->history) return *ref = in->history->first + in->output, GP_OK;
  if (in->leaf) return add_leaf(p, in->leaf, ref);
  return gp_graph_constant(&p->graph, gp_tensor_retain(h->read[i].tensor), ref);
}

/* A node's label is the number of its application; the nodes that its rule builds inherit it. */
static gp_status add_node(pass *p, int32_t n) {
  gp_graph *graph = &p->graph;
  gp_history *h = p->list[n];
  gp_node node = {.op = h->op, .attr = h->attrs, .n_in = h->n_in, .n_out = h->n_out, .label = n};
  for (int i = 0; i < h->n_in; i++) GP_TRY(add_input(p, h, i, &node.in[i]));
  node.out = graph->value_count;
  for (int k = 0; k < h->n_out; k++) {
    gp_ref out;
    GP_TRY(gp_graph_value(graph, GP_VALUE_NODE, gp_tensor_meta(h->made[k].tensor), 0, &out));
    graph->values[out].node = graph->node_count;
    graph->values[out].output = k;
    graph->values[out].layer = 0;
  }
  GP_TRY(gp_grow_array((size_t)graph->node_count, &graph->node_room, sizeof(gp_node),
                       (void **)&graph->nodes));
  graph->nodes[graph->node_count++] = node;
  h->first = node.out;
  return GP_OK;
}

/* ---- values -------------------------------------------------------------------------------- */

/* Note a value's tensor. A parameter is one value, however often it was read: if it changed between
 * reads, no node can get the old contents. */
static void know(pass *p, gp_ref ref, const gp_kept *kept) {
  gp_kept *known = &p->known[ref];
  if (known->tensor && known->tensor != kept->tensor)
    known->writes = UINT64_MAX;
  else if (!known->tensor || kept->writes < known->writes)
    *known = *kept;
}

/* Note the tensors of all values. Call this after the gradient was made: the forward nodes are the
 * applications, in their order. */
static gp_status know_values(pass *p) {
  p->values = p->graph.value_count;
  GP_TRY(gp_alloc_array((size_t)p->values, sizeof *p->known, (void **)&p->known));
  GP_TRY(gp_alloc_array((size_t)p->values, sizeof *p->made, (void **)&p->made));
  GP_TRY(gp_alloc_array((size_t)p->values, sizeof *p->uses, (void **)&p->uses));
  for (int32_t n = 0; n < p->count; n++) {
    const gp_history *h = p->list[n];
    for (int i = 0; i < h->n_in; i++)
      if (!h->in[i].history) know(p, p->graph.nodes[n].in[i], &h->read[i]);
    for (int k = 0; k < h->n_out; k++) p->known[h->first + k] = h->made[k];
  }
  for (int32_t n = p->count; n < p->graph.node_count; n++)
    for (int i = 0; i < p->graph.nodes[n].n_in; i++) p->uses[p->graph.nodes[n].in[i]]++;
  return GP_OK;
}

static gp_status find_value(const pass *p, const gp_node *node, gp_ref ref, gp_tensor **tensor) {
  const gp_value *value = &p->graph.values[ref];
  *tensor = p->made[ref] ? p->made[ref] : p->known[ref].tensor;
  if (!*tensor && value->kind == GP_VALUE_CONST) *tensor = p->graph.constants[value->index];
  if (p->made[ref] || !p->known[ref].tensor) return GP_OK;
  if (gp_tensor_writes(*tensor) == p->known[ref].writes) return GP_OK;
  return gp_fail(GP_ESTATE,
                 "backward: the gradient of %s needs a value that was written to since (copy_, "
                 "t[i] = v, a method that ends in _): write to a clone() of it",
                 gp_op_name(p->list[node->label]->op));
}

static void release(pass *p, gp_ref ref) {
  if (--p->uses[ref] > 0 || p->graph.values[ref].kind == GP_VALUE_SLOT) return;
  gp_tensor_free(p->made[ref]);
  p->made[ref] = NULL;
}

/* ---- running ------------------------------------------------------------------------------- */

/* sum += term, in new memory; the first term itself becomes the sum. */
static gp_status add(gp_tensor **sum, gp_tensor *term) {
  gp_tensor *in[2] = {*sum, term}, *out[GP_MAX_OUTPUTS];
  int count;
  if (!*sum) return *sum = gp_tensor_retain(term), GP_OK;
  GP_TRY(gp_eager_apply(GP_OP_add, &(gp_attrs){0}, in, 2, out, &count));
  gp_tensor_free(*sum);
  *sum = out[0];
  return GP_OK;
}

static gp_status apply(const pass *p, const gp_node *node, gp_tensor **in, gp_tensor **out) {
  const gp_random_state now = gp_eager_random();
  const bool random = gp_op_get(node->op)->flags & GP_OP_RANDOM;
  int count;
  if (random) gp_eager_set_random(p->list[node->label]->random);
  gp_status status = gp_eager_apply(node->op, &node->attr, in, node->n_in, out, &count);
  if (random) gp_eager_set_random(now);
  return status;
}

/* Run a node. If its op would add into an accumulator, compute its result and add that here. */
static gp_status run_node(pass *p, const gp_node *node) {
  gp_tensor *in[GP_MAX_INPUTS], *out[GP_MAX_OUTPUTS] = {0};
  for (int i = 0; i < node->n_in; i++) GP_TRY(find_value(p, node, node->in[i], &in[i]));
  if (node->op == GP_OP_accumulate) {
    GP_TRY(add(&p->made[node->in[0]], in[1]));
  } else {
    GP_TRY(apply(p, node, in, out));
    for (int k = 0; k < node->n_out; k++) p->made[node->out + k] = out[k];
    if (node->accumulate) {
      GP_TRY(add(&p->made[p->graph.values[node->out].base], out[0]));
      p->uses[node->out]++;
      release(p, node->out);
    }
  }
  for (int i = 0; i < node->n_in; i++) release(p, node->in[i]);
  return GP_OK;
}

/* ---- results ------------------------------------------------------------------------------- */

/* Copy the gradient, because the sum may be a view of a tensor that the script holds. */
static gp_status copy_of(gp_tensor *tensor, gp_tensor **copy) {
  gp_tensor *out[GP_MAX_OUTPUTS];
  int count;
  GP_TRY(gp_eager_apply(GP_OP_copy, &(gp_attrs){0}, &tensor, 1, out, &count));
  *copy = out[0];
  return GP_OK;
}

static gp_status store(gp_param *leaf, gp_tensor *sum) {
  gp_tensor *total = NULL, *grad = NULL;
  gp_param_grad(leaf, &total);
  gp_status status = total ? add(&total, sum) : copy_of(sum, &grad);
  if (!status) gp_param_set_grad(leaf, total ? total : grad);
  gp_tensor_free(total);
  gp_tensor_free(grad);
  return status;
}

/* Store a gradient of 0 for a leaf that only ops without gradient (sign, floor) read. */
static gp_status store_zero(gp_param *leaf) {
  gp_tensor *value = NULL, *grad = NULL, *known = NULL;
  gp_param_grad(leaf, &known);
  gp_tensor_free(known);
  if (known || !gp_param_has_gradient(leaf)) return GP_OK;
  GP_TRY(gp_param_value(leaf, &value));
  const gp_meta *meta = gp_tensor_meta(value);
  gp_status status = gp_tensor_new_at(gp_tensor_space(value), meta->dtype, &meta->shape, &grad);
  if (!status) gp_param_set_grad(leaf, grad);
  gp_tensor_free(grad);
  gp_tensor_free(value);
  return status;
}

static gp_status deliver(pass *p, gp_param *const *leaves, int count, gp_tensor **grads) {
  for (gp_ref r = 0; r < p->values; r++) {
    const gp_value *value = &p->graph.values[r];
    if (value->kind != GP_VALUE_SLOT || !p->made[r]) continue;
    gp_param *leaf = p->graph.params[value->index];
    if (!leaves) GP_TRY(store(leaf, p->made[r]));
    for (int k = 0; k < count; k++)
      if (leaves[k] == leaf && !grads[k]) GP_TRY(copy_of(p->made[r], &grads[k]));
  }
  for (int32_t i = 0; !leaves && i < p->graph.param_count; i++)
    GP_TRY(store_zero(p->graph.params[i]));
  return GP_OK;
}

/* ---- the pass ------------------------------------------------------------------------------ */

static gp_status run(pass *p, gp_history *history, int output, gp_tensor *seed) {
  GP_TRY(collect(p, history));
  for (int32_t n = 0; n < p->count; n++) GP_TRY(add_node(p, n));
  gp_gradient_root root = {.value = history->first + output};
  GP_TRY(gp_graph_gradient(&p->graph, &root, 1));
  GP_TRY(know_values(p));
  if (root.out_grad == GP_NONE) return GP_OK;
  p->made[root.out_grad] = gp_tensor_retain(seed);
  for (int32_t n = p->count; n < p->graph.node_count; n++) GP_TRY(run_node(p, &p->graph.nodes[n]));
  return GP_OK;
}

static void finish(pass *p) {
  for (int32_t n = 0; n < p->count; n++) p->list[n]->first = GP_NONE;
  for (int32_t v = 0; p->made && v < p->values; v++) gp_tensor_free(p->made[v]);
  gp_free(p->list);
  gp_free(p->known);
  gp_free(p->made);
  gp_free(p->uses);
  gp_graph_free(&p->graph);
}

gp_status gp_history_backward(gp_history *history, int output, gp_tensor *seed,
                              gp_param *const *leaves, int count, gp_tensor **grads) {
  pass p = {0};
  for (int k = 0; k < count; k++) grads[k] = NULL;
  gp_status status = run(&p, history, output, seed);
  if (!status) status = deliver(&p, leaves, count, grads);
  for (int k = 0; status && k < count; k++) {
    gp_tensor_free(grads[k]);
    grads[k] = NULL;
  }
  finish(&p);
  return status;
}
