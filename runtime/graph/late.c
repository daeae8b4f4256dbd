/* graph/late.c - see late.h.
 *
 * A buffer that forward writes goes from micro-batch to micro-batch: micro-batch i + 1 reads what
 * micro-batch i has written. Where several devices run the forward passes of a stage, or one device
 * runs them in another order, F cannot wait for that. So F leaves out every node that depends on
 * such a buffer, the running statistics of a batch norm for example. These nodes are late: F only
 * records what they read, the statistics of its micro-batch, and they run when all forward passes
 * are through, one micro-batch after the other. They run on the same values as within F, so the
 * buffers get the same bits. Nothing else may depend on them: what the model returns has to be
 * known before. */
#include "graph/late.h"

#include "base/memory.h"
#include "gpipe/param.h"

typedef struct parter {
  gp_graph *graph;
  const gp_late_spec *spec;
  bool *written;   /* per parameter of the graph */
  int32_t *origin; /* per node: the node by which it came to depend on a buffer */
  gp_ref *copy;    /* per value: the copy that was recorded last; GP_NONE */
} parter;

/* ---- marking --------------------------------------------------------------------------------- */

/* The parameter in whose memory input i of a node lies: a snapshot's first, or a slot. */
static int32_t param_of(const gp_graph *graph, const gp_node *node, int i) {
  return graph->values[gp_graph_base(graph, node->in[i])].index;
}

/* Count the buffers that a node of the forward pass writes. */
static int slots_of(const gp_node *node) {
  return node->phase == GP_FORWARD ? gp_op_slots(node->op) : 0;
}

static void find_written(const parter *p) {
  const gp_graph *graph = p->graph;
  for (int32_t n = 0; n < graph->node_count; n++)
    for (int k = 0; k < slots_of(&graph->nodes[n]); k++)
      p->written[param_of(graph, &graph->nodes[n], k)] = true;
}

bool gp_graph_writes_buffers(const gp_graph *graph) {
  for (int32_t n = 0; n < graph->node_count; n++)
    if (slots_of(&graph->nodes[n])) return true;
  return false;
}

/* The late node that made a value; -1: another one did, or none. */
static int32_t late_maker(const gp_graph *graph, gp_ref ref) {
  const int32_t n = graph->values[ref].node;
  return n >= 0 && graph->nodes[n].late ? n : -1;
}

/* Every node comes after what it reads, so one pass finds all of them. */
static void mark(const parter *p, int32_t n) {
  const gp_graph *graph = p->graph;
  gp_node *node = &graph->nodes[n];
  p->origin[n] = n;
  node->late = slots_of(node) > 0 || (node->snapshot && p->written[param_of(graph, node, 0)]);
  for (int i = 0; i < node->n_in && !node->late; i++) {
    const int32_t maker = late_maker(graph, node->in[i]);
    if (maker < 0) continue;
    node->late = true;
    p->origin[n] = p->origin[maker];
  }
}

static gp_status refuse(const parter *p, int32_t n) {
  const gp_graph *graph = p->graph;
  return gp_fail(GP_EINVAL,
                 "%s: what it returns depends on a Buffer that forward writes, and %s: expected "
                 "one copy of the weights, no replicas and forward passes in order, or a layer "
                 "that only writes it in training",
                 graph->labels[graph->nodes[p->origin[n]].label], p->spec->why);
}

static gp_status check(const parter *p) {
  const gp_graph *graph = p->graph;
  for (int i = 0; i < p->spec->export_count; i++) {
    const int32_t maker = late_maker(graph, p->spec->exports[i]);
    if (maker >= 0) return refuse(p, maker);
  }
  for (int32_t n = 0; n < graph->node_count; n++)
    if (graph->nodes[n].late && graph->nodes[n].phase == GP_BACKWARD) return refuse(p, n);
  return GP_OK;
}

/* ---- recording ------------------------------------------------------------------------------- */

