/* engine/optimizer/optimizer.c - the update of all parameters, run by the workers that own them.
 *
 * Parameters that lie next to each other in a stage's arena are merged into one slice, so that an
 * update is one fused pass; moments are laid out in the same order.
 */
#include "base/memory.h"
#include "base/tensor.h"
#include "engine/memory/halves.h"
#include "engine/optimizer/optimizer.h"
#include "engine/optimizer/skips.h"
#include "engine/state/pipeline.h"
#include "engine/watch/jobs.h"
#include "engine/worker/worker.h"
#include "graph/param.h"
#include "ranks/ranks.h"

/* One update. */
typedef struct update {
  const gp_optimizer *optimizer;
  const gp_optim_hyper *hyper; /* per group */
  int64_t step;
  bool looks;      /* check gradients first: all devices of a pipeline update, or none does */
  atomic_bool bad; /* they are not finite, or a device failed to look */
  _Atomic uint32_t arrived; /* devices that have looked */
} update;

/* ---- making one ---------------------------------------------------------------------------- */

/* Put the members of all groups into one list. */
static gp_status collect(gp_optimizer *o, const gp_optim_group *groups, int group_count) {
  size_t count = 0;
  for (int g = 0; g < group_count; g++) count += (size_t)groups[g].count;
  GP_TRY(gp_alloc_array(count + 1, sizeof(gp_optimizer_member), (void **)&o->members));
  GP_TRY(gp_alloc_array(count + 1, sizeof(gp_update_pass), (void **)&o->passes));
  GP_TRY(gp_alloc_array(count + 1, sizeof(gp_param *), (void **)&o->listed));
  for (int32_t g = 0; g < group_count; g++)
    for (int i = 0; i < groups[g].count; i++) {
      gp_param *param = gp_param_retain(groups[g].params[i]);
      o->listed[o->member_count] = param;
      o->members[o->member_count++] =
          (gp_optimizer_member){.param = param, .group = g, .holder = -1};
    }
  o->group_count = group_count;
  return GP_OK;
}

gp_status gp_optimizer_new(int moments, const gp_optim_group *groups, int group_count,
                           gp_optimizer **optimizer) {
  gp_optimizer *o;
  GP_TRY(gp_alloc(sizeof *o, (void **)&o));
  o->moments = moments;
  o->users = 1;
  gp_status status = collect(o, groups, group_count);
  if (!status) status = gp_moments_make(o);
  if (status) return gp_optimizer_free(o), status;
  *optimizer = o;
  return GP_OK;
}

/* References are counted: a script may drop an optimizer that a pipeline still uses. */
gp_optimizer *gp_optimizer_retain(gp_optimizer *o) {
  if (o) o->users++;
  return o;
}

void gp_optimizer_free(gp_optimizer *o) {
  if (!o || --o->users) return;
  for (int32_t i = 0; i < o->member_count; i++) gp_param_free(o->members[i].param);
  gp_free(o->members);
  gp_free(o->listed);
  gp_free(o->passes);
  gp_moments_free(o);
  gp_free(o);
}

int64_t gp_optimizer_steps(const gp_optimizer *o) { return o->steps; }

/* A state has been loaded: its moments lie where the values do now. */
void gp_optimizer_set_steps(gp_optimizer *o, int64_t steps) {
  o->steps = steps;
  for (int32_t i = 0; i < o->member_count; i++) o->members[i].holder = -1;
}

/* ---- passes -------------------------------------------------------------------------------- */

/* One parameter of a stage as the update kernel sees it. */
static gp_optim_slice slice_of(const gp_optimizer *o, const gp_optimizer_member *m,
                               const gp_arena *arena, const gp_tensor *grad) {
  const gp_meta *meta = gp_param_meta(m->param);
  void *value = (void *)gp_optimizer_value(m->param);
  gp_optim_slice slice = {.dtype = meta->dtype,
                          .n = gp_meta_numel(meta),
                          .value = value,
                          .half = meta->dtype == GP_F32 ? gp_halves_of(arena, value) : NULL,
                          .half_dtype = arena->half,
                          .grad = gp_tensor_data(grad)};
  gp_moments_point(o, m, &slice);
  return slice;
}

