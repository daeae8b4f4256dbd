/* plan/buffers.c - a buffer that forward writes belongs to one stage.
 *
 * Its values go from micro-batch to micro-batch: what micro-batch i + 1 reads is what i wrote.
 * Within a stage the order of forward passes gives that; between stages it would be a wait
 * backwards through the pipeline. So the nodes that read the buffer first and those that write it
 * must lie in one stage; what was read or written may then be used anywhere, because readers get
 * copies (graph/trace.c).
 */
#include "base/memory.h"
#include "plan/make.h"

/* The nodes that touch a buffer's memory; -1: none. */
typedef struct touches {
  int32_t first, elsewhere; /* the first of all, and the first in another stage than that */
  bool written;
} touches;

typedef struct checker {
  const gp_graph *graph;
  const int32_t *stage_of; /* per layer */
  const gp_schedule *schedule;
  touches *seen; /* per parameter or buffer of the graph */
} checker;

static int32_t stage_of_node(const checker *c, int32_t n) {
  return c->stage_of[c->graph->nodes[n].layer];
}

/* Note node n if it is a snapshot of a buffer, or an assignment to one. */
static void touch(const checker *c, int32_t n) {
  const gp_node *node = &c->graph->nodes[n];
  if (!node->snapshot && node->op != GP_OP_assign) return;
  touches *seen = &c->seen[c->graph->values[gp_graph_base(c->graph, node->in[0])].index];
  if (seen->first < 0) seen->first = n;
  if (seen->elsewhere < 0 && stage_of_node(c, n) != stage_of_node(c, seen->first))
    seen->elsewhere = n;
  seen->written |= node->op == GP_OP_assign;
}

/* Do the stage's forward passes run in another order than that of the micro-batches? */
static bool is_shuffled(const gp_schedule *s, int32_t stage) {
  int32_t micro = -1;
  for (int32_t a = 0; a < s->first[s->device_count]; a++) {
    const gp_action *x = &s->actions[a];
    if (x->op != GP_ACT_F || x->stage != stage) continue;
    if (x->micro < micro) return true;
    micro = x->micro;
  }
  return false;
}

static gp_status judge(const checker *c, const touches *seen) {
  const gp_node *nodes = c->graph->nodes;
  if (seen->written && c->schedule->copy_count > 1)
    return gp_fail(GP_EINVAL,
                   "%s: forward writes a Buffer, and the schedule runs every stage on %d devices: "
                   "expected a schedule with one copy of the weights, and no replicas",
                   c->graph->labels[nodes[seen->first].label], (int)c->schedule->copy_count);
  if (seen->written && is_shuffled(c->schedule, stage_of_node(c, seen->first)))
    return gp_fail(GP_EINVAL,
                   "%s: forward writes a Buffer, and the schedule runs the forward passes of its "
                   "stage out of order: expected ascending micro-batches",
                   c->graph->labels[nodes[seen->first].label]);
  if (!seen->written || seen->elsewhere < 0) return GP_OK;
  return gp_fail(GP_EINVAL,
                 "%s: it shares a Buffer that forward writes with %s, in stages %d and %d: both "
                 "must lie in one stage (choose another balance)",
                 c->graph->labels[nodes[seen->elsewhere].label],
                 c->graph->labels[nodes[seen->first].label], (int)stage_of_node(c, seen->elsewhere),
                 (int)stage_of_node(c, seen->first));
}

gp_status gp_shape_check_buffers(const gp_shape_spec *spec, const gp_graph *graph,
                                 const gp_stages *stages) {
  checker c = {.graph = graph, .stage_of = spec->env->stage_of, .schedule = spec->plan->schedule};
  gp_status status = GP_OK;
  GP_TRY(gp_alloc_array((size_t)graph->param_count + 1, sizeof(touches), (void **)&c.seen));
  for (int32_t i = 0; i < graph->param_count; i++)
    c.seen[i] = (touches){.first = -1, .elsewhere = -1};
  for (int32_t s = 0; s < stages->count; s++)
    for (int32_t k = 0; k < stages->stages[s].forward.count; k++)
      touch(&c, stages->stages[s].forward.nodes[k]);
  for (int32_t i = 0; !status && i < graph->param_count; i++) status = judge(&c, &c.seen[i]);
  gp_free(c.seen);
  return status;
}
