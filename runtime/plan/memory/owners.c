/* plan/memory/owners.c - which replica sums the gradient of a parameter, updates it and keeps its
 * moments.
 *
 * Every replica has all parameters of its stages, but one of them is enough to add up the gradients
 * and to update. Whole parameters are dealt, the largest first, each to the device that has the
 * fewest bytes so far; so a parameter that is larger than a fair share unbalances the devices. No
 * bit depends on who owns what. Source: Rajbhandari et al., "ZeRO" (2020), section 5.1, by whole
 * parameters.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "base/tensor.h"
#include "graph/param.h"
#include "plan/memory/layout.h"

typedef struct share {
  int32_t param, stage;
  size_t bytes;
} share;

/* Stage by stage, the largest first. */
static int compare(const void *left, const void *right) {
  const share *a = left, *b = right;
  if (a->stage != b->stage) return a->stage < b->stage ? -1 : 1;
  if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
  return a->param < b->param ? -1 : a->param > b->param;
}

/* The first copy of each replica may own; the one whose device has the fewest bytes does. */
static int32_t least_loaded(const gp_layout *l, int32_t stage, const size_t *loads) {
  const int32_t *at = &l->placement[stage * l->copy_count], twins = l->copy_count / l->replicas;
  int32_t least = 0;
  for (int32_t copy = twins; copy < l->copy_count; copy += twins)
    if (loads[at[copy]] < loads[at[least]]) least = copy;
  return least;
}

static int32_t count_devices(const gp_layout *l) {
  int32_t most = 0;
  for (int32_t h = 0; h < l->stage_count * l->copy_count; h++)
    if (l->placement[h] > most) most = l->placement[h];
  return most + 1;
}

static int32_t list_shares(const gp_layout *l, share *list) {
  int32_t count = 0;
  for (int32_t i = 0; i < l->param_count; i++)
    if (l->at[i].region == GP_REGION_TRAINABLE)
      list[count++] = (share){i, l->at[i].stage, gp_meta_bytes(gp_param_meta(l->params[i]))};
  return count;
}

gp_status gp_layout_deal(gp_layout *l) {
  share *list = NULL;
  size_t *loads = NULL;
  if (l->replicas == 1) return GP_OK; /* the first copy owns everything */
  gp_status status = gp_alloc_array((size_t)l->param_count + 1, sizeof *list, (void **)&list);
  if (!status) status = gp_alloc_array((size_t)count_devices(l), sizeof *loads, (void **)&loads);
  const int32_t count = status ? 0 : list_shares(l, list);
  if (count) qsort(list, (size_t)count, sizeof *list, compare);
  for (int32_t k = 0; k < count; k++) {
    const int32_t owner = least_loaded(l, list[k].stage, loads);
    l->at[list[k].param].owner = owner;
    loads[l->placement[list[k].stage * l->copy_count + owner]] += list[k].bytes;
  }
  gp_free(list);
  gp_free(loads);
  return status;
}
