/* engine/update/sums.c - see sums.h.
 *
 * All sums are elementwise, so it does not matter how many elements one call adds: neighbouring
 * parameters of one dtype are added at once, with the zeros between them. */
#include "engine/update/sums.h"

#include "base/tensor.h"
#include "engine/bind/step_links.h"
#include "graph/param.h"

/* ---- runs of gradients ----------------------------------------------------------------------- */

/* Neighbouring gradients of one dtype in an area of gradients. */
typedef struct span {
  gp_dtype dtype;
  size_t begin, end; /* bytes; nothing if they are equal */
} span;

static gp_status add_span(const gp_lane *lane, const span *s, char *to, const char *from) {
  if (s->begin == s->end) return GP_OK;
  const int64_t n = (int64_t)((s->end - s->begin) / gp_dtype_size(s->dtype));
  return gp_lane_add(lane, s->dtype, n, to + s->begin, from + s->begin);
}

/* Which gradients of a stage are added. */
typedef struct choice {
  int32_t stage, copy; /* those that a copy owns; -1: all */
  size_t begin, end;   /* that lie in this part of the stage's area; end 0: anywhere */
  const gp_task *task; /* but for those in the early uses of it that are published; NULL: all */
} choice;

static bool is_within(const gp_plan *plan, const gp_edge_use *use, size_t offset) {
  const gp_step_edge *edge = gp_plan_step_edge(plan, use->edge);
  return offset >= edge->offset && offset < edge->offset + edge->bytes;
}

static bool was_early(const gp_worker *worker, const gp_task *task, size_t offset) {
  const int32_t first = gp_task_first_early(task);
  for (int32_t u = first; u < first + worker->early; u++)
    if (is_within(worker->pipeline->run.plan, &task->uses[u], offset)) return true;
  return false;
}

static bool is_chosen(const gp_worker *worker, const choice *c, const gp_layout_param *at) {
  if (c->end && (at->offset < c->begin || at->offset >= c->end)) return false;
  return !c->task || !worker->early || !was_early(worker, c->task, at->offset);
}

/* Add what the span has gathered, and begin another one. */
static gp_status flush(const gp_worker *worker, span *s, gp_dtype dtype, char *to,
                       const char *from) {
  const gp_status status = add_span(&worker->lane, s, to, from);
  *s = (span){.dtype = dtype};
  return status;
}

/* to += from for these gradients. The addresses are those of the stage's whole area. Gradients of
 * one copy lie in order of declaration, and those of the first copy come last. */
static gp_status add_gradients(const gp_worker *worker, const choice *chosen, char *to,
                               const char *from) {
  const gp_pipeline *p = worker->pipeline;
  const int32_t first = chosen->copy < 0 ? 0 : chosen->copy;
  const int32_t last = chosen->copy < 0 ? p->copy_count - 1 : chosen->copy;
  span s = {.dtype = GP_F32};
  for (int32_t c = last; c >= first; c--)
    for (int32_t i = 0; i < p->param_count; i++) {
      const gp_layout_param *at = &p->layout.at[i];
      if (at->stage != chosen->stage || at->owner != c || at->region != GP_REGION_TRAINABLE)
        continue;
      const gp_meta *meta = gp_param_meta(p->params[i]);
      const bool is_in = is_chosen(worker, chosen, at);
      if (!is_in || meta->dtype != s.dtype) GP_TRY(flush(worker, &s, meta->dtype, to, from));
      if (!is_in) continue;
      if (s.begin == s.end) s.begin = at->offset;
      s.end = at->offset + gp_meta_bytes(meta);
    }
  return add_span(&worker->lane, &s, to, from);
}

/* to += from for extra accumulator x, at two addresses of it. */
static gp_status add_extra(const gp_worker *worker, int32_t x, void *to, const void *from) {
  const gp_meta *meta = gp_param_meta(worker->pipeline->params[worker->pipeline->extras[x].param]);
  return gp_lane_add(&worker->lane, meta->dtype, gp_meta_numel(meta), to, from);
}

/* ---- the tree over copies -------------------------------------------------------------------- */

/* What is summed over the copies of a stage: gradients that one of them owns, or an extra
 * accumulator. */
typedef struct tree {
  const gp_worker *worker;
  const gp_plan *plan;
  int32_t stage, copy; /* copy: the owner */
  int32_t extra;       /* its number; -1: gradients */
  int32_t count, own;  /* copies that have micro-batches; the owner's place among them, or -1 */
} tree;

