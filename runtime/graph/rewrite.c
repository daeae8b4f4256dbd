/* graph/rewrite.c - rebuilds the list of nodes, with every value in the order that was chosen for
 * it.
 *
 * To compute elements in some order is to compute a row-major value with permuted dimensions. So
 * the node gets permuted views of its inputs and makes such a value, and the value that it made
 * before becomes a view of that. Kernels, memory and programs still see only row-major values and
 * views; if all operands have one order, the op is one long run. Copies that no longer change the
 * order become views too. An op that is not elementwise reads a row-major copy if its input has
 * another order now. */
#include "base/memory.h"
#include "base/tensor.h"
#include "graph/arrange.h"

typedef struct rewriter {
  gp_arranger *a;
  gp_graph *graph;
  gp_node *list;
  int32_t count;
  size_t room;
  gp_meta *before; /* per value: the meta in the trace */
  gp_ref *copy;    /* per value: its row-major copy, or GP_NONE */
} rewriter;

/* ---- appending ------------------------------------------------------------------------------ */

/* Infer the outputs' metas: for new nodes, and for views, whose inputs may have another order
 * now. */
static gp_status infer(const rewriter *r, const gp_node *node) {
  gp_sig sig = {.attr = &node->attr, .n_in = node->n_in};
  for (int i = 0; i < node->n_in; i++) sig.in[i] = &r->graph->values[node->in[i]].meta;
  GP_TRY(gp_op_infer(node->op, &sig));
  gp_value *out = &r->graph->values[node->out];
  out->meta = sig.out[0];
  bool view = gp_op_get(node->op)->flags & GP_OP_VIEW;
  out->base = view ? gp_graph_base(r->graph, node->in[0]) : node->out;
  return GP_OK;
}

static gp_status append(rewriter *r, const gp_node *node) {
  GP_TRY(gp_grow_array((size_t)r->count, &r->room, sizeof *r->list, (void **)&r->list));
  for (int k = 0; k < node->n_out; k++) r->graph->values[node->out + k].node = r->count;
  r->list[r->count++] = *node;
  return GP_OK;
}

/* A node with one input, in the layer and phase of `near`. */
static gp_node node_beside(const gp_node *near, gp_op op, const gp_attrs *attrs, gp_ref in) {
  return (gp_node){.op = op,
                   .attr = *attrs,
                   .n_in = 1,
                   .n_out = 1,
                   .in = {in},
                   .layer = near->layer,
                   .label = near->label,
                   .phase = near->phase};
}

/* Append the node with a new value as its output. */
static gp_status append_new(rewriter *r, gp_node *node, gp_ref *out) {
  GP_TRY(gp_graph_value(r->graph, GP_VALUE_NODE, &r->graph->values[node->in[0]].meta, 0, out));
  r->graph->values[*out].layer = node->layer;
  node->out = *out;
  GP_TRY(infer(r, node));
  return append(r, node);
}

static gp_status append_beside(rewriter *r, const gp_node *near, gp_op op, const gp_attrs *attrs,
                               gp_ref in, gp_ref *out) {
  gp_node node = node_beside(near, op, attrs, in);
  return append_new(r, &node, out);
}

/* ---- elementwise ops ------------------------------------------------------------------------ */

/* Permute an operand to the dimensions of the result's memory. Scalars need no change. */
static gp_status turn_operand(rewriter *r, const gp_node *node, const gp_order *order, gp_ref *in) {
  gp_attrs turn = gp_order_to_memory(order), widen = {0};
  const gp_shape shape = r->graph->values[*in].meta.shape;
  int missing = order->rank - shape.rank;
  if (shape.rank == 0) return GP_OK;
  widen.reshape.to.rank = order->rank;
  for (int d = 0; d < order->rank; d++)
    widen.reshape.to.dim[d] = d < missing ? 1 : shape.dim[d - missing];
  if (missing) GP_TRY(append_beside(r, node, GP_OP_reshape, &widen, *in, in));
  return append_beside(r, node, GP_OP_permute, &turn, *in, in);
}

