/* graph/pad.c - scores of a vocabulary in halves, and their gradient, lie in rows that begin at
 * multiples of 128 bytes.
 *
 * Three products read or write them, and tensor cores want rows that begin at multiples of 16
 * bytes. Rows of a vocabulary of 50,257 do not, so each product would work over padded copies
 * (ops/dense/product.cu), of 1.6 GB each way where the batch is 16 x 1,024. Instead the two ops
 * that make such values make wider ones, and everything reads those through a view of the columns
 * that have a meaning:
 *
 *   y = linear(x, w)                  -> narrow(linear(x, w; wide), V)
 *   g = cross_entropy_dx(y, ..)       -> narrow(cross_entropy_dx(y, ..; wide), V), and so
 *                                        cross_entropy_both
 *
 * The plan counts the padding, as it counts any value. Only ops that read rows at a distance may be
 * readers; otherwise the value stays as it is. Whether a value is padded must not depend on the
 * cut, because sums over padded rows have another order: so all of it lies in one layer, or in the
 * last one and the loss. */
#include "graph/pad.h"

#include "base/memory.h"
#include "base/tensor.h"
#include "graph/rebuild.h"

enum {
  ALIGNED = 16, /* bytes: what tensor cores want */
  ROW = 128,    /* bytes: lines of the cache */
  LEAST = 512   /* columns: padding is then an eighth of the value at most */
};

typedef struct padder {
  gp_graph *graph;
  const gp_pad_spec *spec;
  bool *fixed;  /* per value: something reads it that wants its rows side by side */
  bool *scores; /* per value: a cross-entropy reads it */
  gp_ref *now;  /* per value: the value that its readers read instead */
  gp_ref count; /* number of values at the beginning */
  gp_rebuild list;
} padder;

static bool is_gradient(gp_op op) {
  return op == GP_OP_cross_entropy_dx || op == GP_OP_cross_entropy_both;
}

/* Can the op's kernel on a GPU read rows at a distance in input i? */
static bool reads_distance(const gp_node *node, int i) {
  const unsigned flags = gp_op_get(node->op)->flags;
  switch (node->op) {
  case GP_OP_cross_entropy:
  case GP_OP_cross_entropy_dx:
  case GP_OP_cross_entropy_both:
  case GP_OP_linear_dx:
  case GP_OP_linear_dw: return i == 0;
  default: return flags & GP_OP_STRIDED && !(flags & (GP_OP_VIEW | GP_OP_EFFECT));
  }
}

/* Do two layers lie in one stage, whatever the cut? The loss lies with the last layer. */
static bool together(const padder *p, int32_t a, int32_t b) {
  const int32_t last = p->spec->layer_count - 1;
  return a == b || (a >= last && b >= last && p->spec->stage_of[a] == p->spec->stage_of[b]);
}

/* Would the rows of a linear's result be slow? */
static bool is_odd(const gp_graph *graph, const gp_node *node) {
  const gp_meta *y = &graph->values[node->out].meta, *w = &graph->values[node->in[1]].meta;
  const int64_t columns = gp_meta_width(y);
  const bool half = y->dtype == GP_BF16 || y->dtype == GP_F16;
  return node->op == GP_OP_linear && node->phase == GP_FORWARD && !node->attr.linear.packed &&
         half && w->shape.rank == 2 && y->shape.rank > 1 && columns >= LEAST &&
         (size_t)columns * gp_dtype_size(y->dtype) % ALIGNED != 0;
}

static void note_readers(const padder *p) {
  const gp_graph *graph = p->graph;
  for (int32_t n = 0; n < graph->node_count; n++) {
    const gp_node *node = &graph->nodes[n];
    for (int i = 0; i < node->n_in; i++) {
      const gp_value *in = &graph->values[node->in[i]];
      const bool near = in->node >= 0 && together(p, node->layer, graph->nodes[in->node].layer);
      if (!near || !reads_distance(node, i)) p->fixed[node->in[i]] = true;
      if (i == 0 && (is_gradient(node->op) || node->op == GP_OP_cross_entropy))
        p->scores[node->in[0]] = true;
    }
  }
}

/* Scores and their gradient are padded together: sums over the rows of both have one order. */
static void agree(const padder *p) {
  for (int32_t n = 0; n < p->graph->node_count; n++) {
    const gp_node *node = &p->graph->nodes[n];
    if (is_gradient(node->op) && p->fixed[node->out]) p->fixed[node->in[0]] = true;
  }
}