/* The k-th copy that has micro-batches. */
static int32_t active_copy(const tree *t, int32_t k) {
  const bool *active = &t->plan->active[gp_plan_holder(t->plan, t->stage, 0)];
  for (int32_t copy = 0;; copy++)
    if (active[copy] && k-- == 0) return copy;
}

static void count_active(tree *t) {
  const bool *active = &t->plan->active[gp_plan_holder(t->plan, t->stage, 0)];
  t->own = -1;
  for (int32_t copy = 0; copy < t->plan->copy_count; copy++) {
    if (active[copy] && copy == t->copy) t->own = t->count;
    t->count += active[copy];
  }
}

static char *own_address(const tree *t) {
  const gp_pipeline *p = t->worker->pipeline;
  const gp_arena_copy *own = &p->arenas[t->stage].copies[t->copy];
  return t->extra < 0 ? own->grads : own->extras + p->extras[t->extra].offset;
}

/* Where the owner's device finds the part of the k-th of those copies, as an address like
 * own_address. */
static char *address_of(const tree *t, int32_t k) {
  const gp_pipeline *p = t->worker->pipeline;
  if (k == t->own) return own_address(t);
  const gp_step_value value = t->extra < 0 ? GP_STEP_GRADS : GP_STEP_EXTRAS;
  const gp_step_between between = {t->stage, active_copy(t, k), t->copy};
  char *sent = gp_step_copy_address(p->run.binding, value, &between);
  if (t->extra >= 0) return sent + p->extras[t->extra].offset;
  /* only what the owner owns is sent */
  return (char *)((uintptr_t)sent - p->layout.slices[t->stage * p->copy_count + t->copy].begin);
}

static gp_status add_parts(const tree *t, char *to, const char *from) {
  if (t->extra >= 0) return add_extra(t->worker, t->extra, to, from);
  const choice chosen = {.stage = t->stage, .copy = t->copy};
  return add_gradients(t->worker, &chosen, to, from);
}

/* Where the sum of parts begin .. end - 1 lies: with the owner if its part is among them. */
static char *block_address(const tree *t, int32_t begin, int32_t end) {
  return address_of(t, t->own >= begin && t->own < end ? t->own : begin);
}

/* Add two neighbouring blocks of the tree. A sum of two does not depend on their order, so that it
 * may stay where the owner needs it. */
static gp_status join(const tree *t, int32_t begin, int32_t middle, int32_t end) {
  char *left = block_address(t, begin, middle), *right = block_address(t, middle, end);
  const bool into_right = t->own >= middle && t->own < end;
  return into_right ? add_parts(t, right, left) : add_parts(t, left, right);
}

/* Bring a sum of other copies to an owner that has no micro-batches. */
static gp_status take(const tree *t) {
  const gp_pipeline *p = t->worker->pipeline;
  const gp_layout_slice *slice = &p->layout.slices[t->stage * p->copy_count + t->copy];
  const size_t begin = t->extra < 0 ? slice->begin : 0;
  const size_t bytes = t->extra < 0
                           ? slice->grads
                           : gp_meta_bytes(gp_param_meta(p->params[p->extras[t->extra].param]));
  if (!bytes) return GP_OK;
  return gp_lane_copy(&t->worker->lane, own_address(t) + begin, address_of(t, 0) + begin, bytes);
}

/* The parent of two aligned blocks of 2^k copies is left + right. The last block may be shorter. */
static gp_status climb(tree *t) {
  count_active(t);
  for (int32_t width = 1; width < t->count; width *= 2)
    for (int32_t at = 0; at + width < t->count; at += 2 * width) {
      const int32_t end = at + 2 * width < t->count ? at + 2 * width : t->count;
      GP_TRY(join(t, at, at + width, end));
    }
  return t->own < 0 && t->count ? take(t) : GP_OK;
}

/* Later plans may have asked for more accumulators, which this plan's tasks have not written. */
gp_status gp_sum_copies(const gp_worker *worker, const gp_plan *plan, int32_t stage, int32_t copy) {
  const gp_pipeline *p = worker->pipeline;
  tree t = {.worker = worker, .plan = plan, .stage = stage, .copy = copy, .extra = -1};
  if (p->layout.slices[stage * p->copy_count + copy].grads) GP_TRY(climb(&t));
  for (int32_t x = 0; x < plan->extra_count; x++) {
    if (p->extras[x].stage != stage || p->layout.at[p->extras[x].param].owner != copy) continue;
    t.extra = x;
    t.count = 0;
    GP_TRY(climb(&t));
  }
  return GP_OK;
}

