/* plan/memory/crossings.c - parameters of other devices that a stage reads.
 *
 * A parameter that several layers use lies with the first of them. A stage that reads it on another
 * device gets it once per mini-batch, as a step edge (plan/edge/step_edges.h). Crossings are found
 * from the nodes, so that the plan of one device also knows which of its parameters the others
 * read.
 *
 * Where a model computes in halves, a stage often reads the parameter by a cast alone, and the
 * stage that owns it keeps the same halves beside it (engine/memory/halves.h). Then these cross,
 * and P makes none: half the bytes, and the bits of the cast.
 */
#include "base/memory.h"
#include "base/tensor.h"
#include "ops/half/half.h"
#include "plan/memory/places.h"

typedef struct finder {
  gp_shaper *shaper;
  int32_t *stage_of; /* per parameter of the layout: the last stage that was noted, + 1 */
  int32_t *full_of;  /* per parameter: the last stage that reads more than its halves, + 1 */
  size_t room;
  bool marks;  /* fills full_of; else notes crossings */
  bool halves; /* the node at hand reads the halves of its operand */
} finder;

/* Is the node a cast that P would make, of a whole parameter to halves? */
static bool is_half(const gp_graph *graph, const gp_node *node) {
  const gp_value *from = &graph->values[node->in[0]];
  return node->op == GP_OP_cast && from->kind == GP_VALUE_PARAM &&
         gp_half_is(graph->values[node->out].meta.dtype) && gp_meta_is_contiguous(&from->meta) &&
         gp_meta_is_contiguous(&graph->values[node->out].meta);
}

/* Does the stage that owns the operand of such a cast keep the same halves? */
static bool are_kept(const finder *f, const gp_node *node) {
  const gp_shaper *s = f->shaper;
  const gp_graph *graph = s->graph;
  const int32_t index = graph->values[node->in[0]].index;
  const int32_t param = gp_layout_find(s->env->layout, graph->params[index]);
  if (param < 0) return false;
  const int32_t owner = s->env->layout->at[param].stage;
  if (!gp_keeps_halves(s, owner)) return false;
  const gp_node_list *list = &s->shape->stages->stages[owner].prepare;
  for (int32_t i = 0; i < list->count; i++) {
    const gp_node *own = &graph->nodes[list->nodes[i]];
    gp_place place;
    if (is_half(graph, own) && graph->values[own->in[0]].index == index &&
        graph->values[own->out].meta.dtype == graph->values[node->out].meta.dtype)
      return gp_layout_half(s->env->layout, graph->params[index], owner,
                            graph->values[own->out].meta.dtype, &place);
  }
  return false;
}

static gp_status note(finder *f, gp_ref value, int32_t stage) {
  gp_shape_plan *shape = f->shaper->shape;
  const gp_graph *graph = f->shaper->graph;
  gp_layout *layout = f->shaper->env->layout;
  const gp_value *base = &graph->values[gp_graph_base(graph, value)];
  if (base->kind != GP_VALUE_PARAM) return GP_OK;
  const int32_t param = gp_layout_find(layout, graph->params[base->index]);
  if (param < 0 || f->stage_of[param] == stage + 1) return GP_OK;
  if (!gp_layout_crosses(layout, param, stage)) return GP_OK;
  if (f->marks) {
    if (!f->halves) f->full_of[param] = stage + 1;
    return GP_OK;
  }
  const bool half = f->full_of[param] != stage + 1;
  f->stage_of[param] = stage + 1;
  gp_layout_cross(layout, param, half);
  GP_TRY(gp_grow_array((size_t)shape->crossing_count, &f->room, sizeof(gp_crossing),
                       (void **)&shape->crossings));
  shape->crossings[shape->crossing_count++] = (gp_crossing){param, stage, half};
  return GP_OK;
}

static gp_status note_node(finder *f, int32_t n, int32_t stage) {
  const gp_node *node = &f->shaper->graph->nodes[n];
  for (int i = 0; i < node->n_in; i++) GP_TRY(note(f, node->in[i], stage));
  return GP_OK;
}

/* Note what P reads. */
static gp_status note_prepare(finder *f, const gp_node_list *list, int32_t stage) {
  for (int32_t k = 0; k < list->count; k++) {
    const gp_node *node = &f->shaper->graph->nodes[list->nodes[k]];
    f->halves = is_half(f->shaper->graph, node) && are_kept(f, node);
    GP_TRY(note_node(f, list->nodes[k], stage));
  }
  f->halves = false;
  return GP_OK;
}

static gp_status note_nodes(finder *f, const gp_node_list *list, int32_t stage) {
  for (int32_t k = 0; k < list->count; k++) GP_TRY(note_node(f, list->nodes[k], stage));
  return GP_OK;
}

/* Note what a stage reads; recomputation repeats nodes of the forward pass. */
static gp_status note_stage(finder *f, int32_t stage) {
  const gp_stage_nodes *nodes = &f->shaper->shape->stages->stages[stage];
  GP_TRY(note_prepare(f, &nodes->prepare, stage));
  GP_TRY(note_nodes(f, &nodes->forward, stage));
  GP_TRY(note_nodes(f, &nodes->late, stage));
  GP_TRY(note_nodes(f, &nodes->input, stage));
  return note_nodes(f, &nodes->weight, stage);
}

/* Note what the last stage reads for the count, what the loss is divided by. */
static gp_status note_count(finder *f) {
  const gp_graph *graph = f->shaper->graph;
  const gp_shape_plan *shape = f->shaper->shape;
  bool *needed;
  if (shape->count == GP_NONE) return GP_OK;
  GP_TRY(gp_alloc_array((size_t)graph->node_count + 1, sizeof *needed, (void **)&needed));
  gp_status status = gp_graph_reach(graph, &shape->count, 1, needed);
  for (int32_t n = 0; !status && n < graph->node_count; n++)
    if (needed[n]) status = note_node(f, n, shape->stages->count - 1);
  gp_free(needed);
  return status;
}

/* Note what the programs of a stage read, and the count with those of the last one. */
static gp_status note_reads(finder *f, int32_t stage, bool marks) {
  const int32_t stages = f->shaper->shape->stages->count;
  f->marks = marks;
  GP_TRY(note_stage(f, stage));
  return stage == stages - 1 ? note_count(f) : GP_OK;
}

gp_status gp_shape_add_crossings(gp_shaper *s) {
  finder f = {.shaper = s};
  const size_t params = (size_t)s->env->layout->param_count + 1;
  GP_TRY(gp_alloc_array(2 * params, sizeof *f.stage_of, (void **)&f.stage_of));
  f.full_of = f.stage_of + params;
  gp_status status = GP_OK;
  for (int32_t k = 0; !status && k < s->shape->stages->count; k++) {
    status = note_reads(&f, k, true);
    if (!status) status = note_reads(&f, k, false);
  }
  gp_free(f.stage_of);
  return status;
}