/* The address at which the next parameter of an arena begins. */
static const char *after(const void *start, const gp_optim_slice *slice) {
  size_t bytes = (size_t)slice->n * gp_dtype_size(slice->dtype);
  return (const char *)start +
         (bytes + GP_MOMENT_ALIGNMENT - 1) / GP_MOMENT_ALIGNMENT * GP_MOMENT_ALIGNMENT;
}

/* Does y lie right after x? Both are NULL if this memory (a moment) is not kept. */
static bool follows(const void *x, const void *y, const gp_optim_slice *slice) {
  return x && y ? after(x, slice) == y : x == y;
}

/* Append b to a if it follows a in every memory; false if it does not. The padding in between is
 * zero and stays zero. */
static bool merge(gp_update_pass *a, const gp_update_pass *b) {
  const gp_optim_slice *x = &a->slice, *y = &b->slice;
  if (a->group != b->group || a->holder != b->holder || x->dtype != y->dtype) return false;
  /* halves follow each other if values do */
  if (!follows(x->value, y->value, x) || !follows(x->grad, y->grad, x)) return false;
  /* moments may not: they keep the order that values had when they were made, so a parameter that
   * was frozen since has moments between those of its neighbours */
  for (int k = 0; k < GP_OPTIM_MOMENTS; k++)
    if (!follows(x->moments[k], y->moments[k], x)) return false;
  size_t step = (size_t)((const char *)y->value - (const char *)x->value);
  a->slice.n = (int64_t)(step / gp_dtype_size(x->dtype)) + y->n;
  return true;
}

/* Merge the parameters that have gradients into passes. Gradients come and go with plans and
 * freezing, so this is done before every step; it is cheap. */
static void make_passes(gp_optimizer *o) {
  o->pass_count = 0;
  for (int32_t i = 0; i < o->member_count; i++) {
    gp_tensor *grad;
    gp_param_grad(o->members[i].param, &grad);
    if (!grad) continue;
    const gp_param *param = o->members[i].param;
    const gp_pipeline *owner = gp_param_owner(param);
    const int32_t stage = gp_param_stage(param);
    const int32_t copy = owner->layout.at[gp_layout_find(&owner->layout, param)].owner;
    gp_update_pass next = {.slice = slice_of(o, &o->members[i], &owner->arenas[stage], grad),
                           .group = o->members[i].group,
                           .holder = stage * owner->copy_count + copy};
    gp_tensor_free(grad);
    if (!o->pass_count || !merge(&o->passes[o->pass_count - 1], &next))
      o->passes[o->pass_count++] = next;
  }
}

/* ---- updating ------------------------------------------------------------------------------ */

static gp_status update_slices(const gp_lane *lane, const update *u, int32_t group,
                               const gp_optim_slice *slices, int count) {
  gp_lane_update all = {.hyper = &u->hyper[group],
                        .step = u->step,
                        .slices = slices,
                        .count = count,
                        .piece = gp_optim_update};
  return lane->sums->update(lane, &all);
}

/* Run the passes of a copy of a stage that have one group's hyper-parameters, several in a
 * launch. */
static gp_status update_group(const gp_lane *lane, const update *u, int32_t holder, int32_t group) {
  enum { MOST = 32 };
  gp_optim_slice slices[MOST];
  int count = 0;
  for (int32_t i = 0; i < u->optimizer->pass_count; i++) {
    const gp_update_pass *next = &u->optimizer->passes[i];
    if (next->holder != holder || next->group != group) continue;
    slices[count++] = next->slice;
    if (count < MOST) continue;
    GP_TRY(update_slices(lane, u, group, slices, count));
    count = 0;
  }
  return count ? update_slices(lane, u, group, slices, count) : GP_OK;
}

/* Update what a copy of a stage owns, on the worker's own threads or in its queue. Only stages with
 * one copy have halves. */
