/* plan/memory/crossings.c - parameters of other devices that a stage reads.
 *
 * A parameter that several layers use lies with the first of them. A stage that reads it on another
 * device gets it once per mini-batch, as a step edge (plan/edge/step_edges.h). Crossings are found
 * from the nodes, so that the plan of one device also knows which of its parameters the others
 * read.
 */
#include "base/memory.h"
#include "plan/memory/places.h"

typedef struct finder {
  gp_shaper *shaper;
  int32_t *stage_of; /* per parameter of the layout: the last stage that was noted, + 1 */
  size_t room;
} finder;

static gp_status note(finder *f, gp_ref value, int32_t stage) {
  gp_shape_plan *shape = f->shaper->shape;
  const gp_graph *graph = f->shaper->graph;
  gp_layout *layout = f->shaper->env->layout;
  const gp_value *base = &graph->values[gp_graph_base(graph, value)];
  if (base->kind != GP_VALUE_PARAM) return GP_OK;
  const int32_t param = gp_layout_find(layout, graph->params[base->index]);
  if (param < 0 || f->stage_of[param] == stage + 1) return GP_OK;
  if (!gp_layout_crosses(layout, param, stage)) return GP_OK;
  f->stage_of[param] = stage + 1;
  gp_layout_cross(layout, param);
  GP_TRY(gp_grow_array((size_t)shape->crossing_count, &f->room, sizeof(gp_crossing),
                       (void **)&shape->crossings));
  shape->crossings[shape->crossing_count++] = (gp_crossing){param, stage};
  return GP_OK;
}

static gp_status note_node(finder *f, int32_t n, int32_t stage) {
  const gp_node *node = &f->shaper->graph->nodes[n];
  for (int i = 0; i < node->n_in; i++) GP_TRY(note(f, node->in[i], stage));
  return GP_OK;
}

static gp_status note_nodes(finder *f, const gp_node_list *list, int32_t stage) {
  for (int32_t k = 0; k < list->count; k++) GP_TRY(note_node(f, list->nodes[k], stage));
  return GP_OK;
}

/* Note what a stage reads; recomputation repeats nodes of the forward pass. */
static gp_status note_stage(finder *f, int32_t stage) {
  const gp_stage_nodes *nodes = &f->shaper->shape->stages->stages[stage];
  GP_TRY(note_nodes(f, &nodes->prepare, stage));
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

gp_status gp_shape_add_crossings(gp_shaper *s) {
  const gp_stages *stages = s->shape->stages;
  finder f = {.shaper = s};
  GP_TRY(gp_alloc_array((size_t)s->env->layout->param_count + 1, sizeof *f.stage_of,
                        (void **)&f.stage_of));
  gp_status status = GP_OK;
  for (int32_t k = 0; !status && k < stages->count; k++) status = note_stage(&f, k);
  if (!status) status = note_count(&f);
  gp_free(f.stage_of);
  return status;
}
