/* plan/remat/once.c - see once.h.
 *
 * The forward pass keeps the input of each segment. The backward pass takes the segments from the
 * last one on: it runs their layers again, keeps all of each, and runs them back. Which cut is best
 * depends on the number in flight: many short segments park more and have less in work. */
#include "plan/remat/once.h"

#include "base/memory.h"
#include "plan/remat/least.h"

typedef struct maker {
  gp_remat_list *list;
  size_t room;
} maker;

static gp_status add(maker *m, gp_remat_act act, int32_t layer) {
  return gp_remat_append(m->list, &m->room, (gp_remat_step){.act = act, .layer = layer});
}

/* begins: per layer, does a segment begin with it? */
static gp_status add_forward(maker *m, const bool *begins, int32_t layers) {
  for (int32_t l = 0; l < layers; l++)
    GP_TRY(add(m, begins[l] ? GP_REMAT_CHECKPOINT : GP_REMAT_FORWARD, l));
  m->list->backward_begins = m->list->count;
  return GP_OK;
}

static gp_status add_backward(maker *m, const bool *begins, int32_t layers) {
  for (int32_t end = layers; end > 0;) {
    int32_t first = end - 1;
    while (!begins[first]) first--;
    for (int32_t l = first; l < end; l++) GP_TRY(add(m, GP_REMAT_KEEP, l));
    for (int32_t l = end - 1; l >= first; l--) GP_TRY(add(m, GP_REMAT_BACKWARD, l));
    end = first;
  }
  return GP_OK;
}

static gp_status make(gp_remat_path *path, int32_t in_flight, bool *begins, gp_remat_list *list) {
  const gp_remat_share share = gp_remat_least_share(path, in_flight);
  gp_remat_path_parked(path, share.active);
  for (int32_t at = path->end; at > 0;) { /* back from checkpoint to checkpoint */
    at = path->from[gp_remat_path_place(path, at, at < path->end)];
    begins[at] = true;
  }
  maker m = {.list = list};
  GP_TRY(add_forward(&m, begins, path->end));
  GP_TRY(add_backward(&m, begins, path->end));
  gp_remat_cost cost;
  GP_TRY(gp_remat_simulate(path->chain, list, in_flight, &cost));
  list->time = cost.time;
  list->parked = cost.parked;
  list->away = cost.away;
  list->peak = cost.peak;
  return GP_OK;
}

gp_status gp_remat_once(const gp_remat_chain *chain, int32_t in_flight, gp_remat_list *list) {
  size_t *ranges;
  bool *begins = NULL;
  GP_TRY(gp_remat_least_ranges(chain, true, &ranges));
  gp_remat_path path = {.chain = chain, .ranges = ranges, .end = chain->count, .once = true};
  gp_remat_list made = {0};
  gp_status status = gp_remat_path_new(&path);
  if (!status) status = gp_alloc_array((size_t)chain->count, sizeof *begins, (void **)&begins);
  if (!status) status = make(&path, in_flight, begins, &made);
  if (status) gp_remat_list_free(&made);
  gp_remat_path_free(&path);
  gp_free(begins);
  gp_free(ranges);
  if (!status) *list = made;
  return status;
}
