/* graph/parts.c - gradients of a layer norm's parameters from sums that the gradient of its input
 * makes on the way.
 *
 *   layer_norm_dx, layer_norm_bias_dw  ->  layer_norm_parts_dx, layer_norm_parts_dw
 *
 * Both read all of dy and x. The first stays in I and the second in W, but now only the sums over
 * some hundred parts of the rows pass between them, instead of dy. Sums by parts have other bits
 * than sums by rows, so all devices of a plan must agree on them. */
#include "base/memory.h"
#include "base/tensor.h"
#include "graph/graph.h"
#include "ops/norm/parts.h"

typedef struct splitter {
  gp_graph *graph;
  gp_ref count;   /* number of values at the beginning */
  gp_ref *now;    /* per value: the value that its readers read instead */
  int32_t *dx_of; /* per mean of a layer norm: number + 1 of its layer_norm_dx */
  int32_t *next;  /* per node: number + 1 of an earlier node that must follow it */
  bool *late;     /* per node: it must follow a later one */
} splitter;

/* Operand numbers of the mean in layer_norm_dx and in the gradient of its parameters. */
enum { DX_MEAN = 3, DW_MEAN = 2 };

static int32_t input_gradient_of(const splitter *s, const gp_node *dw) {
  int32_t n = s->dx_of[dw->in[DW_MEAN]] - 1;
  if (n < 0) return -1;
  const gp_node *dx = &s->graph->nodes[n];
  bool same = dx->layer == dw->layer && dx->in[0] == dw->in[0] && dx->in[1] == dw->in[1];
  return same ? n : -1;
}

/* Append a new value that is an output of node n. */
static gp_status add_output(const splitter *s, int32_t n, int output, const gp_meta *meta,
                            gp_ref *ref) {
  GP_TRY(gp_graph_value(s->graph, GP_VALUE_NODE, meta, 0, ref));
  gp_value *value = &s->graph->values[*ref];
  value->node = n;
  value->output = output;
  value->layer = s->graph->nodes[n].layer;
  return GP_OK;
}

/* Outputs of a node have consecutive refs, so dx is a new value too. */
static gp_status split(splitter *s, int32_t dx, int32_t dw) {
  gp_graph *graph = s->graph;
  gp_node *wide = &graph->nodes[dx], *sum = &graph->nodes[dw];
  const gp_meta rows = graph->values[wide->out].meta;
  const gp_dtype dtype = graph->values[wide->in[DX_MEAN]].meta.dtype;
  const gp_shape parts = {3, {2, gp_norm_parts(gp_meta_rows(&rows)), gp_meta_width(&rows)}};
  gp_meta meta;
  gp_ref out, made;
  GP_TRY(gp_meta_make(dtype, &parts, &meta));
  GP_TRY(add_output(s, dx, 0, &rows, &out));
  GP_TRY(add_output(s, dx, 1, &meta, &made));
  s->now[wide->out] = out;
  wide->op = GP_OP_layer_norm_parts_dx;
  wide->out = out;
  wide->n_out = 2;
  sum->op = GP_OP_layer_norm_parts_dw;
  sum->n_in = 1;
  sum->in[0] = made;
  if (dw < dx) s->next[dx] = dw + 1, s->late[dw] = true;
  return GP_OK;
}

static gp_ref current(const splitter *s, gp_ref ref) { return ref < s->count ? s->now[ref] : ref; }

/* Move nodes behind the node whose new outputs they read. at: per node, its new number. */
static void move(const splitter *s, gp_node *nodes, int32_t *at) {
  gp_graph *graph = s->graph;
  for (int32_t n = 0, placed = 0; n < graph->node_count; n++) {
    if (s->late[n]) continue;
    at[n] = placed++;
    if (s->next[n]) at[s->next[n] - 1] = placed++;
  }
  for (int32_t n = 0; n < graph->node_count; n++) {
    nodes[at[n]] = graph->nodes[n];
    for (int i = 0; i < nodes[at[n]].n_in; i++) nodes[at[n]].in[i] = current(s, nodes[at[n]].in[i]);
  }
  for (gp_ref r = 0; r < graph->value_count; r++) {
    gp_value *value = &graph->values[r];
    value->base = current(s, value->base);
    if (value->node >= 0) value->node = at[value->node];
  }
}

static gp_status run(splitter *s, gp_node *nodes, int32_t *at) {
  gp_graph *graph = s->graph;
  for (gp_ref r = 0; r < s->count; r++) s->now[r] = r;
  for (int32_t n = 0; n < graph->node_count; n++)
    if (graph->nodes[n].op == GP_OP_layer_norm_dx) s->dx_of[graph->nodes[n].in[DX_MEAN]] = n + 1;
  for (int32_t n = 0; n < graph->node_count; n++) {
    if (graph->nodes[n].op != GP_OP_layer_norm_bias_dw) continue;
    int32_t dx = input_gradient_of(s, &graph->nodes[n]);
    if (dx >= 0) GP_TRY(split(s, dx, n));
  }
  move(s, nodes, at);
  return GP_OK;
}

gp_status gp_graph_split_norms(gp_graph *graph) {
  splitter s = {.graph = graph, .count = graph->value_count};
  size_t values = (size_t)graph->value_count + 1, count = (size_t)graph->node_count + 1;
  gp_node *nodes = NULL;
  int32_t *at = NULL;
  gp_status status = gp_alloc_array(values, sizeof(gp_ref), (void **)&s.now);
  if (!status) status = gp_alloc_array(values, sizeof(int32_t), (void **)&s.dx_of);
  if (!status) status = gp_alloc_array(count, sizeof(int32_t), (void **)&s.next);
  if (!status) status = gp_alloc_array(count, sizeof(bool), (void **)&s.late);
  if (!status) status = gp_alloc_array(count, sizeof(int32_t), (void **)&at);
  if (!status) status = gp_alloc_array(graph->node_room + 1, sizeof *nodes, (void **)&nodes);
  if (!status) status = run(&s, nodes, at);
  if (!status) {
    gp_node *old = graph->nodes;
    graph->nodes = nodes;
    nodes = old;
  }
  gp_free(nodes);
  gp_free(at);
  gp_free(s.now);
  gp_free(s.dx_of);
  gp_free(s.next);
  gp_free(s.late);
  return status;
}
