/* graph/fuse.c - neighbours in a layer become one op, where that saves passes over memory.
 *
 * A product's result is changed while it is written:
 *
 *   gelu(linear(x))             -> linear_gelu
 *   gelu_dx(linear_dx(dy), h)   -> linear_gelu_dx
 *   r + linear(x)               -> linear_add
 *   a + layer_norm_dx(..)       -> layer_norm_dx with a
 *
 * dy is read once for weight and bias:
 *
 *   linear_dw, sum_rows_dw      -> linear_bias_dw
 *   layer_norm_dw, sum_rows_dw  -> layer_norm_bias_dw
 *
 * Both nodes belong to one layer and one phase, and no other node reads the value between them
 * (except the backward pass, for the value before GELU). So the same nodes are fused wherever the
 * model is cut. Sums reach an accumulator in the same order as before, and nodes that draw random
 * numbers keep their stream numbers. */
#include "base/memory.h"
#include "base/tensor.h"
#include "graph/graph.h"

/* The readers of a value. */
typedef struct readers {
  int32_t forward, backward;
  bool beyond; /* another layer reads it too */
  bool varies; /* it depends on more than parameters; otherwise it is made once per step */
} readers;

typedef struct fuser {
  gp_graph *graph;
  gp_ref count;  /* number of values at the beginning; later ones are outputs of new ops */
  readers *read; /* per value */
  gp_ref *now;   /* per value: the value that its readers read instead */
  int32_t *at;   /* per node: its place in the new list; -1: fused into another */
  bool selects;  /* cheap forward ops stay by themselves */
} fuser;

/* ---- what may be fused --------------------------------------------------------------------- */

/* Count the node's inputs as read. Views count as readers too: we do not look through them. */
static void note_node(const fuser *f, const gp_node *node) {
  bool varies = gp_op_get(node->op)->flags & GP_OP_RANDOM;
  for (int i = 0; i < node->n_in; i++) {
    readers *r = &f->read[node->in[i]];
    ++*(node->phase == GP_FORWARD ? &r->forward : &r->backward);
    r->beyond |= node->layer != f->graph->values[node->in[i]].layer;
    varies |= r->varies;
  }
  for (int k = 0; k < node->n_out; k++) f->read[node->out + k].varies = varies;
}

static bool is_fixed(const gp_graph *graph, const gp_value *value) {
  if (value->kind != GP_VALUE_PARAM) return value->kind == GP_VALUE_CONST;
  return !gp_param_is_buffer(graph->params[value->index]);
}

static void note_readers(const fuser *f) {
  const gp_graph *graph = f->graph;
  for (gp_ref r = 0; r < f->count; r++) f->read[r].varies = !is_fixed(graph, &graph->values[r]);
  for (int32_t n = 0; n < graph->node_count; n++) note_node(f, &graph->nodes[n]);
}

/* The node with that op that made `ref` in the same layer and phase as `node`; -1 if another made
 * it. */
static int32_t maker_of(const fuser *f, const gp_node *node, gp_ref ref, gp_op op) {
  int32_t n = f->graph->values[ref].node;
  if (n < 0) return -1;
  const gp_node *maker = &f->graph->nodes[n];
  bool near = maker->layer == node->layer && maker->phase == node->phase;
  return near && maker->op == op && maker->out == ref ? n : -1;
}

static bool is_read_once(const fuser *f, gp_ref ref) {
  return f->read[ref].forward + f->read[ref].backward == 1;
}

/* Can the op that makes the first value take in the second one, element by element? The second must
 * have the same shape, be contiguous, and be made at least as often as the first. */
static bool go_together(const fuser *f, gp_ref made, gp_ref other) {
  const gp_meta *a = &f->graph->values[made].meta, *b = &f->graph->values[other].meta;
  bool as_often = f->read[made].varies || !f->read[other].varies;
  return as_often && gp_meta_equal(a, b) && gp_meta_is_contiguous(b);
}

