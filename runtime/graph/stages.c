/* graph/stages.c - the cut: which stage runs a node, in which of its programs, and which values
 * cross.
 *
 * Everything follows from reachability. P is what depends on parameters and constants only, I is
 * what gradients that leave the stage need, W the rest of the backward pass, R the forward nodes
 * behind values that the backward pass reads. Authors of layers need not declare any of it. */
#include "graph/stages.h"

#include "base/memory.h"

typedef struct cutter {
  const gp_cut_spec *spec;
  const gp_graph *graph;
  gp_stages *out;
  bool *live;  /* per node: not dead code */
  bool *input; /* per node: in I */
  bool *again; /* per node: in R */
  bool *once;  /* per node: in P */
} cutter;

static int32_t stage_of_node(const cutter *c, const gp_node *node) {
  return c->spec->stage_of[node->layer];
}

static bool is_view(const gp_node *node) { return gp_op_get(node->op)->flags & GP_OP_VIEW; }

/* ---- what lives ---------------------------------------------------------------------------- */

/* Find the nodes that are needed. Roots: exports, written buffers, gradient accumulators. */
static gp_status find_live(cutter *c) {
  const gp_graph *graph = c->graph;
  gp_ref *roots;
  int32_t count = 0;
  size_t room = (size_t)graph->value_count + (size_t)c->spec->export_count;
  GP_TRY(gp_alloc_array(room + 1, sizeof *roots, (void **)&roots));
  for (int32_t i = 0; i < c->spec->export_count; i++) roots[count++] = c->spec->exports[i];
  for (gp_ref r = 0; r < graph->value_count; r++) {
    const gp_value *value = &graph->values[r];
    if (value->kind != GP_VALUE_NODE) continue;
    const gp_node *node = &graph->nodes[value->node];
    bool effect = gp_op_get(node->op)->flags & GP_OP_EFFECT;
    if (node->late && c->spec->drops_late) continue;
    if (effect || node->accumulate) roots[count++] = r;
  }
  gp_status status = gp_graph_reach(graph, roots, count, c->live);
  gp_free(roots);
  return status;
}

/* A view lies where its base lies. */
static void find_spaces(cutter *c) {
  const gp_graph *graph = c->graph;
  for (gp_ref r = 0; r < graph->value_count; r++) {
    const gp_value *base = &graph->values[graph->values[r].base];
    c->out->space[r] = base->node < 0 ? -1 : stage_of_node(c, &graph->nodes[base->node]);
  }
}

/* ---- what is the same for all micro-batches ------------------------------------------------- */

/* Is the value known before any micro-batch arrives? */
static bool is_invariant(const cutter *c, gp_ref ref) {
  const gp_value *value = &c->graph->values[ref];
  switch (value->kind) {
  case GP_VALUE_CONST: return true;
  case GP_VALUE_PARAM: return !gp_param_is_buffer(c->graph->params[value->index]);
  case GP_VALUE_NODE: return c->once[value->node];
  default: return false;
  }
}

/* Visit nodes in order: the answer for inputs is known already. */
static void find_invariant_node(const cutter *c, int32_t n) {
  const gp_node *node = &c->graph->nodes[n];
  unsigned moving = GP_OP_RANDOM | GP_OP_EFFECT | GP_OP_GATHERS;
  c->once[n] = c->once[n] && c->live[n] && node->phase == GP_FORWARD && node->n_in > 0 &&
               !node->snapshot && !node->records && !(gp_op_get(node->op)->flags & moving);
  for (int i = 0; i < node->n_in; i++) c->once[n] = c->once[n] && is_invariant(c, node->in[i]);
}

/* Clear once[n] first for values that leave the stage: exports, and what other stages read. */
static void find_invariant(cutter *c) {
  const gp_graph *graph = c->graph;
  for (int32_t n = 0; n < graph->node_count; n++) c->once[n] = true;
  for (int32_t i = 0; i < c->spec->export_count; i++)
    c->once[graph->values[c->spec->exports[i]].node] = false;
  for (int32_t n = 0; n < graph->node_count; n++)
    for (int i = 0; i < graph->nodes[n].n_in; i++) {
      gp_ref base = gp_graph_base(graph, graph->nodes[n].in[i]);
      int32_t space = c->out->space[base];
      if (space >= 0 && space != stage_of_node(c, &graph->nodes[n]))
        c->once[graph->values[base].node] = false;
    }
  for (int32_t n = 0; n < graph->node_count; n++) find_invariant_node(c, n);
}

/* ---- edges --------------------------------------------------------------------------------- */

/* Edges are few, so the array grows by one; a table per value finds them. */
static gp_status add_edge(cutter *c, gp_ref value, gp_edge **edge) {
  gp_stages *out = c->out;
  size_t n = (size_t)out->edge_count;
  GP_TRY(gp_resize_array(n, n + 1, sizeof(gp_edge), (void **)&out->edges));
  *edge = &out->edges[out->edge_count++];
  out->edge_of[value] = (int32_t)n;
  (*edge)->value = value;
  (*edge)->from = out->space[value];
  (*edge)->phase = c->graph->nodes[c->graph->values[value].node].phase;
  return GP_OK;
}

