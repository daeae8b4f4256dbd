/* graph/losses.c - a cross-entropy and the gradient of its logits become one op.
 *
 *   loss, stats = cross_entropy(logits, ids)
 *   dlogits = cross_entropy_dx(logits, ids, stats, seed)
 *     -> dlogits, loss = cross_entropy_both(logits, ids, seed), in the forward pass
 *
 * Logits are the largest value of a language model; so they are read once instead of twice. What a
 * backward pass starts from depends on nothing that a model computes: it is one number, the loss
 * scale over the count of the whole mini-batch, and every mini-batch is counted ahead of its
 * forward passes (plan/lower.c). Therefore this needs no backward pass right behind the forward
 * pass. Between the two dlogits are kept where the logits were, in as many bytes.
 *
 * It is done where the gradient of the losses is that number through views alone. A loss function
 * that does more than add up, or reads the logits in other ways, stays as it is. */
#include "graph/losses.h"

#include "base/memory.h"
#include "graph/rebuild.h"

/* Operands of cross_entropy_dx. */
enum { LOGITS, IDS, STATS, GRADIENT };

typedef struct joiner {
  gp_graph *graph;
  gp_ref count;     /* number of values at the beginning */
  int32_t *readers; /* per value: how many nodes of the backward pass read it or a view of it */
  int32_t *partner; /* per node: number + 1 of the gradient that a cross_entropy makes too */
  bool *dropped;    /* per node: another one does its work */
  gp_ref *now;      /* per value: the value that its readers read instead */
  gp_rebuild list;
} joiner;

static bool is_view(const gp_node *node) { return gp_op_get(node->op)->flags & GP_OP_VIEW; }

static void note_readers(const joiner *j) {
  const gp_graph *graph = j->graph;
  for (int32_t n = 0; n < graph->node_count; n++) {
    const gp_node *node = &graph->nodes[n];
    for (int i = 0; i < node->n_in && node->phase == GP_BACKWARD; i++)
      j->readers[gp_graph_base(graph, node->in[i])] += !is_view(node);
  }
}

/* The node behind a value and any views between; -1: none. */
static int32_t maker_of(const gp_graph *graph, gp_ref ref) {
  return graph->values[gp_graph_base(graph, ref)].node;
}

static bool same_targets(const gp_node *loss, const gp_node *dx) {
  const gp_attr_cross_entropy *a = &loss->attr.cross_entropy;
  const gp_attr_cross_entropy_dx *b = &dx->attr.cross_entropy_dx;
  return loss->in[LOGITS] == dx->in[LOGITS] && loss->in[IDS] == dx->in[IDS] &&
         a->ignore.given == b->ignore.given && a->ignore.value == b->ignore.value &&
         a->smoothing == b->smoothing;
}

/* Find the cross_entropy whose gradient node n makes, if they can be one; -1: there is none. */
static int32_t partner_of(const joiner *j, int32_t n) {
  const gp_graph *graph = j->graph;
  const gp_node *dx = &graph->nodes[n];
  if (dx->op != GP_OP_cross_entropy_dx || dx->phase != GP_BACKWARD) return -1;
  const int32_t loss = graph->values[dx->in[STATS]].node;
  const int32_t seed = maker_of(graph, dx->in[GRADIENT]);
  if (loss < 0 || seed < 0 || graph->nodes[seed].op != GP_OP_loss_seed) return -1;
  const gp_node *f = &graph->nodes[loss];
  const bool alone = j->readers[gp_graph_base(graph, dx->in[LOGITS])] == 1 &&
                     j->readers[f->out] == 0 && j->readers[f->out + 1] == 1;
  const bool own = graph->values[dx->out].base == dx->out;
  const bool fit = f->op == GP_OP_cross_entropy && f->phase == GP_FORWARD &&
                   f->layer == dx->layer && same_targets(f, dx);
  return alone && own && fit && !j->partner[loss] ? loss : -1;
}

/* Append copies of a value's views and of the seed behind them, ahead of `before`. */
static gp_status append_seed(joiner *j, gp_ref ref, const gp_node *before, gp_ref *copy) {
  const gp_node *maker = &j->graph->nodes[j->graph->values[ref].node];
  gp_node node = gp_node_beside(before, maker->op);
  node.attr = maker->attr;
  node.n_in = maker->n_in;
  if (node.n_in > 0) GP_TRY(append_seed(j, maker->in[0], before, &node.in[0]));
  GP_TRY(gp_rebuild_append_new(&j->list, &node));
  *copy = node.out;
  return GP_OK;
}

/* Views of values that no node makes now lie in the new ones; those values are in no memory. */
static void move_views(const joiner *j, const gp_node *loss, const gp_node *dx) {
  gp_value *values = j->graph->values;
  for (gp_ref r = 0; r < j->count; r++)
    if (values[r].base != r) values[r].base = j->now[values[r].base];
  values[loss->out].node = values[loss->out + 1].node = values[dx->out].node = 0;
}

static gp_status append_both(joiner *j, const gp_node *loss, const gp_node *dx) {
  gp_node node = gp_node_beside(loss, GP_OP_cross_entropy_both);
  const gp_attr_cross_entropy *a = &loss->attr.cross_entropy;
  node.attr.cross_entropy_both.ignore = a->ignore;
  node.attr.cross_entropy_both.smoothing = a->smoothing;
  node.n_in = 3;
  node.in[0] = loss->in[LOGITS], node.in[1] = loss->in[IDS];
  GP_TRY(append_seed(j, dx->in[GRADIENT], loss, &node.in[2]));
  GP_TRY(gp_rebuild_append_new(&j->list, &node));
  j->now[dx->out] = node.out;
  j->now[loss->out] = node.out + 1;
  move_views(j, loss, dx);
  return GP_OK;
}

static gp_status rebuild(joiner *j) {
  const gp_graph *graph = j->graph;
  for (int32_t n = 0; n < graph->node_count; n++) {
    gp_node node = graph->nodes[n];
    if (j->dropped[n]) continue;
    for (int i = 0; i < node.n_in; i++) node.in[i] = j->now[node.in[i]];
    if (j->partner[n])
      GP_TRY(append_both(j, &node, &graph->nodes[j->partner[n] - 1]));
    else
      GP_TRY(gp_rebuild_append(&j->list, &node));
  }
  gp_rebuild_install(&j->list);
  return GP_OK;
}

static gp_status run(joiner *j) {
  bool any = false;
  for (gp_ref r = 0; r < j->count; r++) j->now[r] = r;
  note_readers(j);
  for (int32_t n = 0; n < j->graph->node_count; n++) {
    const int32_t loss = partner_of(j, n);
    if (loss < 0) continue;
    j->partner[loss] = n + 1;
    j->dropped[n] = any = true;
  }
  return any ? rebuild(j) : GP_OK;
}

gp_status gp_graph_join_losses(gp_graph *graph) {
  joiner j = {.graph = graph, .count = graph->value_count, .list.graph = graph};
  const size_t values = (size_t)graph->value_count + 1, nodes = (size_t)graph->node_count + 1;
  gp_status status = gp_alloc_array(values, sizeof *j.readers, (void **)&j.readers);
  if (!status) status = gp_alloc_array(nodes, sizeof *j.partner, (void **)&j.partner);
  if (!status) status = gp_alloc_array(nodes, sizeof *j.dropped, (void **)&j.dropped);
  if (!status) status = gp_alloc_array(values, sizeof *j.now, (void **)&j.now);
  if (!status) status = run(&j);
  gp_free(j.readers), gp_free(j.partner), gp_free(j.dropped), gp_free(j.now);
  gp_free(j.list.nodes);
  return status;
}