/* ---- fusing -------------------------------------------------------------------------------- */

/* Let node `second` do the work of `first` too, with the inputs of `first` and one more. */
static void absorb(const fuser *f, int32_t first, int32_t second, gp_op op, gp_ref more) {
  gp_node *into = &f->graph->nodes[second];
  const gp_node *from = &f->graph->nodes[first];
  into->op = op;
  into->attr = from->attr;
  into->n_in = from->n_in + 1;
  for (int i = 0; i < from->n_in; i++) into->in[i] = from->in[i];
  into->in[from->n_in] = more;
  f->graph->values[from->out].node = second; /* no node reads it now */
  f->at[first] = -1;
}

/* Let node `first` do the work of `second` too and make both values, in the given order. Outputs of
 * a node have consecutive refs, so they are new values; one that lies in an accumulator stays
 * there. */
static gp_status join(fuser *f, int32_t first, int32_t second, gp_op op, const gp_ref made[2]) {
  gp_graph *graph = f->graph;
  gp_ref out = graph->value_count;
  for (int k = 0; k < 2; k++) {
    gp_ref ref;
    const gp_value old = graph->values[made[k]];
    GP_TRY(gp_graph_value(graph, GP_VALUE_NODE, &old.meta, 0, &ref));
    gp_value *value = &graph->values[ref];
    value->node = graph->values[made[k]].node = first;
    value->base = old.base == made[k] ? ref : old.base;
    value->layer = old.layer;
    value->output = k;
    f->now[made[k]] = ref;
  }
  graph->nodes[first].op = op;
  graph->nodes[first].out = out;
  graph->nodes[first].n_out = 2;
  f->at[second] = -1;
  return GP_OK;
}

/* ---- the ops ------------------------------------------------------------------------------- */

/* Fuse a GELU with its linear, unless another layer reads the result: a stage that passes it on
 * would have to keep the value before GELU too, instead of recomputing it. */
static gp_status visit_gelu(fuser *f, int32_t n) {
  const gp_node *node = &f->graph->nodes[n];
  gp_ref h = node->in[0];
  /* What a GELU makes can only be dropped if it can run again alone. In f16 the fused op does not
   * round the value before it, so there both would not have the same bits. */
  const bool exact = f->graph->values[h].meta.dtype != GP_F16;
  if (f->selects && exact) return GP_OK;
  int32_t linear = maker_of(f, node, h, GP_OP_linear);
  if (linear < 0 || node->attr.gelu.mode != GP_GELU_TANH || f->read[h].forward != 1) return GP_OK;
  if (f->read[h].beyond || f->read[node->out].beyond) return GP_OK;
  return join(f, linear, n, GP_OP_linear_gelu, (gp_ref[]){node->out, h});
}

static void visit_gelu_dx(const fuser *f, int32_t n) {
  const gp_node *node = &f->graph->nodes[n];
  gp_ref dy = node->in[0], h = node->in[1];
  int32_t linear = maker_of(f, node, dy, GP_OP_linear_dx);
  if (linear < 0 || node->attr.gelu_dx.mode != GP_GELU_TANH) return;
  if (!is_read_once(f, dy) || !go_together(f, dy, h)) return;
  absorb(f, linear, n, GP_OP_linear_gelu_dx, h);
}

/* Which summand was made by `op`, so that the other one can go into it? -1: neither. */
static int find_summand(const fuser *f, const gp_node *sum, gp_op op) {
  for (int k = 1; k >= 0; k--) {
    int32_t maker = maker_of(f, sum, sum->in[k], op);
    if (maker < 0 || !is_read_once(f, sum->in[k])) continue;
    if (go_together(f, sum->in[k], sum->in[1 - k])) return k;
  }
  return -1;
}

/* Fuse the addend into the linear; it comes before the bias. */
static void add_to_linear(const fuser *f, int32_t n, int32_t linear, gp_ref addend) {
  absorb(f, linear, n, GP_OP_linear_add, addend);
  gp_node *node = &f->graph->nodes[n];
  if (node->n_in == 4) node->in[3] = node->in[2], node->in[2] = addend;
}