/* Add stage `to` as a reader of the value; readers are ascending and unique. */
static gp_status add_reader(cutter *c, gp_ref value, int32_t to) {
  int32_t known = c->out->edge_of[value];
  gp_edge *edge = known < 0 ? NULL : &c->out->edges[known];
  if (!edge) GP_TRY(add_edge(c, value, &edge));
  int32_t at = 0;
  while (at < edge->to_count && edge->to[at] < to) at++;
  if (at < edge->to_count && edge->to[at] == to) return GP_OK;
  size_t n = (size_t)edge->to_count;
  GP_TRY(gp_resize_array(n, n + 1, sizeof(int32_t), (void **)&edge->to));
  for (int32_t k = edge->to_count; k > at; k--) edge->to[k] = edge->to[k - 1];
  edge->to[at] = to;
  edge->to_count++;
  return GP_OK;
}

/* Views do not count as readers: they cost nothing, and their own readers read the base. */
static gp_status find_edges(cutter *c) {
  const gp_graph *graph = c->graph;
  for (int32_t n = 0; n < graph->node_count; n++) {
    const gp_node *node = &graph->nodes[n];
    if (!c->live[n] || is_view(node)) continue;
    for (int i = 0; i < node->n_in; i++) {
      gp_ref base = gp_graph_base(graph, node->in[i]);
      int32_t space = c->out->space[base], here = stage_of_node(c, node);
      if (space >= 0 && space != here) GP_TRY(add_reader(c, base, here));
    }
  }
  return GP_OK;
}

/* ---- I, W and R ---------------------------------------------------------------------------- */

/* The stage of an export that the backward pass makes (the gradient of an input); -1 for others. */
static int32_t stage_of_gradient(const cutter *c, gp_ref ref) {
  const gp_node *node = &c->graph->nodes[c->graph->values[ref].node];
  return node->phase == GP_BACKWARD ? stage_of_node(c, node) : -1;
}

/* For each stage: does a gradient leave it? */
static void find_open_stages(const cutter *c, bool *open) {
  for (int32_t i = 0; i < c->spec->export_count; i++) {
    int32_t stage = stage_of_gradient(c, c->spec->exports[i]);
    if (stage >= 0) open[stage] = true;
  }
  for (int32_t e = 0; e < c->out->edge_count; e++)
    if (c->out->edges[e].phase == GP_BACKWARD) open[c->out->edges[e].from] = true;
}

/* The roots of I: gradients that leave their stage. In a stage that none leaves (the first one, or
 * one with only frozen layers before it), the gradients that its accumulations read take their
 * place. So W consists of weight gradients in every stage, and there too, the work that cannot be
 * postponed is half of it. */
static int32_t find_roots(const cutter *c, const bool *open, gp_ref *roots) {
  const gp_graph *graph = c->graph;
  int32_t count = 0;
  for (int32_t e = 0; e < c->out->edge_count; e++)
    if (c->out->edges[e].phase == GP_BACKWARD) roots[count++] = c->out->edges[e].value;
  for (int32_t i = 0; i < c->spec->export_count; i++)
    if (stage_of_gradient(c, c->spec->exports[i]) >= 0) roots[count++] = c->spec->exports[i];
  for (int32_t n = 0; n < graph->node_count; n++) {
    const gp_node *node = &graph->nodes[n];
    if (!c->live[n] || !node->accumulate || open[stage_of_node(c, node)]) continue;
    for (int i = 0; i < node->n_in; i++) {
      gp_ref base = gp_graph_base(graph, node->in[i]);
      int32_t maker = graph->values[base].node;
      if (maker >= 0 && graph->nodes[maker].phase == GP_BACKWARD && !graph->nodes[maker].accumulate)
        roots[count++] = base;
    }
  }
  return count;
}

/* Mark all nodes that these roots need. */
static gp_status find_input_gradients(cutter *c) {
  gp_ref *roots;
  bool *open;
  size_t room =
      (size_t)(c->out->edge_count + c->spec->export_count + GP_MAX_INPUTS * c->graph->node_count) +
      1;
  GP_TRY(gp_alloc_array(room, sizeof *roots, (void **)&roots));
  gp_status status = gp_alloc_array((size_t)c->spec->stage_count, sizeof *open, (void **)&open);
  if (!status) {
    find_open_stages(c, open);
    status = gp_graph_reach(c->graph, roots, find_roots(c, open, roots), c->input);
    gp_free(open);
  }
  gp_free(roots);
  return status;
}

/* May this node run again, instead of keeping its results? Snapshots and effects may not, nor what
 * all replicas make together; nor may a node with a value that another stage may be reading: its
 * other outputs (statistics of its rows) are kept beside that. */
static bool repeatable(const cutter *c, const gp_node *node) {
  for (int k = 0; k < node->n_out; k++)
    if (c->out->edge_of[gp_graph_base(c->graph, node->out + k)] >= 0) return false;
  return node->phase == GP_FORWARD && !node->snapshot &&
         !(gp_op_get(node->op)->flags & (GP_OP_EFFECT | GP_OP_GATHERS));
}