static gp_status update_holder(gp_worker *worker, const update *u, int32_t holder) {
  const gp_pipeline *p = worker->pipeline;
  gp_arena *arena = &p->arenas[holder / p->copy_count];
  if (p->copy_count > 1) {
    for (int32_t g = 0; g < u->optimizer->group_count; g++)
      GP_TRY(update_group(&worker->lane, u, holder, g));
    return GP_OK;
  }
  bool halved = arena->halved;
  gp_halves_spoil(arena); /* during the update the halves are stale */
  for (int32_t g = 0; g < u->optimizer->group_count; g++)
    GP_TRY(update_group(&worker->lane, u, holder, g));
  arena->halved = halved;
  return GP_OK;
}

/* Does the device hold this copy of a stage? */
static bool owns(const gp_worker *worker, int32_t holder) {
  return worker->pipeline->placement[holder] == worker->device;
}

static int32_t count_holders(const gp_pipeline *p) { return p->stage_count * p->copy_count; }

/* Check the gradients of a device's stages, and wait until every device has done so. All gradients
 * are checked, even if the optimizer has only some of the parameters: they belong to one step. */
static gp_status look(gp_worker *worker, update *u) {
  gp_pipeline *p = worker->pipeline;
  const uint32_t devices = (uint32_t)gp_devices_here(p);
  gp_status status = GP_OK;
  for (int32_t h = 0; h < count_holders(p); h++) {
    gp_gradients *list = &p->arenas[h / p->copy_count].copies[h % p->copy_count].gradients;
    if (!owns(worker, h) || status || !list->count) continue;
    status = gp_gradients_look(list);
    if (!status && !gp_gradients_are_finite(list)) atomic_store(&u->bad, true);
  }
  if (status) atomic_store(&u->bad, true);
  if (atomic_fetch_add(&u->arrived, 1) + 1 == devices)
    for (int32_t d = 0; d < p->device_count; d++) gp_worker_ring(&p->workers[d]);
  gp_worker_await(worker, &u->arrived, devices);
  return status;
}

/* Runs on the worker of each device: either all of them update their stages, or none does. */
static gp_status update_device(gp_worker *worker, void *context) {
  const gp_pipeline *p = worker->pipeline;
  update *u = context;
  if (u->looks) GP_TRY(look(worker, u));
  if (atomic_load(&u->bad)) return GP_OK;
  for (int32_t h = 0; h < count_holders(p); h++)
    if (owns(worker, h)) GP_TRY(update_holder(worker, u, h));
  return gp_lane_sync(&worker->lane);
}

static gp_status look_device(gp_worker *worker, void *context) { return look(worker, context); }

/* What a rank says before any of them updates. */
typedef struct intent {
  gp_update_settings settings;
  int64_t bad; /* its gradients are not finite */
} intent;

static gp_status compare_intents(update *u, const gp_rank_pieces *all) {
  const intent *first = (const intent *)all->data[0];
  for (int r = 0; r < all->count; r++) {
    const intent *one = (const intent *)all->data[r];
    if (all->bytes[r] != sizeof *one || all->bytes[0] != sizeof *one)
      return gp_fail(GP_ESTATE, "opt:step: rank %d runs another version than rank 0", r);
    GP_TRY(gp_update_settings_compare("opt:step", &first->settings, &one->settings, r));
    if (one->bad) atomic_store(&u->bad, true);
  }
  return GP_OK;
}

/* Ask all ranks whether their gradients are finite, and whether they mean the same update. */
static gp_status ask_ranks(const gp_pipeline *p, update *u) {
  const intent own = {gp_optimizer_settings(u->optimizer, p, u->hyper), atomic_load(&u->bad)};
  gp_rank_pieces all;
  GP_TRY(gp_ranks_gather("opt:step", 0, &own, sizeof own, &all));
  gp_status status = compare_intents(u, &all);
  gp_rank_pieces_free(&all);
  return status;
}

/* Update on the devices of this rank, once all ranks have looked at their gradients. */
static gp_status update_spread(gp_pipeline *p, update *u) {
  gp_status status = u->looks ? gp_workers_run(p, look_device, u) : GP_OK;
  GP_TRY(gp_ranks_agree("opt:step", status, gp_error_text()));
  GP_TRY(ask_ranks(p, u));
  if (atomic_load(&u->bad)) return GP_OK;
  u->looks = false;
  return gp_workers_run(p, update_device, u);
}

