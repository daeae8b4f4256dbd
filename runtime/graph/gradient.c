/* graph/gradient.c - reverse mode over the node list: it asks each op's rule and folds what readers
 * send.
 *
 * The association of sums decides the bits, so it must not depend on where the model is cut:
 *   - what the readers of a value send is first summed within each reading layer, then over layers
 *     in descending order, at the layer that made the value: a gradient edge is keyed by the
 *     reading layer;
 *   - a parameter's contributions go straight into the accumulator of (parameter, layer), in
 *     descending node order.
 *
 * Where a model computes in halves, the gradients of its f32 parameters go past the casts into
 * accumulators of f32; other gradients have the dtype of their value, except that a sum with one
 * term of f32 is f32.
 */
#include "base/memory.h"
#include "base/tensor.h"
#include "graph/graph.h"

/* One reading layer's share of a value's gradient. */
typedef struct share {
  int32_t layer;
  gp_ref grad;
  int32_t next; /* the layer below, or -1 */
} share;

typedef struct gradient {
  gp_graph *graph;
  gp_builder builder;
  bool *needs;           /* per forward value: does it depend on something that wants a gradient? */
  int32_t *first, *last; /* per forward value: its list of shares, layers descending */
  share *shares;
  int32_t fresh; /* nodes from here on were made by the rule being visited */
  int32_t share_count;
  size_t share_room;
} gradient;

/* Is it a parameter to train? Buffers and frozen parameters stop the gradient. */
static bool trainable(const gp_graph *graph, const gp_value *value) {
  if (value->kind != GP_VALUE_PARAM) return false;
  const gp_param *param = graph->params[value->index];
  return !gp_param_is_frozen(param) && !gp_param_is_buffer(param);
}

static bool asked_input(const gp_graph *graph, const gp_value *value) {
  return graph->asks_inputs && value->kind == GP_VALUE_INPUT &&
         gp_dtype_is_float(value->meta.dtype);
}

/* Set needs[v] for every value of the forward pass. */
static void mark(gradient *g, int32_t nodes) {
  const gp_graph *graph = g->graph;
  for (gp_ref r = 0; r < graph->value_count; r++)
    g->needs[r] = trainable(graph, &graph->values[r]) || asked_input(graph, &graph->values[r]);
  for (int32_t n = 0; n < nodes; n++) {
    const gp_node *node = &graph->nodes[n];
    bool any = false;
    for (int i = 0; i < node->n_in; i++) any |= g->needs[node->in[i]];
    if (!any || !gp_op_get(node->op)->vjp) continue;
    for (int k = 0; k < node->n_out; k++)
      g->needs[node->out + k] = gp_dtype_is_float(graph->values[node->out + k].meta.dtype);
  }
}

/* The trainable parameter behind a value: the value itself, or the parameter of which it is a cast
 * for readers in halves; or GP_NONE. */
static gp_ref parameter_of(const gp_graph *graph, gp_ref ref) {
  const gp_value *value = &graph->values[ref];
  if (value->node >= 0 && graph->nodes[value->node].master) ref = graph->nodes[value->node].in[0];
  return trainable(graph, &graph->values[ref]) ? ref : GP_NONE;
}

static gp_dtype dtype_of(const gradient *g, gp_ref ref) { return g->graph->values[ref].meta.dtype; }

/* Convert to another dtype; the cast belongs to the builder's layer. */
static gp_status convert(gradient *g, gp_dtype dtype, gp_ref *ref) {
  gp_attrs attrs = {.cast = {.dtype = dtype}};
  if (*ref == GP_NONE || dtype_of(g, *ref) == dtype) return GP_OK;
  return gp_build(&g->builder, GP_OP_cast, &attrs, ref, 1, ref);
}

/* Add two partial sums; the sum belongs to the builder's layer. */
static gp_status add(gradient *g, gp_ref a, gp_ref b, gp_ref *sum) {
  bool differ = dtype_of(g, a) != dtype_of(g, b);
  if (differ) GP_TRY(convert(g, GP_F32, &a));
  if (differ) GP_TRY(convert(g, GP_F32, &b));
  gp_ref in[2] = {a, b};
  return gp_build(&g->builder, GP_OP_add, &(gp_attrs){0}, in, 2, sum);
}

