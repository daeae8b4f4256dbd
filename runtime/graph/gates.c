/* graph/gates.c - the norm of channels takes in the ReLU behind it, and the sum between the two, in
 * both directions.
 *
 *   relu(channel_norm(x))                    -> channel_norm_relu
 *   relu(channel_norm(x) + a)                -> channel_norm_add_relu
 *   channel_norm_sums(relu_dx(dy, y))        -> channel_norm_relu_sums  } y of the first op above:
 *   channel_norm_dx(relu_dx(dy, y))          -> channel_norm_relu_dx    } x tells its sign
 *   relu_dx(dy, y), channel_norm_sums of it  -> channel_norm_gate_sums, with dy = a + b
 *
 * Each of these saves passes over an image, which is what convolutional networks wait for. The
 * fused ops have the bits of single ops on every device, so a neighbour may stand in another layer
 * of the same stage: where the model is cut between them they stay single, with the same bits.
 *
 * Images have come into one order by now (arrange.c), so between neighbours stand only views. What
 * counts is memory: an elementwise op is flat if it writes each element where its operands have
 * theirs. A fused op makes the image N x C x H x W, channels-last, and the value that the
 * elementwise op made becomes a view of it. */
#include "graph/gates.h"

#include "base/memory.h"
#include "base/tensor.h"
#include "graph/order.h"
#include "graph/rebuild.h"

/* What becomes of a node. Numbers of nodes are 1 too large; 0: none. */
typedef struct fate {
  bool dropped;  /* another node does its work */
  int32_t norm;  /* the norm: of a relu or of gradients that find out the sign of y */
  int32_t sum;   /* the add before a relu or a relu_dx */
  int32_t sums;  /* the channel_norm_sums that a relu_dx makes too */
  int32_t gate;  /* the relu_dx before a channel_norm_sums or channel_norm_dx */
  int32_t relu;  /* the relu that the node takes in: a norm, or the add behind one */
  int32_t layer; /* where a relu_dx goes; 0: where it is */
} fate;

/* Who reads the memory of a value. Views do not count, only what reads through them. */
typedef struct readers {
  int32_t count;
  int32_t sums, dx; /* the first channel_norm_sums and channel_norm_dx of it; 1 too large */
} readers;

typedef struct gates {
  gp_graph *graph;
  const gp_gates_spec *spec;
  gp_ref count;  /* number of values at the beginning */
  readers *read; /* per value that is its own base */
  fate *fates;   /* per node */
  gp_ref *now;   /* per value: the value that its readers read instead */
  bool *gone;    /* per value: it is in no memory now */
  gp_rebuild list;
  bool any; /* something is fused */
} gates;

/* ---- looking around ------------------------------------------------------------------------- */

static const gp_value *value_of(const gates *g, gp_ref ref) { return &g->graph->values[ref]; }
static gp_ref base_of(const gates *g, gp_ref ref) { return g->graph->values[ref].base; }
static bool is_view(const gp_node *node) { return gp_op_get(node->op)->flags & GP_OP_VIEW; }

static void note_readers(const gates *g) {
  for (int32_t n = 0; n < g->graph->node_count; n++) {
    const gp_node *node = &g->graph->nodes[n];
    for (int i = 0; i < node->n_in && !is_view(node); i++) g->read[base_of(g, node->in[i])].count++;
    if (node->op != GP_OP_channel_norm_sums && node->op != GP_OP_channel_norm_dx) continue;
    readers *r = &g->read[base_of(g, node->in[0])];
    int32_t *first = node->op == GP_OP_channel_norm_sums ? &r->sums : &r->dx;
    if (!*first) *first = n + 1;
  }
}

static bool is_near(const gates *g, const gp_node *a, const gp_node *b) {
  return a->phase == b->phase && g->spec->stage_of[a->layer] == g->spec->stage_of[b->layer];
}

/* The node of that op whose result `ref` shows, if no other node reads it; -1: there is none. */
static int32_t only_maker(const gates *g, const gp_node *reader, gp_ref ref, gp_op op) {
  const gp_ref base = base_of(g, ref);
  const int32_t n = value_of(g, base)->node;
  if (n < 0 || g->read[base].count != 1) return -1;
  const gp_node *maker = &g->graph->nodes[n];
  return maker->op == op && is_near(g, maker, reader) && !g->fates[n].dropped ? n : -1;
}

/* Do two values of one shape have their elements at the same places? */
static bool lie_alike(const gp_meta *a, const gp_meta *b) {
  for (int d = 0; d < a->shape.rank; d++)
    if (a->shape.dim[d] != 1 && a->stride[d] != b->stride[d]) return false;
  return a->offset == b->offset && gp_meta_equal(a, b);
}

