/* engine/optimizer.c - the update of all parameters, run by the workers that own them.
 *
 * Parameters that lie next to each other in a stage's arena are merged into one slice, so that an update
 * is one fused pass; moments are laid out in the same order.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/tensor.h"
#include "engine/block.h"
#include "engine/pipeline.h"
#include "graph/param.h"
#include "optim/optim.h"

enum { PIECE = 16384, ALIGNMENT = 64 }; /* elements that one thread updates at a time */

typedef struct member {
  gp_param *param;
  int32_t group, block;
  size_t offset; /* bytes in the moments of its block */
} member;

/* Moments of the members whose values lie in the same memory. */
typedef struct block {
  gp_home *home; /* NULL: the host's */
  size_t bytes;
  gp_tensor *moments[2]; /* laid out like the members; NULL where the kind has none */
} block;

/* One fused pass over neighbours of a stage. */
typedef struct pass {
  gp_optim_slice slice;
  int32_t group, stage;
} pass;

struct gp_optimizer {
  gp_optim_kind kind;
  member *members;   /* ordered by address of their values: the order of the arenas */
  gp_param **listed; /* as they were given; borrowed from the members */
  int32_t member_count, group_count;
  block *blocks;
  int32_t block_count;
  pass *passes; /* room for one per member; made anew for every step */
  int32_t pass_count;
  int64_t steps;
  int32_t
      users; /* the script, and a pipeline that makes the updates; both on the script's thread */
};

/* One update. */
typedef struct update {
  const gp_optimizer *optimizer;
  const gp_optim_hyper *hyper; /* per group */
  int64_t step;
} update;

/* ---- making one ---------------------------------------------------------------------------- */

/* Where the value lies now; a pipeline may have moved it since the last look. */
static const void *value_at(const gp_param *param, gp_home **home) {
  gp_tensor *value = NULL;
  *home = NULL;
  if (gp_param_value((gp_param *)param, &value)) return NULL;
  const void *data = gp_tensor_data(value);
  *home = gp_tensor_home(value);
  gp_tensor_free(value);
  return data;
}

static const void *value_of(const gp_param *param) {
  gp_home *home;
  return value_at(param, &home);
}

static gp_home *home_of(const gp_param *param) {
  gp_home *home;
  value_at(param, &home);
  return home;
}

/* The order of the arenas, so that neighbours can be merged into one pass. */
static int by_address(const void *a, const void *b) {
  uintptr_t x = (uintptr_t)value_of(((const member *)a)->param);
  uintptr_t y = (uintptr_t)value_of(((const member *)b)->param);
  return x < y ? -1 : x > y;
}

/* Members of all groups in one list, and the layout of their moments: as padded as the arenas. */
static gp_status collect(gp_optimizer *o, const gp_optim_group *groups, int group_count) {
  size_t count = 0;
  for (int g = 0; g < group_count; g++) count += (size_t)groups[g].count;
  GP_TRY(gp_alloc_array(count + 1, sizeof(member), (void **)&o->members));
  GP_TRY(gp_alloc_array(count + 1, sizeof(pass), (void **)&o->passes));
  GP_TRY(gp_alloc_array(count + 1, sizeof(gp_param *), (void **)&o->listed));
  for (int32_t g = 0; g < group_count; g++)
    for (int i = 0; i < groups[g].count; i++) {
      gp_param *param = gp_param_retain(groups[g].params[i]);
      o->listed[o->member_count] = param;
      o->members[o->member_count++] = (member){.param = param, .group = g};
    }
  o->group_count = group_count;
  return GP_OK;
}

/* The block of a memory; made when missing. */
static gp_status find_block(gp_optimizer *o, gp_home *home, int32_t *found) {
  size_t n = (size_t)o->block_count;
  for (*found = 0; *found < o->block_count; ++*found)
    if (o->blocks[*found].home == home) return GP_OK;
  GP_TRY(gp_resize_array(n, n + 1, sizeof(block), (void **)&o->blocks));
  o->blocks[o->block_count++].home = home;
  return GP_OK;
}

