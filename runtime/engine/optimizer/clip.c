/* engine/optimizer/clip.c - gradients clipped by their norm between steps, for a script that makes
 * the updates itself.
 *
 * Each device's own team or queue reads the gradients that lie with it, all devices at once. There
 * is one sum of squares for each parameter, and they are added in the order in which the script
 * gave the parameters: the same bits for every cut and any number of threads. Parameters of several
 * models may be clipped together, also with some that no pipeline owns.
 */
#include <math.h>

#include "base/memory.h"
#include "engine/optimizer/optimizer.h"
#include "engine/state/pipeline.h"
#include "engine/watch/jobs.h"
#include "gpipe/optimizer.h"
#include "graph/param.h"
#include "ranks/ranks.h"

/* ---- one pipeline -------------------------------------------------------------------------- */

static gp_arena_copy *copy_of(const gp_pipeline *p, int32_t holder) {
  return &p->arenas[holder / p->copy_count].copies[holder % p->copy_count];
}

static int32_t holder_of(const gp_pipeline *p, int32_t i) {
  return p->param_stage[i] * p->copy_count + p->layout.at[i].owner;
}

static int32_t count_holders(const gp_pipeline *p) { return p->stage_count * p->copy_count; }

/* List the chosen gradients that a copy of a stage owns. Almost always these are all of them: then
 * its own list serves, and nothing is allocated. */
static gp_status list_copy(gp_pipeline *p, int32_t holder) {
  gp_arena_copy *own = copy_of(p, holder);
  bool *among = p->chosen + p->param_count;
  int count = 0;
  if (!gp_device_is_here(p, p->placement[holder])) return GP_OK;
  for (int32_t i = 0; i < p->param_count; i++) {
    if (holder_of(p, i) != holder || p->grad_place[i] < 0) continue;
    among[p->grad_place[i]] = p->chosen[i];
    count += p->chosen[i];
  }
  if (count == own->gradients.count) return own->clipped = own->gradients, GP_OK;
  return gp_gradients_some(&own->gradients, among, &own->clipped);
}

static bool has_own_list(const gp_arena_copy *own) {
  return own->clipped.sums != own->gradients.sums;
}

static void free_lists(gp_pipeline *p) {
  for (int32_t h = 0; h < count_holders(p); h++) {
    gp_arena_copy *own = copy_of(p, h);
    if (own->clipped.sums && has_own_list(own)) gp_gradients_free_some(&own->clipped);
    own->clipped = (gp_gradients){0};
  }
}

static gp_status make_lists(gp_pipeline *p, gp_param *const *params, int count) {
  for (int32_t i = 0; i < p->param_count; i++) p->chosen[i] = false;
  for (int k = 0; k < count; k++)
    if (gp_param_owner(params[k]) == p) p->chosen[gp_layout_find(&p->layout, params[k])] = true;
  for (int32_t h = 0; h < count_holders(p); h++) GP_TRY(list_copy(p, h));
  return GP_OK;
}

/* Scale the gradients that the device owns; factor NULL: add up their squares. */
static gp_status clip_device(gp_worker *worker, void *factor) {
  const gp_pipeline *p = worker->pipeline;
  for (int32_t h = 0; h < count_holders(p); h++) {
    gp_gradients *list = &copy_of(p, h)->clipped;
    if (p->placement[h] != worker->device || !list->count) continue;
    GP_TRY(factor ? gp_gradients_scale(list, *(double *)factor) : gp_gradients_squares(list));
  }
  return gp_lane_sync(&worker->lane);
}

/* Return the sum of squares of one parameter. */
static double sum_of(const gp_pipeline *p, const gp_param *param) {
  int32_t own = gp_layout_find(&p->layout, param), holder = holder_of(p, own), place = 0;
  const gp_arena_copy *copy = copy_of(p, holder);
  if (p->grad_place[own] < 0) return 0;
  if (!has_own_list(copy)) return copy->clipped.sums[p->grad_place[own]];
  /* a list of some gradients holds the chosen ones only */
  for (int32_t i = 0; i < own; i++)
    place += holder_of(p, i) == holder && p->grad_place[i] >= 0 && p->chosen[i];
  return copy->clipped.sums[place];
}

/* ---- all of them --------------------------------------------------------------------------- */

/* One call, and a step of it for each pipeline that owns some of the parameters. */
typedef struct clip {
  gp_param *const *params;
  int count;
  double factor;
  double *sums; /* per parameter: of squares, by all ranks, then the limit; NULL: one process */
} clip;
typedef gp_status (*clip_step)(gp_pipeline *p, clip *c);