static void visit_add(const fuser *f, int32_t n) {
  const gp_node *node = &f->graph->nodes[n];
  bool forward = node->phase == GP_FORWARD;
  int k = find_summand(f, node, forward ? GP_OP_linear : GP_OP_layer_norm_dx);
  if (k < 0) return;
  int32_t maker = f->graph->values[node->in[k]].node;
  if (forward)
    add_to_linear(f, n, maker, node->in[1 - k]);
  else if (f->graph->nodes[maker].n_in == 5) /* only if it has no addend yet */
    absorb(f, maker, n, GP_OP_layer_norm_dx, node->in[1 - k]);
}

/* Fuse the gradient of a bias with that of its weight, which is the node right before: nothing is
 * added to either in between. */
static gp_status visit_sum_rows(fuser *f, int32_t n) {
  const gp_node *bias = &f->graph->nodes[n], *weight = n ? bias - 1 : bias;
  bool linear = weight->op == GP_OP_linear_dw, norm = weight->op == GP_OP_layer_norm_dw;
  if (!(linear || norm) || weight->layer != bias->layer || weight->in[0] != bias->in[0])
    return GP_OK;
  if (!weight->accumulate || !bias->accumulate) return GP_OK;
  gp_op op = linear ? GP_OP_linear_bias_dw : GP_OP_layer_norm_bias_dw;
  return join(f, n - 1, n, op, (gp_ref[]){weight->out, bias->out});
}

static gp_status visit(fuser *f, int32_t n) {
  switch (f->graph->nodes[n].op) {
  case GP_OP_gelu: return visit_gelu(f, n);
  case GP_OP_gelu_dx: visit_gelu_dx(f, n); break;
  case GP_OP_add: visit_add(f, n); break;
  case GP_OP_sum_rows_dw: return visit_sum_rows(f, n);
  default: break;
  }
  return GP_OK;
}

/* ---- the list ------------------------------------------------------------------------------ */

static gp_ref current(const fuser *f, gp_ref ref) { return ref < f->count ? f->now[ref] : ref; }

/* Remove the gaps from the list, and let every node read the new values. */
static void renumber(const fuser *f) {
  gp_graph *graph = f->graph;
  int32_t kept = 0;
  for (int32_t n = 0; n < graph->node_count; n++) {
    if (f->at[n] < 0) continue;
    gp_node *node = &graph->nodes[kept];
    *node = graph->nodes[n];
    for (int i = 0; i < node->n_in; i++) node->in[i] = current(f, node->in[i]);
    f->at[n] = kept++;
  }
  graph->node_count = kept;
  for (gp_ref r = 0; r < graph->value_count; r++) {
    gp_value *value = &graph->values[r];
    value->base = current(f, value->base);
    if (value->node >= 0) value->node = f->at[value->node];
  }
}

static gp_status run(fuser *f) {
  for (gp_ref r = 0; r < f->count; r++) f->now[r] = r;
  note_readers(f);
  for (int32_t n = 0; n < f->graph->node_count; n++) GP_TRY(visit(f, n));
  renumber(f);
  return GP_OK;
}

gp_status gp_graph_fuse(gp_graph *graph, bool selects) {
  fuser f = {.graph = graph, .count = graph->value_count, .selects = selects};
  size_t values = (size_t)graph->value_count + 1, nodes = (size_t)graph->node_count + 1;
  gp_status status = gp_alloc_array(values, sizeof(readers), (void **)&f.read);
  if (!status) status = gp_alloc_array(values, sizeof(gp_ref), (void **)&f.now);
  if (!status) status = gp_alloc_array(nodes, sizeof(int32_t), (void **)&f.at);
  if (!status) status = run(&f);
  gp_free(f.read);
  gp_free(f.now);
  gp_free(f.at);
  return status;
}
