/* plan/edge/touched.c - find the edges that the actions of a stage touch, from its nodes.
 *
 * No program is needed, so a plan of one device knows which devices wait for which on all of them.
 * A view counts as what it views, because that is what crosses.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "plan/memory/places.h"

typedef struct finder {
  const gp_shaper *shaper;
  int32_t *found; /* edges of the list at hand */
  int32_t count;
  bool *is_found; /* per edge */
} finder;

/* take() removes the marks again, so that a list costs what it holds and not all edges. */
static void note(finder *f, gp_ref value) {
  const gp_shape_plan *shape = f->shaper->shape;
  int32_t edge = shape->stages->edge_of[gp_graph_base(f->shaper->graph, value)];
  if (edge < 0 || f->is_found[edge]) return;
  f->is_found[edge] = true;
  f->found[f->count++] = edge;
}

static void note_nodes(finder *f, const gp_node_list *list) {
  for (int32_t n = 0; n < list->count; n++) {
    const gp_node *node = &f->shaper->graph->nodes[list->nodes[n]];
    for (int i = 0; i < node->n_in; i++) note(f, node->in[i]);
    for (int k = 0; k < node->n_out; k++) note(f, node->out + k);
  }
}

static int ascending(const void *a, const void *b) {
  int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return x < y ? -1 : x > y;
}

/* Move what was found into the list. Edges are numbered through both sizes of micro-batches. */
static gp_status take(finder *f, gp_edge_list *list) {
  list->count = f->count;
  GP_TRY(gp_alloc_array((size_t)f->count + 1, sizeof(int32_t), (void **)&list->edges));
  qsort(f->found, (size_t)f->count, sizeof *f->found, ascending);
  for (int32_t i = 0; i < f->count; i++) {
    list->edges[i] = f->shaper->shape->first_edge + f->found[i];
    f->is_found[f->found[i]] = false;
  }
  f->count = 0;
  return GP_OK;
}

/* B's nodes are looked at once more instead of joining the lists of I and W, which would hold some
 * edges twice. What runs again within B, I or W reads edges, too. */
static gp_status find(finder *f, int32_t stage, gp_edge_list *lists) {
  const gp_stage_nodes *nodes = &f->shaper->shape->stages->stages[stage];
  const gp_recipe *recipe = &f->shaper->recipes[stage][GP_BY_MODE];
  note_nodes(f, &nodes->forward);
  GP_TRY(take(f, &lists[GP_ACT_F]));
  note_nodes(f, &recipe->again);
  GP_TRY(take(f, &lists[GP_ACT_R]));
  note_nodes(f, &recipe->input);
  GP_TRY(take(f, &lists[GP_ACT_I]));
  note_nodes(f, &recipe->weight);
  GP_TRY(take(f, &lists[GP_ACT_W]));
  note_nodes(f, &recipe->backward);
  return take(f, &lists[GP_ACT_B]);
}

gp_status gp_shape_add_touched(gp_shaper *s) {
  const gp_stages *stages = s->shape->stages;
  finder f = {.shaper = s};
  size_t edges = (size_t)stages->edge_count + 1;
  gp_status status = gp_alloc_array((size_t)stages->count * GP_TOUCHING_OPS, sizeof(gp_edge_list),
                                    (void **)&s->shape->touched);
  if (!status) status = gp_alloc_array(edges, sizeof(int32_t), (void **)&f.found);
  if (!status) status = gp_alloc_array(edges, sizeof(bool), (void **)&f.is_found);
  for (int32_t k = 0; !status && k < stages->count; k++)
    status = find(&f, k, &s->shape->touched[k * GP_TOUCHING_OPS]);
  gp_free(f.found);
  gp_free(f.is_found);
  return status;
}

void gp_shape_free_touched(gp_shape_plan *shape) {
  for (int32_t i = 0; shape->touched && i < shape->stages->count * GP_TOUCHING_OPS; i++)
    gp_free(shape->touched[i].edges);
  gp_free(shape->touched);
}