/* As padded as the arenas, and in their order. */
static gp_status lay_out(gp_optimizer *o) {
  qsort(o->members, (size_t)o->member_count, sizeof(member), by_address);
  for (int32_t i = 0; i < o->member_count; i++) {
    member *m = &o->members[i];
    size_t bytes;
    GP_TRY(gp_size_align(gp_meta_bytes(gp_param_meta(m->param)), ALIGNMENT, &bytes));
    GP_TRY(find_block(o, home_of(m->param), &m->block));
    m->offset = o->blocks[m->block].bytes;
    GP_TRY(gp_size_add(m->offset, bytes, &o->blocks[m->block].bytes));
  }
  return GP_OK;
}

/* Moments are there from the start: a state may be loaded before the first step. */
static gp_status make_moments(gp_optimizer *o) {
  GP_TRY(lay_out(o));
  for (int32_t b = 0; b < o->block_count; b++)
    for (int k = 0; k < gp_optim_moments(o->kind); k++)
      GP_TRY(gp_block_new(o->blocks[b].home, o->blocks[b].bytes, &o->blocks[b].moments[k]));
  return GP_OK;
}

static void free_blocks(block *blocks, int32_t count) {
  for (int32_t b = 0; b < count; b++) {
    gp_tensor_free(blocks[b].moments[0]);
    gp_tensor_free(blocks[b].moments[1]);
  }
  gp_free(blocks);
}

gp_status gp_optimizer_new(gp_optim_kind kind, const gp_optim_group *groups, int group_count,
                           gp_optimizer **optimizer) {
  gp_optimizer *o;
  GP_TRY(gp_alloc(sizeof *o, (void **)&o));
  o->kind = kind;
  o->users = 1;
  gp_status status = collect(o, groups, group_count);
  if (!status) status = make_moments(o);
  if (status) return gp_optimizer_free(o), status;
  *optimizer = o;
  return GP_OK;
}

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
  free_blocks(o->blocks, o->block_count);
  gp_free(o);
}

int64_t gp_optimizer_steps(const gp_optimizer *o) { return o->steps; }
void gp_optimizer_set_steps(gp_optimizer *o, int64_t steps) { o->steps = steps; }

/* The k-th moment of a member as a tensor; NULL where the kind keeps none. */
static gp_status view_moment(const gp_optimizer *o, const member *m, int k, gp_tensor **moment) {
  gp_tensor *memory = k < 2 ? o->blocks[m->block].moments[k] : NULL;
  *moment = NULL;
  return memory ? gp_block_view(memory, m->offset, m->param, moment) : GP_OK;
}

void gp_optimizer_moment(const gp_optimizer *o, const gp_param *param, int k, gp_tensor **moment) {
  *moment = NULL;
  for (int32_t i = 0; i < o->member_count; i++)
    if (o->members[i].param == param) view_moment(o, &o->members[i], k, moment);
}

/* ---- moments follow the values ----------------------------------------------------------------- */

static bool are_at_home(const gp_optimizer *o) {
  for (int32_t i = 0; i < o->member_count; i++)
    if (o->blocks[o->members[i].block].home != home_of(o->members[i].param)) return false;
  return true;
}

/* From where they were, of the same parameter. */
static gp_status bring_moments(const gp_optimizer *old, const gp_optimizer *o) {
  for (int32_t i = 0; i < old->member_count; i++)
    for (int k = 0; k < gp_optim_moments(o->kind); k++) {
      gp_tensor *from = NULL, *to = NULL;
      gp_status status = view_moment(old, &old->members[i], k, &from);
      if (!status) gp_optimizer_moment(o, old->members[i].param, k, &to);
      if (!status && from && to) status = gp_tensor_copy(to, from);
      gp_tensor_free(from);
      gp_tensor_free(to);
      GP_TRY(status);
    }
  return GP_OK;
}