static gp_status find_squares(gp_pipeline *p, clip *c) {
  GP_TRY(gp_pipeline_drain(p)); /* in a stream, the workers have a job already */
  GP_TRY(make_lists(p, c->params, c->count));
  return gp_workers_run(p, clip_device, NULL);
}

static gp_status scale(gp_pipeline *p, clip *c) {
  return gp_workers_run(p, clip_device, &c->factor);
}

static gp_status finish(gp_pipeline *p, clip *c) {
  (void)c;
  return free_lists(p), GP_OK;
}

static gp_pipeline *owner_of(const clip *c, int k) {
  return (gp_pipeline *)gp_param_owner(c->params[k]);
}

/* Do a step for each owning pipeline, once: at its first parameter. */
static gp_status for_owners(clip *c, clip_step step) {
  for (int k = 0; k < c->count; k++) {
    gp_pipeline *p = owner_of(c, k);
    int before = 0;
    while (owner_of(c, before) != p) before++;
    if (p && before == k) GP_TRY(step(p, c));
  }
  return GP_OK;
}

/* The sum of squares of the k-th parameter, if this rank has its gradient. */
static double own_sum(const clip *c, int k) {
  if (gp_param_away(c->params[k]) >= 0) return 0;
  return owner_of(c, k) ? sum_of(owner_of(c, k), c->params[k]) : gp_alone_squares(c->params[k]);
}

static bool is_spread(const clip *c) {
  for (int k = 0; k < c->count; k++)
    if (owner_of(c, k) && owner_of(c, k)->spread) return true;
  return false;
}

/* Do all ranks clip as many parameters, and to the same norm? The limit follows the sums. */
static gp_status compare_calls(const gp_rank_pieces *all) {
  const size_t count = all->bytes[0] / sizeof(double);
  const double limit = ((const double *)all->data[0])[count - 1];
  for (int r = 1; r < all->count; r++) {
    const size_t other = all->bytes[r] / sizeof(double);
    const double *sums = (const double *)all->data[r];
    if (other != count)
      return gp_fail(GP_ESTATE,
                     "clip_grad_norm: rank 0 clips %zu parameters and rank %d clips %zu, expected "
                     "the same on all ranks",
                     count - 1, r, other - 1);
    if (sums[count - 1] != limit)
      return gp_fail(GP_ESTATE,
                     "clip_grad_norm: the norm may be %g on rank 0 and %g on rank %d, expected the "
                     "same on all ranks",
                     limit, sums[count - 1], r);
  }
  return GP_OK;
}

/* Collect the sums of all ranks: for each parameter, that of the rank which holds it. */
static gp_status share_sums(clip *c, double max) {
  gp_rank_pieces all;
  const size_t count = (size_t)c->count + 1;
  if (!is_spread(c)) return GP_OK;
  GP_TRY(gp_alloc_array(count, sizeof *c->sums, (void **)&c->sums));
  for (int k = 0; k < c->count; k++) c->sums[k] = own_sum(c, k);
  c->sums[c->count] = max;
  GP_TRY(gp_ranks_gather("clip_grad_norm", 0, c->sums, count * sizeof *c->sums, &all));
  gp_status status = compare_calls(&all);
  for (int k = 0; k < c->count && !status; k++) {
    const int32_t rank = gp_param_away(c->params[k]);
    if (rank >= 0) c->sums[k] = ((const double *)all.data[rank])[k];
  }
  gp_rank_pieces_free(&all);
  return status;
}

static gp_status clip_all(clip *c, double max, double *norm) {
  double sum = 0;
  GP_TRY(for_owners(c, find_squares));
  GP_TRY(share_sums(c, max));
  for (int k = 0; k < c->count; k++) sum += c->sums ? c->sums[k] : own_sum(c, k);
  *norm = sqrt(sum);
  c->factor = max / (*norm + 1e-6);
  if (!(*norm > max)) return GP_OK;
  for (int k = 0; k < c->count; k++)
    if (!owner_of(c, k)) gp_alone_scale(c->params[k], c->factor);
  return for_owners(c, scale);
}

gp_status gp_clip_grad_norm(gp_param *const *params, int count, double max, double *norm) {
  clip c = {.params = params, .count = count};
  gp_status status = clip_all(&c, max, norm);
  for_owners(&c, finish);
  gp_free(c.sums);
  return status;
}
