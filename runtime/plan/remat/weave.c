/* plan/remat/weave.c - see weave.h.
 *
 * A cheap node may be read by other cheap nodes, which come after it in the graph. So the places of
 * the last ones are settled first, and each counts as a reader at its own place. */
#include "plan/remat/weave.h"

#include "base/memory.h"

typedef struct weaver {
  const gp_recipe_spec *spec;
  const gp_node_list *cheap, *list;
  int32_t *first;       /* per cheap node: place of its first reader in the list; none: its end */
  int32_t *head, *next; /* per place: the cheap nodes before it, ascending; + 1, 0: none */
} weaver;

static void note_reader(const weaver *w, int32_t n, int32_t place) {
  const gp_graph *graph = w->spec->graph;
  const gp_node *node = &graph->nodes[n];
  for (int i = 0; i < node->n_in; i++) {
    const gp_ref base = gp_graph_base(graph, node->in[i]);
    if (!gp_recipe_owns(w->spec, base)) continue;
    const int32_t cheap = w->spec->notes->at[graph->values[base].node];
    if (cheap && w->first[cheap - 1] > place) w->first[cheap - 1] = place;
  }
}

/* Find the place of each cheap node. */
static void find_places(const weaver *w, int32_t begin) {
  for (int32_t i = w->list->count - 1; i >= begin; i--) note_reader(w, w->list->nodes[i], i);
  for (int32_t c = w->cheap->count - 1; c >= 0; c--) {
    const int32_t place = w->first[c];
    if (place < w->list->count) note_reader(w, w->cheap->nodes[c], place);
    w->next[c] = w->head[place];
    w->head[place] = c + 1;
  }
}

static void insert(const weaver *w, gp_node_list *woven) {
  for (int32_t i = 0; i < w->list->count; i++) {
    for (int32_t c = w->head[i]; c; c = w->next[c - 1])
      woven->nodes[woven->count++] = w->cheap->nodes[c - 1];
    woven->nodes[woven->count++] = w->list->nodes[i];
  }
}

static void note_numbers(const weaver *w, bool set) {
  for (int32_t c = 0; c < w->cheap->count; c++)
    w->spec->notes->at[w->cheap->nodes[c]] = set ? c + 1 : 0;
}

gp_status gp_weave(const gp_recipe_spec *spec, const gp_node_list *cheap, int32_t begin,
                   gp_node_list *list) {
  const size_t count = (size_t)cheap->count, places = (size_t)list->count + 1;
  weaver w = {.spec = spec, .cheap = cheap, .list = list};
  gp_node_list woven = {0};
  if (!count) return GP_OK;
  GP_TRY(gp_alloc_array(count + places, sizeof(int32_t), (void **)&woven.nodes));
  gp_status status = gp_alloc_array(2 * count + places, sizeof(int32_t), (void **)&w.first);
  if (status) return gp_free(woven.nodes), status;
  w.next = w.first + count;
  w.head = w.next + count;
  for (size_t c = 0; c < count; c++) w.first[c] = list->count;
  note_numbers(&w, true);
  find_places(&w, begin);
  note_numbers(&w, false);
  insert(&w, &woven);
  gp_free(w.first);
  gp_free(list->nodes);
  *list = woven;
  return GP_OK;
}