/* A pipeline that was made after the optimizer may have taken the parameters to GPUs. */
static gp_status follow_values(gp_optimizer *o) {
  gp_optimizer old = *o;
  if (are_at_home(o)) return GP_OK;
  size_t bytes = (size_t)o->member_count * sizeof(member);
  GP_TRY(gp_alloc(bytes + 1, (void **)&old.members));
  memcpy(old.members, o->members, bytes);
  o->blocks = NULL;
  o->block_count = 0;
  gp_status status = make_moments(o);
  if (!status) status = bring_moments(&old, o);
  if (status) { /* as it was */
    free_blocks(o->blocks, o->block_count);
    memcpy(o->members, old.members, bytes);
    o->blocks = old.blocks;
    o->block_count = old.block_count;
  } else {
    free_blocks(old.blocks, old.block_count);
  }
  gp_free(old.members);
  return status;
}

/* ---- passes -------------------------------------------------------------------------------- */

/* Address of a member's moment; NULL where the kind keeps none. */
static void *moment_of(const gp_optimizer *o, const member *m, int k) {
  gp_tensor *memory = o->blocks[m->block].moments[k];
  return memory ? (char *)gp_tensor_data(memory) + m->offset : NULL;
}

/* One parameter as the update kernel sees it. */
static gp_optim_slice slice_of(const gp_optimizer *o, const member *m, const gp_tensor *grad) {
  const gp_meta *meta = gp_param_meta(m->param);
  return (gp_optim_slice){.dtype = meta->dtype,
                          .n = gp_meta_numel(meta),
                          .value = (void *)value_of(m->param),
                          .grad = gp_tensor_data(grad),
                          .moment1 = moment_of(o, m, 0),
                          .moment2 = moment_of(o, m, 1)};
}