/* A reader in `layer` sends grad to value: sum within the layer, or open the next share. */
static gp_status send(gradient *g, gp_ref value, int32_t layer, gp_ref grad) {
  int32_t last = g->last[value];
  if (last >= 0 && g->shares[last].layer == layer)
    return add(g, g->shares[last].grad, grad, &g->shares[last].grad);
  GP_TRY(gp_grow_array((size_t)g->share_count, &g->share_room, sizeof(share), (void **)&g->shares));
  int32_t made = g->share_count++;
  g->shares[made] = (share){.layer = layer, .grad = grad, .next = -1};
  if (last >= 0)
    g->shares[last].next = made;
  else
    g->first[value] = made;
  g->last[value] = made;
  return GP_OK;
}

/* The whole gradient of a value, folded at its own layer; GP_NONE if no reader sent any. */
static gp_status fold(gradient *g, gp_ref value, gp_ref *total) {
  *total = GP_NONE;
  for (int32_t s = g->first[value]; s >= 0; s = g->shares[s].next) {
    if (*total == GP_NONE)
      *total = g->shares[s].grad;
    else
      GP_TRY(add(g, *total, g->shares[s].grad, total));
  }
  return GP_OK;
}

/* Add a contribution to the accumulator of (param, current layer): in place if its op can. */
static gp_status into_slot(gradient *g, gp_ref param, gp_ref grad) {
  gp_graph *graph = g->graph;
  gp_ref slot, ignored;
  GP_TRY(gp_graph_slot(graph, graph->values[param].index, g->builder.layer, &slot));
  GP_TRY(convert(g, dtype_of(g, slot), &grad));
  const gp_value *value = gp_graph_at(graph, grad);
  gp_node *node = value->node >= 0 ? &graph->nodes[value->node] : NULL;
  if (node && value->node >= g->fresh && value->output == 0 && value->base == grad &&
      gp_op_get(node->op)->flags & GP_OP_ACCUMULATES && !node->accumulate) {
    node->accumulate = true;
    graph->values[grad].base = slot;
    return GP_OK;
  }
  gp_ref in[2] = {slot, grad};
  return gp_build(&g->builder, GP_OP_accumulate, &(gp_attrs){0}, in, 2, &ignored);
}

/* Pass on the gradients that a rule returned: to accumulators, or towards the inputs. */
static gp_status deliver(gradient *g, const gp_node *node, const gp_ref *din) {
  for (int i = 0; i < node->n_in; i++) {
    if (din[i] == GP_NONE) continue;
    gp_ref param = parameter_of(g->graph, node->in[i]);
    if (param != GP_NONE)
      GP_TRY(into_slot(g, param, din[i]));
    else
      GP_TRY(send(g, node->in[i], node->layer, din[i]));
  }
  return GP_OK;
}

/* Convert a gradient to the dtype of the output, which rules expect. The rules of views and casts
 * accept any dtype, so that f32 stays f32 on the way to a parameter. */
static gp_status settle_dtype(gradient *g, const gp_node *node, int k, gp_ref *dout) {
  bool any = node->op == GP_OP_cast || gp_op_get(node->op)->flags & GP_OP_VIEW;
  return any ? GP_OK : convert(g, dtype_of(g, node->out + k), dout);
}

/* Ask the rule of node n for its gradients. */
static gp_status visit(gradient *g, int32_t n) {
  gp_node node = g->graph->nodes[n]; /* a copy: the list grows below */
  gp_ref out[GP_MAX_OUTPUTS], dout[GP_MAX_OUTPUTS], din[GP_MAX_INPUTS];
  bool need[GP_MAX_INPUTS], any = false;
  if (!gp_op_get(node.op)->vjp || !g->needs[node.out]) return GP_OK;
  g->builder.layer = node.layer;
  g->builder.label = node.label;
  for (int k = 0; k < node.n_out; k++) {
    out[k] = node.out + k;
    GP_TRY(fold(g, out[k], &dout[k]));
    GP_TRY(settle_dtype(g, &node, k, &dout[k]));
    any |= dout[k] != GP_NONE;
  }
  if (!any) return GP_OK;
  for (int i = 0; i < node.n_in; i++) need[i] = g->needs[node.in[i]], din[i] = GP_NONE;
  gp_vjp vjp = {.builder = &g->builder,
                .attr = &node.attr,
                .n_in = node.n_in,
                .n_out = node.n_out,
                .in = node.in,
                .out = out,
                .dout = dout,
                .need = need,
                .din = din};
  g->fresh = g->graph->node_count;
  GP_TRY(gp_op_get(node.op)->vjp(&vjp));
  return deliver(g, &node, din);
}

