/* plan/buffers.c - a buffer that forward writes belongs to one stage.
 *
 * Its values go from micro-batch to micro-batch: what micro-batch i + 1 reads is what i wrote.
 * Within a stage the order of forward passes gives that; between stages it would be a wait
 * backwards through the pipeline. So the nodes that read the buffer first and those that write it
 * must lie in one stage; what was read or written may then be used anywhere, because readers get
 * copies (graph/trace.c). Where a stage has several copies, or runs its forward passes out of
 * order, what depends on such a buffer runs behind them all (records.h), in one stage too.
 */
#include <stdio.h>

#include "base/memory.h"
#include "graph/late.h"
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
  bool late;     /* late nodes write the buffers */
  touches *seen; /* per parameter or buffer of the graph */
} checker;

static int32_t stage_of_node(const checker *c, int32_t n) {
  return c->stage_of[c->graph->nodes[n].layer];
}

/* Note that node n reads or writes the buffer that its input i is. */
static void touch_buffer(const checker *c, int32_t n, int i, bool writes) {
  const gp_node *node = &c->graph->nodes[n];
  touches *seen = &c->seen[c->graph->values[gp_graph_base(c->graph, node->in[i])].index];
  if (seen->first < 0) seen->first = n;
  if (seen->elsewhere < 0 && stage_of_node(c, n) != stage_of_node(c, seen->first))
    seen->elsewhere = n;
  seen->written |= writes;
}

/* Note node n if it is a snapshot of a buffer, or writes some. */
static void touch(const checker *c, int32_t n) {
  const gp_node *node = &c->graph->nodes[n];
  if (node->snapshot) touch_buffer(c, n, 0, false);
  for (int k = 0; k < gp_op_slots(node->op); k++) touch_buffer(c, n, k, true);
}

/* Do the forward passes of a stage that one device runs have another order than the
 * micro-batches? */
static bool is_shuffled(const gp_schedule *s, int32_t stage) {
  const int32_t device = s->placement[stage];
  int32_t micro = -1;
  for (int32_t a = s->first[device]; a < s->first[device + 1]; a++) {
    const gp_action *x = &s->actions[a];
    if (x->op != GP_ACT_F || x->stage != stage) continue;
    if (x->micro < micro) return true;
    micro = x->micro;
  }
  return false;
}

static gp_status judge(const checker *c, const touches *seen) {
  const gp_node *nodes = c->graph->nodes;
  if (seen->written && !c->late && is_shuffled(c->schedule, stage_of_node(c, seen->first)))
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

/* ---- late nodes ------------------------------------------------------------------------------ */

/* A late node that reads what one of another stage makes would have to wait for that stage. */
static gp_status check_late(const checker *c, const gp_node_list *late) {
  for (int32_t k = 0; k < late->count; k++) {
    const gp_node *node = &c->graph->nodes[late->nodes[k]];
    for (int i = 0; i < node->n_in; i++) {
      const int32_t maker = c->graph->values[node->in[i]].node;
      if (maker < 0 || !c->graph->nodes[maker].late) continue;
      if (stage_of_node(c, maker) == stage_of_node(c, late->nodes[k])) continue;
      return gp_fail(GP_EINVAL,
                     "%s: it writes a Buffer with what %s made of another one, in stages %d and "
                     "%d: both must lie in one stage (choose another balance)",
                     c->graph->labels[node->label], c->graph->labels[c->graph->nodes[maker].label],
                     (int)stage_of_node(c, late->nodes[k]), (int)stage_of_node(c, maker));
    }
  }
  return GP_OK;
}

/* A stream of one copy has no end behind which late nodes could run; replicas update together. */
const char *gp_shape_why_late(const gp_shape_spec *spec, const gp_graph *graph,
                              char text[GP_WHY_LATE]) {
  const gp_schedule *s = spec->plan->schedule;
  if (!gp_graph_writes_buffers(graph)) return NULL;
  const bool streams =
      s->batch || (spec->plan->kind == GP_PLAN_STEP && spec->env->update == GP_UPDATE_FREE);
  if (s->copy_count > 1) {
    snprintf(text, GP_WHY_LATE, "the schedule runs every stage on %d devices", (int)s->copy_count);
    return text;
  }
  for (int32_t stage = 0; !streams && stage < s->stage_count; stage++)
    if (is_shuffled(s, stage)) return "the schedule runs forward passes out of order";
  return NULL;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static gp_status check(checker *c, const gp_stages *stages) {
  for (int32_t s = 0; s < stages->count; s++) {
    const gp_stage_nodes *nodes = &stages->stages[s];
    for (int32_t k = 0; k < nodes->forward.count; k++) touch(c, nodes->forward.nodes[k]);
    for (int32_t k = 0; k < nodes->late.count; k++) touch(c, nodes->late.nodes[k]);
    GP_TRY(check_late(c, &nodes->late));
  }
  for (int32_t i = 0; i < c->graph->param_count; i++) GP_TRY(judge(c, &c->seen[i]));
  return GP_OK;
}

gp_status gp_shape_check_buffers(const gp_shape_spec *spec, const gp_graph *graph,
                                 const gp_stages *stages) {
  char text[GP_WHY_LATE];
  checker c = {.graph = graph,
               .stage_of = spec->env->stage_of,
               .schedule = spec->plan->schedule,
               .late = gp_shape_why_late(spec, graph, text) != NULL};
  GP_TRY(gp_alloc_array((size_t)graph->param_count + 1, sizeof(touches), (void **)&c.seen));
  for (int32_t i = 0; i < graph->param_count; i++)
    c.seen[i] = (touches){.first = -1, .elsewhere = -1};
  gp_status status = check(&c, stages);
  gp_free(c.seen);
  return status;
}