/* Where the next parameter of an arena begins. */
static const char *after(const void *start, const gp_optim_slice *slice) {
  size_t bytes = (size_t)slice->n * gp_dtype_size(slice->dtype);
  return (const char *)start + (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Append b to a when it follows a everywhere; the padding in between is zero and stays zero. */
static bool merge(pass *a, const pass *b) {
  const gp_optim_slice *x = &a->slice, *y = &b->slice;
  if (a->group != b->group || a->stage != b->stage || x->dtype != y->dtype) return false;
  if (after(x->value, x) != y->value || after(x->grad, x) != y->grad) return false;
  size_t step = (size_t)((const char *)y->value - (const char *)x->value);
  a->slice.n = (int64_t)(step / gp_dtype_size(x->dtype)) + y->n;
  return true;
}

/* Gradients come and go with plans and freezing, so this is settled at every step; it is cheap. */
static void make_passes(gp_optimizer *o) {
  o->pass_count = 0;
  for (int32_t i = 0; i < o->member_count; i++) {
    gp_tensor *grad;
    gp_param_grad(o->members[i].param, &grad);
    if (!grad) continue;
    pass next = {.slice = slice_of(o, &o->members[i], grad),
                 .group = o->members[i].group,
                 .stage = gp_param_stage(o->members[i].param)};
    gp_tensor_free(grad);
    if (!o->pass_count || !merge(&o->passes[o->pass_count - 1], &next))
      o->passes[o->pass_count++] = next;
  }
}

/* ---- updating ------------------------------------------------------------------------------ */

typedef struct piece_context {
  const update *u;
  const pass *pass;
} piece_context;

/* Elementwise: the bits do not depend on where a slice is cut. */
static gp_status update_piece(void *context, int64_t index, int thread) {
  const piece_context *c = context;
  int64_t first = index * PIECE, last = first + PIECE;
  (void)thread;
  if (last > c->pass->slice.n) last = c->pass->slice.n;
  return gp_optim_update(&c->u->hyper[c->pass->group], c->u->step, &c->pass->slice, first, last);
}

static gp_status update_on_gpu(const gp_lane *lane, const update *u, const pass *part) {
  const gp_optim_slice *s = &part->slice;
  gp_gpu_slice slice = {s->dtype, s->n, s->value, s->grad, s->moment1, s->moment2};
  return lane->api->update(lane->gpu, &u->hyper[part->group], u->step, &slice);
}

/* On a worker's own threads, or enqueued on its GPU. */
static gp_status update_stage(gp_worker *worker, const update *u, int32_t stage) {
  for (int32_t i = 0; i < u->optimizer->pass_count; i++) {
    piece_context c = {.u = u, .pass = &u->optimizer->passes[i]};
    if (c.pass->stage != stage) continue;
    if (gp_lane_is_gpu(&worker->lane)) {
      GP_TRY(update_on_gpu(&worker->lane, u, c.pass));
      continue;
    }
    GP_TRY(gp_team_run(worker->lane.team, (c.pass->slice.n + PIECE - 1) / PIECE, update_piece, &c));
  }
  return GP_OK;
}

/* On the worker of each device: the stages that it holds, or holds first. */
static gp_status update_device(gp_worker *worker, void *context) {
  const gp_pipeline *p = worker->pipeline;
  for (int32_t s = 0; s < p->stage_count; s++)
    if (p->placement[s * p->copy_count] == worker->device) GP_TRY(update_stage(worker, context, s));
  return gp_lane_sync(&worker->lane);
}

/* The one live pipeline that owns every parameter; its workers do the updates. */
static gp_status find_owner(const gp_optimizer *o, gp_pipeline **owner) {
  *owner = o->member_count ? (gp_pipeline *)gp_param_owner(o->members[0].param) : NULL;
  for (int32_t i = 0; i < o->member_count; i++) {
    const gp_pipeline *other = gp_param_owner(o->members[i].param);
    if (!other)
      return gp_fail(GP_ESTATE,
                     "optimizer: the parameters belong to no live pipeline, so they have "
                     "no gradients");
    if (other != *owner)
      return gp_fail(GP_ESTATE, "optimizer: its parameters belong to two pipelines, expected one "
                                "optimizer for each");
  }
  return GP_OK;
}

/* Every group before any parameter changes: an update of no elements checks its hyper-parameters. */
static gp_status check_hyper(const gp_optimizer *o, const gp_optim_hyper *hyper) {
  float nothing = 0;
  gp_optim_slice empty = {.dtype = GP_F32,
                          .value = &nothing,
                          .grad = &nothing,
                          .moment1 = &nothing,
                          .moment2 = &nothing};
  for (int32_t g = 0; g < o->group_count; g++)
    GP_TRY(gp_optim_update(&hyper[g], o->steps + 1, &empty, 0, 0));
  return GP_OK;
}

gp_status gp_optimizer_step(gp_optimizer *o, const gp_optim_hyper *hyper) {
  update u = {.optimizer = o, .hyper = hyper, .step = o->steps + 1};
  gp_pipeline *p;
  GP_TRY(find_owner(o, &p));
  GP_TRY(check_hyper(o, hyper));
  if (!p) return GP_OK; /* nothing to update */
  if (p->optimizer)
    return gp_fail(GP_ESTATE,
                   "optimizer: the update is an action of the pipeline's schedule (pipe:use): "
                   "pipe:step() has made it already");
  if (p->overflow) return GP_OK; /* skipped: see engine/scaling.h */
  GP_TRY(gp_optimizer_begin(o));
  GP_TRY(gp_workers_run(p, update_device, &u));
  o->steps++;
  return GP_OK;
}

/* ---- as an action of a schedule -------------------------------------------------------------- */

gp_status gp_optimizer_begin(gp_optimizer *o) {
  GP_TRY(follow_values(o));
  make_passes(o);
  return GP_OK;
}

int32_t gp_optimizer_groups(const gp_optimizer *o) { return o->group_count; }

gp_status gp_optimizer_update(gp_optimizer *o, gp_worker *worker, int32_t stage,
                              const gp_optim_hyper *hyper, int64_t step) {
  update u = {.optimizer = o, .hyper = hyper, .step = step};
  return update_stage(worker, &u, stage);
}

gp_status gp_optimizer_clip(gp_optimizer *o, double max) {
  double norm;
  return gp_clip_grad_norm(o->listed, o->member_count, max, &norm);
}

bool gp_optimizer_uses(const gp_optimizer *o, const gp_pipeline *p) {
  for (int32_t i = 0; i < o->member_count; i++)
    if (gp_param_owner(o->members[i].param) != p) return false;
  return true;
}
