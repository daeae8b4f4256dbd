/* plan/remat/groups.c - see groups.h. */
#include "plan/remat/groups.h"

#include "base/memory.h"

enum { MOST = 16 }; /* layers that do something in a group: more leave too little to choose from */

typedef struct finder {
  const gp_recipe_spec *stage;
  const uint8_t *own;
  const gp_node_list *forward;
  int32_t *busy; /* per layer: its number among those with nodes; one without has that before it */
  int32_t busy_count;
  int32_t *joins; /* per busy layer: values that are carried over its begin from further back */
} finder;

static int32_t layer_of(const finder *f, int32_t node) {
  return f->stage->graph->nodes[node].layer - f->stage->first_layer;
}

/* Number the layers that have nodes in F. */
static void number(finder *f) {
  for (int32_t i = 0; i < f->forward->count; i++) f->busy[layer_of(f, f->forward->nodes[i])] = 1;
  for (int32_t l = 0; l < f->stage->layer_count; l++) {
    f->busy_count += f->busy[l];
    f->busy[l] = f->busy_count ? f->busy_count - 1 : 0;
  }
  if (!f->busy_count) f->busy_count = 1;
}

/* A value that layer a makes and layer z reads last joins the layers behind a up to z. */
static void join_reads(const finder *f, int32_t n) {
  const gp_graph *graph = f->stage->graph;
  const gp_node *node = &graph->nodes[n];
  const int32_t z = f->busy[layer_of(f, n)];
  for (int k = 0; k < node->n_in; k++) {
    const gp_ref base = gp_graph_base(graph, node->in[k]);
    if (!f->own[base] || f->stage->stages->edge_of[base] >= 0) continue;
    const int32_t a = f->busy[layer_of(f, graph->values[base].node)];
    if (z - a < 2 || z - a > MOST) continue;
    f->joins[a + 2]++;
    f->joins[z + 1]--;
  }
}

/* Add up the joins; values that overlap one another may join more layers than a group has. */
static void settle(const finder *f) {
  int32_t *joins = f->joins;
  for (int32_t b = 1; b < f->busy_count; b++) joins[b] += joins[b - 1];
  for (int32_t b = 1, end; b < f->busy_count; b = end + 1) {
    for (end = b; end < f->busy_count && joins[end]; end++) continue;
    if (end - b < MOST) continue;
    for (int32_t i = b; i < end; i++) joins[i] = 0;
  }
}

static void number_groups(const finder *f, gp_layer_groups *groups) {
  for (int32_t l = 0; l < f->stage->layer_count; l++) {
    const int32_t b = f->busy[l];
    if (!l || (b != f->busy[l - 1] && !f->joins[b])) groups->first[groups->count++] = l;
    groups->of[l] = groups->count - 1;
  }
  groups->first[groups->count] = f->stage->layer_count;
}

gp_status gp_layer_groups_new(const gp_recipe_spec *stage, const uint8_t *own,
                              gp_layer_groups *groups) {
  const size_t layers = (size_t)stage->layer_count;
  finder f = {.stage = stage, .own = own, .forward = &stage->stages->stages[stage->stage].forward};
  *groups = (gp_layer_groups){0};
  GP_TRY(gp_alloc_array(2 * layers + 1, sizeof *groups->of, (void **)&groups->of));
  groups->first = groups->of + layers;
  gp_status status = gp_alloc_array(2 * layers + 2, sizeof *f.busy, (void **)&f.busy);
  if (status) return gp_layer_groups_free(groups), status;
  f.joins = f.busy + layers;
  number(&f);
  for (int32_t i = 0; i < f.forward->count; i++) join_reads(&f, f.forward->nodes[i]);
  settle(&f);
  number_groups(&f, groups);
  gp_free(f.busy);
  return GP_OK;
}

void gp_layer_groups_free(gp_layer_groups *groups) {
  gp_free(groups->of);
  *groups = (gp_layer_groups){0};
}