gp_status gp_sum_owned(const gp_worker *worker, int32_t stage, int32_t copy, const char *from) {
  char *to = worker->pipeline->arenas[stage].copies[copy].grads;
  const choice chosen = {.stage = stage, .copy = copy};
  return add_gradients(worker, &chosen, to, from);
}

/* ---- layers ---------------------------------------------------------------------------------- */

/* Add extra accumulator x to the main one, on the device that owns the parameter. */
static gp_status add_layer(const gp_worker *worker, int32_t x) {
  const gp_pipeline *p = worker->pipeline;
  const gp_extra_slot *e = &p->extras[x];
  const int32_t copy = p->layout.at[e->param].owner;
  const bool here = p->placement[e->stage * p->copy_count + copy] == worker->device;
  const char *from = here ? p->arenas[e->stage].copies[copy].extras + e->offset
                          : gp_step_address(p->run.binding, GP_STEP_TIED, x, worker->device);
  return add_extra(worker, x, gp_tensor_data(p->grads[e->param]), from);
}

/* This is right also when gradients accumulate: every backward pass begins the extra accumulators
 * anew. */
gp_status gp_sum_tied(const gp_worker *worker, const gp_plan *plan, int32_t stage, int32_t copy) {
  const gp_pipeline *p = worker->pipeline;
  for (int32_t layer = 0; layer <= p->layer_count && plan->extra_count; layer++)
    for (int32_t x = 0; x < plan->extra_count; x++) {
      const gp_extra_slot *e = &p->extras[x];
      if (e->layer == layer && p->param_stage[e->param] == stage &&
          p->layout.at[e->param].owner == copy)
        GP_TRY(add_layer(worker, x));
    }
  return GP_OK;
}

/* ---- micro-batches --------------------------------------------------------------------------- */

gp_partial gp_partial_of(const gp_binding *b, const gp_task *task, int32_t partial) {
  const gp_plan *plan = b->plan;
  const gp_arena_copy *own = &b->pipeline->arenas[task->stage].copies[task->copy];
  if (!partial) return (gp_partial){own->grads, own->extras};
  char *first = b->partials[gp_plan_holder(plan, task->stage, task->copy)];
  char *grads = first + (size_t)(partial - 1) * gp_plan_partial_bytes(plan, task->stage);
  return (gp_partial){grads, grads + plan->asked[task->stage].grads};
}

/* All partial sums that a task completes, each to the one before it, for these gradients. */
static gp_status merge(const gp_worker *worker, const gp_task *task, const choice *chosen) {
  const gp_binding *b = worker->pipeline->run.binding;
  for (int32_t k = 0; k < task->merges; k++)
    GP_TRY(add_gradients(worker, chosen, gp_partial_of(b, task, task->partial - k - 1).grads,
                         gp_partial_of(b, task, task->partial - k).grads));
  return GP_OK;
}

gp_status gp_sum_partials(const gp_worker *worker, const gp_plan *plan, const gp_task *task) {
  const gp_pipeline *p = worker->pipeline;
  const choice chosen = {.stage = task->stage, .copy = -1, .task = task};
  GP_TRY(merge(worker, task, &chosen));
  for (int32_t k = 0; k < task->merges; k++) {
    const gp_partial to = gp_partial_of(p->run.binding, task, task->partial - k - 1);
    const gp_partial from = gp_partial_of(p->run.binding, task, task->partial - k);
    for (int32_t x = 0; x < plan->extra_count; x++)
      if (p->extras[x].stage == task->stage)
        GP_TRY(add_extra(worker, x, to.extras + p->extras[x].offset,
                         from.extras + p->extras[x].offset));
  }
  return GP_OK;
}

gp_status gp_sum_bucket(const gp_worker *worker, const gp_task *task, const gp_step_edge *bucket) {
  const choice chosen = {.stage = task->stage,
                         .copy = bucket->to,
                         .begin = bucket->offset,
                         .end = bucket->offset + bucket->bytes};
  return merge(worker, task, &chosen);
}