/* Is the value, or was it, the padded result of a linear? */
static bool is_padded(const padder *p, gp_ref ref) {
  const gp_graph *graph = p->graph;
  const gp_value *value = &graph->values[ref];
  if (value->kind != GP_VALUE_NODE || value->node < 0 || p->fixed[ref] || !p->scores[ref])
    return false;
  return is_odd(graph, &graph->nodes[value->node]);
}

/* The number of columns with which node n makes its first output; 0: as many as it has. */
static int64_t wide_of(const padder *p, const gp_node *node) {
  const gp_ref scores = is_gradient(node->op) ? node->in[0] : node->out;
  if ((node->op != GP_OP_linear && !is_gradient(node->op)) || !is_padded(p, scores)) return 0;
  const gp_meta *meta = &p->graph->values[node->out].meta;
  const int64_t step = ROW / (int64_t)gp_dtype_size(meta->dtype);
  return (gp_meta_width(meta) + step - 1) / step * step;
}

static void set_wide(gp_node *node, int64_t wide) {
  switch (node->op) {
  case GP_OP_linear: node->attr.linear.wide = wide; break;
  case GP_OP_cross_entropy_dx: node->attr.cross_entropy_dx.wide = wide; break;
  default: node->attr.cross_entropy_both.wide = wide; break;
  }
}

/* Append the node with a wider output, and the view through which that is read. */
static gp_status append_wide(padder *p, gp_node *node, int64_t wide) {
  gp_graph *graph = p->graph;
  const gp_shape shape = graph->values[node->out].meta.shape;
  const int last = shape.rank - 1;
  gp_sig sig = {.attr = &node->attr, .n_in = node->n_in};
  gp_node view = gp_node_beside(node, GP_OP_narrow);
  set_wide(node, wide);
  for (int i = 0; i < node->n_in; i++) sig.in[i] = &graph->values[node->in[i]].meta;
  GP_TRY(gp_op_infer(node->op, &sig));
  graph->values[node->out].meta = sig.out[0];
  GP_TRY(gp_rebuild_append(&p->list, node));
  view.attr.narrow.dim = last, view.attr.narrow.length = shape.dim[last];
  view.in[view.n_in++] = node->out;
  GP_TRY(gp_rebuild_append_new(&p->list, &view));
  p->now[node->out] = view.out;
  return GP_OK;
}

static gp_status rebuild(padder *p, const int64_t *wide) {
  const gp_graph *graph = p->graph;
  for (int32_t n = 0; n < graph->node_count; n++) {
    gp_node node = graph->nodes[n];
    for (int i = 0; i < node.n_in; i++)
      if (node.in[i] < p->count) node.in[i] = p->now[node.in[i]];
    GP_TRY(wide[n] ? append_wide(p, &node, wide[n]) : gp_rebuild_append(&p->list, &node));
  }
  gp_rebuild_install(&p->list);
  return GP_OK;
}

/* wide: per node; found before any meta or number changes. */
static gp_status run(padder *p, int64_t *wide) {
  bool any = false;
  for (gp_ref r = 0; r < p->count; r++) p->now[r] = r;
  note_readers(p);
  agree(p);
  for (int32_t n = 0; n < p->graph->node_count; n++)
    any |= (wide[n] = wide_of(p, &p->graph->nodes[n])) != 0;
  return any ? rebuild(p, wide) : GP_OK;
}

gp_status gp_graph_pad(gp_graph *graph, const gp_pad_spec *spec) {
  padder p = {.graph = graph, .spec = spec, .count = graph->value_count, .list.graph = graph};
  const size_t values = (size_t)graph->value_count + 1;
  int64_t *wide = NULL;
  gp_status status = gp_alloc_array(values, sizeof *p.fixed, (void **)&p.fixed);
  if (!status) status = gp_alloc_array(values, sizeof *p.scores, (void **)&p.scores);
  if (!status) status = gp_alloc_array(values, sizeof *p.now, (void **)&p.now);
  if (!status) status = gp_alloc_array((size_t)graph->node_count + 1, sizeof *wide, (void **)&wide);
  if (!status) status = run(&p, wide);
  gp_free(p.fixed), gp_free(p.scores), gp_free(p.now), gp_free(wide);
  gp_free(p.list.nodes);
  return status;
}
