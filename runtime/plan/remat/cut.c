/* plan/remat/cut.c - see cut.h. */
#include "plan/remat/cut.h"

#include "base/memory.h"

/* Arc 2i is the caller's arc i, arc 2i + 1 the way back: what flows along the one may flow back
 * along the other. */
typedef struct network {
  int32_t vertex_count, arc_count;
  int32_t *to, *next; /* per arc: its end, and the next arc with the same begin; -1: none */
  int64_t *rest;      /* per arc: what may still flow */
  int32_t *first;     /* per vertex: its first arc */
  int32_t *current;   /* per vertex: the arc that may lead on */
  int32_t *level;     /* per vertex: distance from the source; -1: not reached */
  int32_t *queue;     /* of vertices; and the arcs of a path */
} network;

static gp_status make_room(network *n) {
  size_t vertices = (size_t)n->vertex_count, arcs = (size_t)n->arc_count;
  GP_TRY(gp_alloc_array(arcs + 1, sizeof(int64_t), (void **)&n->rest));
  GP_TRY(gp_alloc_array(2 * arcs + 4 * vertices + 1, sizeof(int32_t), (void **)&n->to));
  n->next = n->to + arcs;
  n->first = n->next + arcs;
  n->current = n->first + vertices;
  n->level = n->current + vertices;
  n->queue = n->level + vertices;
  return GP_OK;
}

static void add_arc(network *n, int32_t arc, int32_t from, int32_t to, int64_t capacity) {
  n->to[arc] = to;
  n->rest[arc] = capacity;
  n->next[arc] = n->first[from];
  n->first[from] = arc;
}

static void fill(network *n, const gp_cut_arc *arcs) {
  for (int32_t v = 0; v < n->vertex_count; v++) n->first[v] = -1;
  for (int32_t a = 0; a < n->arc_count; a += 2) {
    const gp_cut_arc *arc = &arcs[a / 2];
    add_arc(n, a, arc->from, arc->to, arc->capacity);
    add_arc(n, a + 1, arc->to, arc->from, 0);
  }
}

/* Number the vertices by their distance from the source. Returns whether the sink is reached. */
static bool find_levels(network *n) {
  int32_t head = 0, tail = 0;
  for (int32_t v = 0; v < n->vertex_count; v++) n->level[v] = -1;
  n->level[GP_CUT_SOURCE] = 0;
  n->queue[tail++] = GP_CUT_SOURCE;
  while (head < tail) {
    const int32_t v = n->queue[head++];
    for (int32_t a = n->first[v]; a >= 0; a = n->next[a]) {
      if (!n->rest[a] || n->level[n->to[a]] >= 0) continue;
      n->level[n->to[a]] = n->level[v] + 1;
      n->queue[tail++] = n->to[a];
    }
  }
  return n->level[GP_CUT_SINK] >= 0;
}

static bool leads_on(const network *n, int32_t arc, int32_t from) {
  return n->rest[arc] > 0 && n->level[n->to[arc]] == n->level[from] + 1;
}

/* Push along the path of arcs n->queue[0 .. length - 1] what its narrowest arc lets through.
 * Returns where on the path that arc is. */
static int32_t push(network *n, int32_t length) {
  int32_t narrow = 0;
  for (int32_t i = 1; i < length; i++)
    if (n->rest[n->queue[i]] < n->rest[n->queue[narrow]]) narrow = i;
  const int64_t amount = n->rest[n->queue[narrow]];
  for (int32_t i = 0; i < length; i++) {
    n->rest[n->queue[i]] -= amount;
    n->rest[n->queue[i] ^ 1] += amount;
  }
  return narrow;
}

/* Push flow along paths that go up one level with each arc, until no such path is left. */
static void block(network *n) {
  int32_t length = 0, v = GP_CUT_SOURCE;
  for (int32_t i = 0; i < n->vertex_count; i++) n->current[i] = n->first[i];
  for (;;) {
    if (v == GP_CUT_SINK) {
      length = push(n, length);
      v = n->to[n->queue[length] ^ 1];
    }
    int32_t *arc = &n->current[v];
    while (*arc >= 0 && !leads_on(n, *arc, v)) *arc = n->next[*arc];
    if (*arc >= 0) {
      n->queue[length++] = *arc;
      v = n->to[*arc];
    } else if (length) { /* a dead end: the arc that led here leads nowhere */
      v = n->to[n->queue[--length] ^ 1];
      n->current[v] = n->next[n->current[v]];
    } else {
      return;
    }
  }
}

/* Mark the vertices from which the sink can still be reached. */
static void find_behind(network *n, bool *behind) {
  int32_t head = 0, tail = 0;
  for (int32_t v = 0; v < n->vertex_count; v++) behind[v] = v == GP_CUT_SINK;
  n->queue[tail++] = GP_CUT_SINK;
  while (head < tail) {
    const int32_t v = n->queue[head++];
    for (int32_t a = n->first[v]; a >= 0; a = n->next[a]) {
      if (!n->rest[a ^ 1] || behind[n->to[a]]) continue;
      behind[n->to[a]] = true;
      n->queue[tail++] = n->to[a];
    }
  }
}

gp_status gp_cut_find(const gp_cut_arc *arcs, int32_t arc_count, int32_t vertex_count,
                      bool *behind) {
  network n = {.vertex_count = vertex_count, .arc_count = 2 * arc_count};
  gp_status status = make_room(&n);
  if (!status) {
    fill(&n, arcs);
    while (find_levels(&n)) block(&n);
    find_behind(&n, behind);
  }
  gp_free(n.rest);
  gp_free(n.to);
  return status;
}