/* Find the one live pipeline that owns every parameter; its workers do the updates. NULL: no
 * pipeline owns any of them. */
static gp_status find_owner(const gp_optimizer *o, gp_pipeline **owner) {
  *owner = o->member_count ? (gp_pipeline *)gp_param_owner(o->members[0].param) : NULL;
  for (int32_t i = 0; i < o->member_count; i++) {
    const gp_pipeline *other = gp_param_owner(o->members[i].param);
    if (other == *owner) continue;
    return gp_fail(GP_ESTATE,
                   "optimizer: its parameters belong to %s, expected one optimizer for each",
                   other && *owner ? "two pipelines" : "a pipeline and to none");
  }
  return GP_OK;
}

/* Check the hyper-parameters of every group before any parameter changes: an update of no elements
 * checks them. */
static gp_status check_hyper(const gp_optimizer *o, const gp_optim_hyper *hyper) {
  const gp_optim_slice empty = {.dtype = GP_F32};
  for (int32_t g = 0; g < o->group_count; g++) {
    GP_TRY(gp_optim_update(&hyper[g], o->steps + 1, &empty, 0, 0));
    if (gp_optim_moments(&hyper[g]) > o->moments)
      return gp_fail(GP_EINVAL,
                     "optimizer: group %d reads %d moments, expected at most the %d kept", g + 1,
                     gp_optim_moments(&hyper[g]), o->moments);
  }
  return GP_OK;
}

gp_status gp_optimizer_step(gp_optimizer *o, const gp_optim_hyper *hyper, bool *skipped) {
  update u = {.optimizer = o, .hyper = hyper, .step = o->steps + 1};
  gp_pipeline *p;
  *skipped = false;
  GP_TRY(find_owner(o, &p));
  GP_TRY(check_hyper(o, hyper));
  if (!p && o->member_count) return gp_optimizer_step_alone(o, hyper, skipped);
  if (!p) return GP_OK; /* nothing to update */
  if (p->optimizer)
    return gp_fail(GP_ESTATE,
                   "optimizer: the update is an action of the pipeline's schedule (pipe:use): "
                   "pipe:step() has made it already");
  if (p->overflow) return GP_OK; /* skipped, as the step has reported: engine/update/scaling.h */
  GP_TRY(gp_optimizer_begin(o));
  const bool looks =
      p->check != GP_FINITE_IGNORE && p->scaling.scale == 0; /* or the step has checked them */
  u.looks = looks;
  atomic_store(&p->watch.given_up, 0); /* an earlier run may have set it; here workers wait */
  GP_TRY(p->spread ? update_spread(p, &u) : gp_workers_run(p, update_device, &u));
  *skipped = atomic_load(&u.bad);
  if (looks) GP_TRY(gp_skips_count(p, !*skipped));
  if (*skipped) return GP_OK;
  p->updates++;
  o->steps++;
  return GP_OK;
}

/* ---- as an action of a schedule -------------------------------------------------------------- */

gp_status gp_optimizer_begin(gp_optimizer *o) {
  GP_TRY(gp_moments_follow(o));
  make_passes(o);
  return GP_OK;
}

int32_t gp_optimizer_groups(const gp_optimizer *o) { return o->group_count; }

gp_status gp_optimizer_update(gp_optimizer *o, gp_worker *worker, int32_t holder,
                              const gp_optim_hyper *hyper, int64_t step) {
  update u = {.optimizer = o, .hyper = hyper, .step = step};
  return update_holder(worker, &u, holder);
}

int32_t gp_optimizer_list(const gp_optimizer *o, const gp_pipeline *p, int32_t *params) {
  for (int32_t i = 0; i < o->member_count; i++)
    params[i] = gp_layout_find(&p->layout, o->listed[i]);
  return o->member_count;
}

bool gp_optimizer_uses(const gp_optimizer *o, const gp_pipeline *p) {
  for (int32_t i = 0; i < o->member_count; i++)
    if (gp_param_owner(o->members[i].param) != p) return false;
  return true;
}