/* Make the row-major value of permuted dimensions, and turn the old value into a view of it. */
static gp_status append_turned(rewriter *r, gp_node node, const gp_order *order) {
  gp_attrs back = gp_order_from_memory(order);
  gp_ref old = node.out, made;
  for (int i = 0; i < node.n_in; i++) GP_TRY(turn_operand(r, &node, order, &node.in[i]));
  GP_TRY(append_new(r, &node, &made));
  gp_node view = node_beside(&node, GP_OP_permute, &back, made);
  view.out = old;
  GP_TRY(infer(r, &view));
  return append(r, &view);
}

/* Drop a copy: its readers read its input, through a view. */
static gp_status append_elided(rewriter *r, const gp_node *node) {
  const gp_shape *shape = &r->graph->values[node->out].meta.shape;
  gp_attrs same = {.permute = {.order = {.count = shape->rank}}};
  for (int d = 0; d < shape->rank; d++) same.permute.order.at[d] = d;
  gp_node view = node_beside(node, GP_OP_permute, &same, node->in[0]);
  view.out = node->out;
  GP_TRY(infer(r, &view));
  return append(r, &view);
}

/* Does the input already have the order that was chosen for its copy? */
static bool changes_nothing(const rewriter *r, const gp_node *node) {
  gp_order in;
  return gp_arranger_elides(r->a, node) && gp_order_of(&r->graph->values[node->in[0]].meta, &in) &&
         gp_order_equal(&in, &r->a->order[node->out]);
}

static gp_status append_map(rewriter *r, const gp_node *node) {
  const gp_order order = r->a->order[node->out];
  if (!r->a->chosen[node->out]) return append(r, node);
  if (changes_nothing(r, node)) return append_elided(r, node);
  if (gp_order_is_row_major(&order, &r->before[node->out].shape)) return append(r, node);
  return append_turned(r, *node, &order);
}

/* ---- all other ops -------------------------------------------------------------------------- */

static bool lies_as_before(const rewriter *r, gp_ref ref) {
  const gp_meta *now = &r->graph->values[ref].meta, *then = &r->before[ref];
  for (int d = 0; d < now->shape.rank; d++)
    if (now->shape.dim[d] != 1 && now->stride[d] != then->stride[d]) return false;
  return now->offset == then->offset;
}

/* Append a node that is not elementwise. One row-major copy serves them all; the search has
 * made sure that row-major is what they saw before. */
static gp_status append_other(rewriter *r, gp_node node) {
  for (int i = 0; i < node.n_in; i++) {
    gp_ref in = node.in[i];
    if (lies_as_before(r, in)) continue;
    GP_ASSERT(gp_meta_is_contiguous(&r->before[in]));
    if (r->copy[in] == GP_NONE)
      GP_TRY(append_beside(r, &node, GP_OP_copy, &(gp_attrs){0}, in, &r->copy[in]));
    node.in[i] = r->copy[in];
  }
  if (gp_op_get(node.op)->flags & GP_OP_VIEW) GP_TRY(infer(r, &node));
  return append(r, &node);
}

/* Append any node. A permuted view shows its input in whatever order it has. */
static gp_status append_any(rewriter *r, const gp_node *node) {
  if (node->op == GP_OP_permute) {
    GP_TRY(infer(r, node));
    return append(r, node);
  }
  return gp_arranger_maps(node) ? append_map(r, node) : append_other(r, *node);
}

/* ---- rewriting ------------------------------------------------------------------------------ */

static gp_status rewrite(rewriter *r) {
  size_t values = (size_t)r->a->count + 1;
  GP_TRY(gp_alloc_array(values, sizeof *r->before, (void **)&r->before));
  GP_TRY(gp_alloc_array(values, sizeof *r->copy, (void **)&r->copy));
  for (gp_ref v = 0; v < r->a->count; v++) {
    r->before[v] = r->graph->values[v].meta;
    r->copy[v] = GP_NONE;
  }
  for (int32_t n = 0; n < r->graph->node_count; n++) GP_TRY(append_any(r, &r->graph->nodes[n]));
  return GP_OK;
}

gp_status gp_arranger_rewrite(gp_arranger *a) {
  rewriter r = {.a = a, .graph = a->graph};
  gp_status status = rewrite(&r);
  gp_free(r.before);
  gp_free(r.copy);
  if (status) return gp_free(r.list), status;
  gp_free(a->graph->nodes);
  a->graph->nodes = r.list;
  a->graph->node_count = r.count;
  a->graph->node_room = r.room;
  return GP_OK;
}