/* Multiply with the loss scale, or divide by it: loss_seed of a constant 1 gives the scale. */
static gp_status scale(gradient *g, gp_op mul_or_div, gp_ref *grad) {
  gp_attrs one = {.loss_seed = {.dtype = dtype_of(g, *grad), .value = 1}}, none = {0};
  gp_ref factor;
  GP_TRY(gp_build(&g->builder, GP_OP_loss_seed, &one, NULL, 0, &factor));
  gp_ref in[2] = {*grad, factor};
  return gp_build(&g->builder, mul_or_div, &none, in, 2, grad);
}

/* The gradient that root `index` starts from. */
static gp_status seed(gradient *g, gp_gradient_root *root, int index) {
  gp_graph *graph = g->graph;
  const gp_value value = graph->values[root->value];
  gp_ref grad;
  g->builder.layer = root->layer;
  if (root->is_loss) {
    gp_attrs attrs = {.loss_seed = {value.meta.dtype, root->factor == 0, root->factor}};
    GP_TRY(gp_build(&g->builder, GP_OP_loss_seed, &attrs, NULL, 0, &grad));
  } else {
    gp_meta dense;
    GP_TRY(gp_meta_make(value.meta.dtype, &value.meta.shape, &dense));
    GP_TRY(gp_graph_value(graph, GP_VALUE_OUT_GRAD, &dense, index, &grad));
    root->out_grad = grad;
    if (graph->scaled) GP_TRY(scale(g, GP_OP_mul, &grad));
  }
  return send(g, root->value, g->builder.layer, grad);
}

/* Make the gradient of an input a value that the script gets: in the input's dtype, at layer 0,
 * whichever layers read the input. */
static gp_status settle_input(gradient *g, gp_ref input) {
  const gp_value value = g->graph->values[input];
  gp_ref grad;
  g->builder.layer = 0;
  GP_TRY(gp_graph_label(g->graph, "input", &g->builder.label));
  GP_TRY(fold(g, input, &grad));
  if (grad == GP_NONE) return GP_OK;
  if (g->graph->scaled) GP_TRY(scale(g, GP_OP_div, &grad));
  GP_TRY(convert(g, value.meta.dtype, &grad));
  return gp_build(&g->builder, GP_OP_copy, &(gp_attrs){0}, &grad, 1,
                  &g->graph->input_grads[value.index]);
}

static gp_status settle_inputs(gradient *g) {
  const gp_ref values = g->graph->value_count; /* nodes are appended below */
  for (gp_ref r = 0; r < values; r++)
    if (asked_input(g->graph, &g->graph->values[r])) GP_TRY(settle_input(g, r));
  return GP_OK;
}

/* Visit nodes in reverse order: every reader has sent before a value is folded. */
static gp_status run(gradient *g, gp_gradient_root *roots, int count) {
  int32_t nodes = g->graph->node_count;
  bool any = false;
  mark(g, nodes);
  for (int k = 0; k < count; k++) {
    if (!g->needs[roots[k].value]) continue; /* nothing to train */
    GP_TRY(seed(g, &roots[k], k));
    any = true;
  }
  if (!any) return GP_OK;
  for (int32_t n = nodes - 1; n >= 0; n--) GP_TRY(visit(g, n));
  return g->graph->asks_inputs ? settle_inputs(g) : GP_OK;
}

gp_status gp_graph_gradient(gp_graph *graph, gp_gradient_root *roots, int count) {
  gradient g = {.graph = graph, .builder = {.graph = graph, .phase = GP_BACKWARD}};
  size_t values = (size_t)graph->value_count;
  for (int k = 0; k < count; k++) roots[k].out_grad = GP_NONE;
  for (int k = 0; k < GP_MAX_BATCH_TENSORS; k++) graph->input_grads[k] = GP_NONE;
  gp_status status = gp_alloc_array(values, sizeof(bool), (void **)&g.needs);
  if (!status) status = gp_alloc_array(values, sizeof(int32_t), (void **)&g.first);
  if (!status) status = gp_alloc_array(values, sizeof(int32_t), (void **)&g.last);
  for (size_t v = 0; !status && v < values; v++) g.first[v] = g.last[v] = -1;
  if (!status) status = run(&g, roots, count);
  gp_free(g.needs);
  gp_free(g.first);
  gp_free(g.last);
  gp_free(g.shares);
  return status;
}