/* Mark the forward nodes behind values that a stage's backward nodes read, from last to first. A
 * value on an edge stays in its slot until the backward pass is done, so it is never recomputed. */
static gp_status find_recomputed(cutter *c) {
  const gp_graph *graph = c->graph;
  bool *wanted;
  GP_TRY(gp_alloc_array((size_t)graph->value_count + 1, sizeof *wanted, (void **)&wanted));
  for (int32_t n = graph->node_count - 1; n >= 0; n--) {
    const gp_node *node = &graph->nodes[n];
    if (!c->live[n]) continue;
    int32_t here = stage_of_node(c, node);
    for (int k = 0; k < node->n_out && repeatable(c, node); k++)
      c->again[n] |= wanted[node->out + k];
    if (node->phase == GP_FORWARD && !c->again[n]) continue;
    for (int i = 0; i < node->n_in; i++) {
      gp_ref in = node->in[i], base = gp_graph_base(graph, in);
      if (c->out->space[in] != here || c->out->edge_of[base] >= 0 || is_invariant(c, base))
        continue;
      wanted[in] = wanted[base] = true;
    }
  }
  gp_free(wanted);
  return GP_OK;
}

/* ---- lists --------------------------------------------------------------------------------- */

/* Room doubles whenever the count is a power of two. */
static gp_status append(gp_node_list *list, int32_t node) {
  if (!(list->count & (list->count - 1)) || list->count == 0) {
    size_t n = (size_t)list->count;
    GP_TRY(gp_resize_array(n, n ? 2 * n : 1, sizeof(int32_t), (void **)&list->nodes));
  }
  list->nodes[list->count++] = node;
  return GP_OK;
}

/* Fill the lists. Views have no kernel, so they are in none. */
static gp_status fill_lists(cutter *c) {
  for (int32_t n = 0; n < c->graph->node_count; n++) {
    const gp_node *node = &c->graph->nodes[n];
    if (!c->live[n] || is_view(node)) continue;
    gp_stage_nodes *stage = &c->out->stages[stage_of_node(c, node)];
    if (c->once[n]) {
      GP_TRY(append(&stage->prepare, n));
    } else if (node->late) {
      GP_TRY(append(&stage->late, n));
    } else if (node->phase == GP_FORWARD) {
      GP_TRY(append(&stage->forward, n));
      if (c->again[n]) GP_TRY(append(&stage->recompute, n));
    } else {
      GP_TRY(append(c->input[n] ? &stage->input : &stage->weight, n));
    }
  }
  return GP_OK;
}

static gp_status cut(cutter *c) {
  size_t nodes = (size_t)c->graph->node_count + 1;
  GP_TRY(gp_alloc_array(nodes, sizeof(bool), (void **)&c->live));
  GP_TRY(gp_alloc_array(nodes, sizeof(bool), (void **)&c->input));
  GP_TRY(gp_alloc_array(nodes, sizeof(bool), (void **)&c->again));
  GP_TRY(gp_alloc_array(nodes, sizeof(bool), (void **)&c->once));
  GP_TRY(find_live(c));
  find_spaces(c);
  find_invariant(c);
  GP_TRY(find_edges(c));
  GP_TRY(find_input_gradients(c));
  GP_TRY(find_recomputed(c));
  return fill_lists(c);
}

gp_status gp_stages_build(const gp_cut_spec *spec, gp_stages **stages) {
  cutter c = {.spec = spec, .graph = spec->graph};
  gp_status status = gp_alloc(sizeof *c.out, (void **)&c.out);
  if (status) return status;
  c.out->count = spec->stage_count;
  status =
      gp_alloc_array((size_t)spec->stage_count, sizeof(gp_stage_nodes), (void **)&c.out->stages);
  if (!status)
    status =
        gp_alloc_array((size_t)c.graph->value_count + 1, sizeof(int32_t), (void **)&c.out->space);
  if (!status)
    status =
        gp_alloc_array((size_t)c.graph->value_count + 1, sizeof(int32_t), (void **)&c.out->edge_of);
  for (gp_ref r = 0; !status && r < c.graph->value_count; r++) c.out->edge_of[r] = -1;
  if (!status) status = cut(&c);
  gp_free(c.live);
  gp_free(c.input);
  gp_free(c.again);
  gp_free(c.once);
  if (status) return gp_stages_free(c.out), status;
  *stages = c.out;
  return GP_OK;
}

void gp_stages_free(gp_stages *stages) {
  if (!stages) return;
  for (int32_t s = 0; stages->stages && s < stages->count; s++) {
    gp_free(stages->stages[s].prepare.nodes);
    gp_free(stages->stages[s].forward.nodes);
    gp_free(stages->stages[s].late.nodes);
    gp_free(stages->stages[s].recompute.nodes);
    gp_free(stages->stages[s].input.nodes);
    gp_free(stages->stages[s].weight.nodes);
  }
  for (int32_t e = 0; e < stages->edge_count; e++) gp_free(stages->edges[e].to);
  gp_free(stages->stages);
  gp_free(stages->edges);
  gp_free(stages->space);
  gp_free(stages->edge_of);
  gp_free(stages);
}