/* Does the node write every element of its result where each operand has it? */
static bool is_flat(const gates *g, const gp_node *node) {
  const gp_meta *out = &value_of(g, node->out)->meta;
  gp_order order;
  if (!gp_order_of(out, &order) || out->shape.rank != 4) return false;
  for (int i = 0; i < node->n_in; i++) {
    const gp_value *in = value_of(g, node->in[i]), *base = value_of(g, in->base);
    if (!lie_alike(&in->meta, out) || gp_meta_numel(&base->meta) != gp_meta_numel(&in->meta))
      return false;
  }
  return true;
}

/* Find the permutation that makes `from` lie as `to`, from N x C x H x W to N x H x W x C, back or
 * none. */
static bool find_turn(const gp_meta *from, const gp_meta *to, gp_attrs *turn) {
  static const int64_t turns[3][4] = {{0, 1, 2, 3}, {0, 2, 3, 1}, {0, 3, 1, 2}};
  for (int t = 0; t < 3; t++) {
    gp_meta turned = *from;
    *turn = (gp_attrs){.permute = {.order = {.count = 4}}};
    for (int d = 0; d < 4; d++) {
      const int64_t source = turn->permute.order.at[d] = turns[t][d];
      turned.shape.dim[d] = from->shape.dim[source], turned.stride[d] = from->stride[source];
    }
    if (lie_alike(&turned, to)) return true;
  }
  return false;
}

static bool turns(const gates *g, gp_ref from, gp_ref to) {
  gp_attrs turn;
  return find_turn(&value_of(g, from)->meta, &value_of(g, to)->meta, &turn);
}

/* ---- what is taken in ----------------------------------------------------------------------- */

/* Node n is no more, and its result is in no memory. */
static void drop(gates *g, int32_t n) {
  g->fates[n].dropped = true;
  g->gone[g->graph->nodes[n].out] = true;
}

/* The norm that makes one summand; of two norms the later one, because the other summand must be
 * there first. -1: neither. */
static int32_t find_norm(const gates *g, const gp_node *sum) {
  const int32_t a = only_maker(g, sum, sum->in[0], GP_OP_channel_norm);
  const int32_t b = only_maker(g, sum, sum->in[1], GP_OP_channel_norm);
  return a > b ? a : b;
}

static void visit_relu(gates *g, int32_t n) {
  const gp_node *node = &g->graph->nodes[n];
  int32_t norm = only_maker(g, node, node->in[0], GP_OP_channel_norm), sum = -1;
  if (node->phase != GP_FORWARD || !is_flat(g, node)) return;
  if (norm < 0) {
    sum = only_maker(g, node, node->in[0], GP_OP_add);
    if (sum < 0 || !is_flat(g, &g->graph->nodes[sum])) return;
    norm = find_norm(g, &g->graph->nodes[sum]);
  }
  if (norm < 0 || !turns(g, g->graph->nodes[norm].out, node->out)) return;
  g->fates[n] = (fate){.dropped = true, .norm = norm + 1, .sum = sum + 1};
  g->fates[sum < 0 ? norm : sum].relu = n + 1;
  if (sum >= 0) drop(g, sum);
  drop(g, norm);
  g->any = true;
}

/* Does this op of the backward pass belong to the norm, and does it see the image as it is? */
static bool belongs(const gates *g, const gp_node *relu, int32_t n, const gp_node *norm) {
  if (n < 0) return false;
  const gp_node *node = &g->graph->nodes[n];
  for (int i = 0; i < 3; i++)
    if (node->in[1 + i] != norm->in[i]) return false;
  return is_near(g, node, relu) && turns(g, relu->out, node->in[0]);
}

/* Let the gradients of a norm find out by themselves what passes the ReLU. */
static bool takes_sign(gates *g, int32_t n) {
  const gp_node *node = &g->graph->nodes[n];
  const int32_t relu = value_of(g, base_of(g, node->in[1]))->node;
  if (relu < 0 || !g->fates[relu].norm || g->fates[relu].sum) return false;
  const gp_node *norm = &g->graph->nodes[g->fates[relu].norm - 1];
  const readers *r = &g->read[node->out];
  const bool sums = belongs(g, node, r->sums - 1, norm), dx = belongs(g, node, r->dx - 1, norm);
  const bool here =
      g->spec->stage_of[g->graph->nodes[relu].layer] == g->spec->stage_of[node->layer];
  if (!here || !sums || r->count != sums + dx) return false;
  const fate behind = {.gate = n + 1, .norm = g->fates[relu].norm};
  g->fates[r->sums - 1] = behind;
  if (dx) g->fates[r->dx - 1] = behind;
  drop(g, n);
  return true;
}

/* The layer of the add before the ReLU, whose gradient goes there with it; 1 too large. */
static int32_t layer_of_sum(const gates *g, const gp_node *relu_dx) {
  const int32_t relu = value_of(g, base_of(g, relu_dx->in[1]))->node;
  if (relu < 0 || !g->fates[relu].sum) return 0;
  return g->graph->nodes[g->fates[relu].sum - 1].layer + 1;
}