/* May a late node read the value where it lies? Buffers and constants are everywhere; parameters
 * are, too, but in a stream it would see another version of them than F. */
static bool stays(const parter *p, gp_ref ref) {
  const gp_value *value = &p->graph->values[gp_graph_base(p->graph, ref)];
  if (value->kind != GP_VALUE_PARAM) return value->kind == GP_VALUE_CONST;
  return !p->spec->updates || gp_param_is_buffer(p->graph->params[value->index]);
}

/* Append the copy of input i of node n, in the layer that reads it; readers in a layer share it. */
static gp_status record(const parter *p, int32_t n, int i) {
  gp_graph *graph = p->graph;
  const gp_node node = graph->nodes[n]; /* a copy: the list grows */
  gp_ref *copy = &p->copy[node.in[i]];
  if (*copy == GP_NONE || graph->values[*copy].layer != node.layer) {
    gp_builder at = {.graph = graph, .layer = node.layer, .label = node.label};
    GP_TRY(gp_build(&at, GP_OP_copy, &(gp_attrs){0}, &node.in[i], 1, copy));
    graph->nodes[graph->node_count - 1].records = true;
  }
  if (gp_op_needs_copy(node.op, &node.attr, i, &graph->values[*copy].meta)) return refuse(p, n);
  graph->nodes[n].in[i] = *copy;
  return GP_OK;
}

static gp_status record_all(const parter *p) {
  const gp_graph *graph = p->graph;
  const int32_t count = graph->node_count;
  for (int32_t n = 0; n < count; n++)
    for (int i = 0; graph->nodes[n].late && i < graph->nodes[n].n_in; i++) {
      const gp_ref in = graph->nodes[n].in[i];
      if (late_maker(graph, in) < 0 && !stays(p, in)) GP_TRY(record(p, n, i));
    }
  return GP_OK;
}

/* Move the late nodes behind the copies that they read. */
static gp_status move_to_end(gp_graph *graph) {
  gp_node *nodes;
  int32_t *place, count = 0;
  GP_TRY(gp_alloc_array(graph->node_room, sizeof *nodes, (void **)&nodes));
  gp_status status = gp_alloc_array((size_t)graph->node_count + 1, sizeof *place, (void **)&place);
  if (status) return gp_free(nodes), status;
  for (int late = 0; late < 2; late++)
    for (int32_t n = 0; n < graph->node_count; n++) {
      if (graph->nodes[n].late != late) continue;
      place[n] = count;
      nodes[count++] = graph->nodes[n];
    }
  for (gp_ref r = 0; r < graph->value_count; r++)
    if (graph->values[r].node >= 0) graph->values[r].node = place[graph->values[r].node];
  gp_free(place);
  gp_free(graph->nodes);
  graph->nodes = nodes;
  return GP_OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static gp_status part(parter *p) {
  const size_t nodes = (size_t)p->graph->node_count + 1, values = (size_t)p->graph->value_count;
  const size_t params = (size_t)p->graph->param_count + 1;
  GP_TRY(gp_alloc_array(params, sizeof *p->written, (void **)&p->written));
  GP_TRY(gp_alloc_array(nodes, sizeof *p->origin, (void **)&p->origin));
  GP_TRY(gp_alloc_array(values + 1, sizeof *p->copy, (void **)&p->copy));
  for (size_t r = 0; r < values; r++) p->copy[r] = GP_NONE;
  find_written(p);
  for (int32_t n = 0; n < p->graph->node_count; n++) mark(p, n);
  GP_TRY(check(p));
  if (!p->spec->runs) return GP_OK;
  GP_TRY(record_all(p));
  return move_to_end(p->graph);
}

gp_status gp_graph_part_late(gp_graph *graph, const gp_late_spec *spec) {
  parter p = {.graph = graph, .spec = spec};
  gp_status status = part(&p);
  gp_free(p.written);
  gp_free(p.origin);
  gp_free(p.copy);
  return status;
}
