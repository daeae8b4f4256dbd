/* plan/remat/away.c - see away.h.
 *
 * What goes to the host costs the other micro-batches no memory, but while it is under way it lies
 * on the device: that of one micro-batch goes or comes while another one is at work. So a set of
 * layers is worth trying from three micro-batches in flight on. For a given set the bytes and the
 * time of its copies are constants, and the rest is the programme of search.c, in which these
 * layers park nothing. Ranges that run again do not know the set, so all sets share one table. */
#include "plan/remat/away.h"

#include <stdlib.h>

#include "base/memory.h"
#include "plan/remat/search.h"

enum { FEWEST_IN_FLIGHT = 3, ALL_SETS = 4, MOST_SETS = 16 };

/* A layer that may go. */
typedef struct member {
  int32_t layer;
  double worth; /* ns to make it again, per byte */
} member;

typedef struct chooser {
  gp_remat_table *table;
  gp_remat_limits limits;
  member *members;
  int32_t count;
  bool *goes; /* per layer: the set at hand */
  gp_remat_list best;
} chooser;

/* What a layer would send; 0: it may not go. */
static size_t away_of(const gp_remat_layer *layer) {
  return layer->options[layer->option_count - 1].away;
}

static int by_worth(const void *a, const void *b) {
  const member *x = a, *y = b;
  if (x->worth != y->worth) return x->worth > y->worth ? -1 : 1;
  return x->layer < y->layer ? -1 : 1;
}

static void list_members(chooser *c) {
  const gp_remat_chain *chain = &c->table->chain;
  for (int32_t l = 0; l < chain->count; l++) {
    const gp_remat_layer *layer = &chain->layers[l];
    if (!away_of(layer)) continue;
    c->members[c->count++] = (member){l, (double)layer->forward / (double)away_of(layer)};
  }
  qsort(c->members, (size_t)c->count, sizeof *c->members, by_worth);
}

/* Can the set be better than the best list? *bytes: what it sends. */
static bool is_worth_it(const chooser *c, size_t *bytes) {
  const gp_remat_chain *chain = &c->table->chain;
  *bytes = 0;
  for (int32_t l = 0; l < chain->count; l++)
    if (c->goes[l]) *bytes += away_of(&chain->layers[l]);
  const size_t host = chain->link.bytes, all = *bytes * (size_t)c->limits.in_flight;
  if (*bytes >= c->limits.memory / 2 || (host && all > host)) return false;
  const int64_t least = c->table->fastest[chain->count] + gp_remat_exposed(chain, *bytes);
  return !c->best.count || least < c->best.time;
}

static gp_status try_set(chooser *c) {
  const gp_remat_stage stage = {.table = c->table, .end = c->table->chain.count};
  gp_remat_limits within = c->limits;
  gp_remat_list list = {0};
  size_t bytes;
  if (!is_worth_it(c, &bytes)) return GP_OK;
  within.memory -= 2 * bytes;
  c->table->chain.goes = c->goes;
  gp_status status = gp_remat_search(&stage, &within, &list);
  c->table->chain.goes = NULL;
  if (status) return status == GP_ENOMEM ? GP_OK : status;
  if (c->best.count && list.time >= c->best.time) return gp_remat_list_free(&list), GP_OK;
  gp_remat_list_free(&c->best);
  c->best = list;
  return GP_OK;
}

static gp_status try_all(chooser *c) {
  for (int32_t set = 1; set < 1 << c->count; set++) {
    for (int32_t i = 0; i < c->count; i++) c->goes[c->members[i].layer] = set >> i & 1;
    GP_TRY(try_set(c));
  }
  return GP_OK;
}

/* Try sets that grow by a sixteenth of the layers each time. */
static gp_status try_nested(chooser *c) {
  for (int32_t set = 1, taken = 0; set <= MOST_SETS; set++) {
    const int32_t until = c->count * set / MOST_SETS;
    if (until == taken) continue;
    for (; taken < until; taken++) c->goes[c->members[taken].layer] = true;
    GP_TRY(try_set(c));
  }
  return GP_OK;
}

static gp_status choose(chooser *c) {
  const size_t layers = (size_t)c->table->chain.count;
  GP_TRY(gp_alloc_array(layers, sizeof *c->members, (void **)&c->members));
  GP_TRY(gp_alloc_array(layers, sizeof *c->goes, (void **)&c->goes));
  list_members(c);
  return c->count <= ALL_SETS ? try_all(c) : try_nested(c);
}

gp_status gp_remat_search_away(gp_remat_table *table, const gp_remat_limits *limits,
                               gp_remat_list *list) {
  chooser c = {.table = table, .limits = *limits};
  const gp_remat_stage stage = {.table = table, .end = table->chain.count};
  const gp_status plain = gp_remat_search(&stage, limits, &c.best);
  const bool may_go = table->chain.link.bandwidth > 0 && limits->in_flight >= FEWEST_IN_FLIGHT;
  gp_status status = may_go && (!plain || plain == GP_ENOMEM) ? choose(&c) : GP_OK;
  gp_free(c.members);
  gp_free(c.goes);
  if (status) return gp_remat_list_free(&c.best), status;
  if (!c.best.count) return plain;
  *list = c.best;
  return GP_OK;
}