static void visit_relu_dx(gates *g, int32_t n) {
  const gp_node *node = &g->graph->nodes[n];
  const int32_t sums = g->read[node->out].sums - 1;
  if (node->phase != GP_BACKWARD || !is_flat(g, node) || sums < 0) return;
  const gp_node *reader = &g->graph->nodes[sums];
  if (!is_near(g, node, reader) || !turns(g, node->out, reader->in[0])) return;
  g->any = true;
  if (takes_sign(g, n)) return;
  const int32_t sum = only_maker(g, node, node->in[0], GP_OP_add);
  if (sum >= 0 && is_flat(g, &g->graph->nodes[sum])) {
    g->fates[n].sum = sum + 1;
    drop(g, sum);
  }
  g->fates[n].sums = sums + 1;
  g->fates[n].layer = layer_of_sum(g, node);
  g->fates[sums].dropped = true; /* its result is one of the fused node's */
}

static void visit(gates *g, int32_t n) {
  const gp_node *node = &g->graph->nodes[n];
  const gp_dtype dtype = value_of(g, node->out)->meta.dtype;
  if ((dtype == GP_BF16 || dtype == GP_F16) && !g->spec->halves) return;
  if (node->op == GP_OP_relu) visit_relu(g, n);
  if (node->op == GP_OP_relu_dx) visit_relu_dx(g, n);
}

/* ---- the new list ---------------------------------------------------------------------------- */

static gp_ref current(const gates *g, gp_ref ref) { return ref < g->count ? g->now[ref] : ref; }

static gp_node view_beside(const gp_node *near, gp_ref in, const gp_attrs *turn) {
  gp_node node = gp_node_beside(near, GP_OP_permute);
  node.attr = *turn;
  node.in[node.n_in++] = in;
  return node;
}

/* Let the node read a value as an image that lies as `image`: by a view if it is turned. */
static gp_status read_turned(gates *g, gp_node *node, gp_ref in, gp_ref image) {
  gp_attrs turn;
  in = current(g, in);
  if (!lie_alike(&value_of(g, in)->meta, &value_of(g, image)->meta)) {
    const bool found = find_turn(&value_of(g, in)->meta, &value_of(g, image)->meta, &turn);
    GP_ASSERT(found);
    gp_node view = view_beside(node, in, &turn);
    GP_TRY(gp_rebuild_append_new(&g->list, &view));
    in = view.out;
  }
  node->in[node->n_in++] = in;
  return GP_OK;
}

/* Let the node read operands [first, last) of another one, as far as there are any. */
static void read_all(const gates *g, gp_node *node, const gp_node *from, int first, int last) {
  for (int i = first; i < last && i < from->n_in; i++)
    node->in[node->n_in++] = current(g, from->in[i]);
}

/* Append the fused node. The old value, which others know, becomes a view of its result. */
static gp_status append_fused(gates *g, gp_node *node, gp_ref old) {
  gp_attrs turn;
  GP_TRY(gp_rebuild_append_new(&g->list, node));
  const bool found = find_turn(&value_of(g, node->out)->meta, &value_of(g, old)->meta, &turn);
  GP_ASSERT(found);
  gp_node view = view_beside(node, node->out, &turn);
  view.n_out = 1, view.out = old;
  g->graph->values[old].base = node->out;
  g->graph->values[old].layer = node->layer;
  return gp_rebuild_append(&g->list, &view);
}

/* The op belongs to the layer of the norm, or of the sum: what crosses between layers is still one
 * value each, so that segments which run again (plan/remat) keep no more than before. */
static gp_status emit_relu(gates *g, const gp_node *near, int32_t relu) {
  const fate *f = &g->fates[relu];
  const gp_node *norm = &g->graph->nodes[f->norm - 1];
  const double eps = norm->attr.channel_norm.eps;
  gp_node node = gp_node_beside(near, GP_OP_channel_norm_relu);
  node.attr.channel_norm_relu.eps = eps;
  read_all(g, &node, norm, 0, 3);
  if (f->sum) {
    const gp_node *sum = &g->graph->nodes[f->sum - 1];
    const int addend = base_of(g, sum->in[0]) == norm->out ? 1 : 0;
    node.op = GP_OP_channel_norm_add_relu;
    node.attr = (gp_attrs){.channel_norm_add_relu = {.eps = eps}};
    GP_TRY(read_turned(g, &node, sum->in[addend], norm->out));
  }
  read_all(g, &node, norm, 3, 5);
  return append_fused(g, &node, g->graph->nodes[relu].out);
}

/* Append the gradient of a norm that reads what comes before the ReLU's gradient. */
static gp_status emit_behind(gates *g, const gp_node *old, const fate *f) {
  const gp_node *gate = &g->graph->nodes[f->gate - 1], *norm = &g->graph->nodes[f->norm - 1];
  gp_node node = *old;
  node.n_in = 0;
  GP_TRY(read_turned(g, &node, gate->in[0], old->in[1]));
  if (old->op == GP_OP_channel_norm_sums) {
    node.op = GP_OP_channel_norm_relu_sums;
    node.attr = (gp_attrs){.channel_norm_relu_sums = {.eps = old->attr.channel_norm_sums.eps}};
    read_all(g, &node, old, 1, 4);
  } else {
    const gp_attr_channel_norm_dx *a = &old->attr.channel_norm_dx;
    node.op = GP_OP_channel_norm_relu_dx;
    node.attr = (gp_attrs){.channel_norm_relu_dx = {.eps = a->eps, .given = a->given}};
    read_all(g, &node, old, 1, 5);
  }
  read_all(g, &node, norm, 3, 5);
  return gp_rebuild_append(&g->list, &node);
}

/* Append the gradient of a ReLU that makes the sums for a norm before it, too. */
static gp_status emit_gate(gates *g, const gp_node *relu_dx, const fate *f) {
  const gp_node *sums = &g->graph->nodes[f->sums - 1];
  const gp_node *add = f->sum ? &g->graph->nodes[f->sum - 1] : NULL;
  const gp_ref image = sums->in[0], old = sums->out;
  gp_node node = gp_node_beside(relu_dx, GP_OP_channel_norm_gate_sums);
  if (f->layer) node.layer = f->layer - 1;
  node.attr.channel_norm_gate_sums.eps = sums->attr.channel_norm_sums.eps;
  GP_TRY(read_turned(g, &node, add ? add->in[0] : relu_dx->in[0], image));
  GP_TRY(read_turned(g, &node, relu_dx->in[1], image));
  read_all(g, &node, sums, 1, 4);
  if (add) GP_TRY(read_turned(g, &node, add->in[1], image));
  GP_TRY(append_fused(g, &node, relu_dx->out));
  g->now[old] = node.out + 1;
  g->graph->values[old].base = node.out + 1;
  g->graph->values[old].node = g->graph->values[node.out].node;
  return GP_OK;
}

static bool is_gone(const gates *g, gp_ref ref) {
  const gp_ref base = base_of(g, ref);
  return base < g->count && g->gone[base];
}

static gp_status emit(gates *g, int32_t n) {
  const gp_node *node = &g->graph->nodes[n];
  const fate *f = &g->fates[n];
  if (f->relu) return emit_relu(g, node, f->relu - 1);
  if (f->dropped) return GP_OK;
  if (is_view(node) && is_gone(g, node->in[0])) return GP_OK; /* its readers are gone, too */
  if (f->gate) return emit_behind(g, node, f);
  if (f->sums) return emit_gate(g, node, f);
  gp_node same = *node;
  for (int i = 0; i < same.n_in; i++) same.in[i] = current(g, same.in[i]);
  return gp_rebuild_append(&g->list, &same);
}

/* Give every value the base that it has now. One that is in no memory needs some node. */
static void settle(const gates *g) {
  for (gp_ref r = 0; r < g->graph->value_count; r++) {
    gp_value *value = &g->graph->values[r];
    if ((r < g->count && g->gone[r]) || is_gone(g, r)) value->node = 0;
    while (base_of(g, value->base) != value->base) value->base = base_of(g, value->base);
  }
}

static gp_status run(gates *g) {
  const int32_t count = g->graph->node_count;
  for (gp_ref r = 0; r < g->count; r++) g->now[r] = r;
  note_readers(g);
  for (int32_t n = 0; n < count; n++) visit(g, n);
  if (!g->any) return GP_OK;
  for (int32_t n = 0; n < count; n++) GP_TRY(emit(g, n));
  settle(g);
  gp_rebuild_install(&g->list);
  return GP_OK;
}

gp_status gp_graph_gate(gp_graph *graph, const gp_gates_spec *spec) {
  gates g = {.graph = graph, .spec = spec, .count = graph->value_count, .list.graph = graph};
  const size_t values = (size_t)graph->value_count + 1, nodes = (size_t)graph->node_count + 1;
  gp_status status = gp_alloc_array(values, sizeof *g.read, (void **)&g.read);
  if (!status) status = gp_alloc_array(nodes, sizeof *g.fates, (void **)&g.fates);
  if (!status) status = gp_alloc_array(values, sizeof *g.now, (void **)&g.now);
  if (!status) status = gp_alloc_array(values, sizeof *g.gone, (void **)&g.gone);
  if (!status) status = run(&g);
  gp_free(g.read);
  gp_free(g.fates);
  gp_free(g.now);
  gp_free(g.gone);
  gp_free(g.list.nodes);
  return status;
}
