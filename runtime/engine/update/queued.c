/* engine/update/queued.c - see queued.h.
 *
 * Each device has a block of memory: the terms of the decision, the factors of the updates, the
 * words of all devices (device/verdict.h), and the verdict. Before a run the script's thread writes
 * terms and factors into a copy on the host, from which the device fetches them when it comes to
 * the barrier: the addresses are those of every step, so what is enqueued is replayed. A device
 * decides for itself, from the same words in the same order as all others.
 */
#include "engine/update/queued.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "engine/intake/intake.h"
#include "engine/optimizer/optimizer.h"
#include "engine/pipeline.h"

enum { ALIGNMENT = 16 };

/* The block of one device, in pinned memory of the host and in its own. */
typedef struct place {
  char *here, *there;
} place;

struct gp_queued {
  int32_t *first;                        /* per device, and the total: its words */
  int32_t *sums;                         /* per stage: the first of its sums */
  size_t factors, words, verdict, bytes; /* where they begin in a block; terms do at 0 */
  place *places;                         /* per device */
};

/* ---- of a pipeline ------------------------------------------------------------------------- */

/* GPIPE_UPDATE_GRAPHS=0: the host decides, and updates are launched one by one. */
static bool is_possible(const gp_pipeline *p) {
  const char *wish = getenv("GPIPE_UPDATE_GRAPHS");
  for (int32_t d = 0; d < p->device_count; d++)
    if (gp_device_lane(p, d)->ops->at_once) return false;
  return !p->faults.count && (!wish || strcmp(wish, "0") != 0);
}

/* Stages by their first copies, which have the sums. */
static void count_words(const gp_pipeline *p, gp_queued *q) {
  int32_t next = 0;
  for (int32_t d = 0; d < p->device_count; d++) {
    q->first[d] = next;
    next += GP_VERDICT_HEAD;
    for (int32_t s = 0; s < p->stage_count; s++) {
      if (p->placement[s * p->copy_count] != d) continue;
      q->sums[s] = next;
      next += p->arenas[s].gradients.count;
    }
    next += next % 2; /* neighbours share no 16 bytes; the one that is left over stays 0 */
  }
  q->first[p->device_count] = next;
}

static size_t aligned(size_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

/* Room for any optimizer: it has no more groups than parameters. */
static void lay_out(const gp_pipeline *p, gp_queued *q) {
  size_t devices = (size_t)p->device_count, params = (size_t)p->param_count;
  size_t lists = (devices + 1 + params) * sizeof(int32_t);
  q->factors = aligned(sizeof(gp_verdict_terms) + lists);
  q->words = q->factors + aligned(params * gp_device_lane(p, 0)->ops->factor_bytes);
  q->verdict = q->words + aligned((size_t)q->first[devices] * sizeof(double));
  q->bytes = q->verdict + aligned(sizeof(gp_verdict));
}

static gp_status make_place(const gp_lane *lane, size_t bytes, place *at) {
  GP_TRY(lane->ops->host_alloc(bytes, (void **)&at->here));
  memset(at->here, 0, bytes);
  return gp_lane_alloc(lane, bytes, (void **)&at->there);
}

gp_status gp_queued_new(gp_pipeline *p) {
  if (!is_possible(p)) return GP_OK;
  gp_queued *q;
  GP_TRY(gp_alloc(sizeof *q, (void **)&q));
  p->queued = q;
  size_t devices = (size_t)p->device_count;
  GP_TRY(gp_alloc_array(devices + 1, sizeof(int32_t), (void **)&q->first));
  GP_TRY(gp_alloc_array((size_t)p->stage_count, sizeof(int32_t), (void **)&q->sums));
  GP_TRY(gp_alloc_array(devices, sizeof(place), (void **)&q->places));
  count_words(p, q);
  lay_out(p, q);
  for (int32_t d = 0; d < p->device_count; d++)
    GP_TRY(make_place(gp_device_lane(p, d), q->bytes, &q->places[d]));
  return GP_OK;
}

void gp_queued_free(gp_pipeline *p) {
  gp_queued *q = p->queued;
  if (!q) return;
  for (int32_t d = 0; q->places && d < p->device_count; d++) {
    const gp_lane *lane = gp_device_lane(p, d);
    place *at = &q->places[d];
    if (at->here) lane->ops->host_free(at->here);
    if (at->there) gp_lane_free(lane, at->there, q->bytes);
  }
  gp_free(q->first);
  gp_free(q->sums);
  gp_free(q->places);
  gp_free(q);
  p->queued = NULL;
}

/* ---- of a plan ----------------------------------------------------------------------------- */

/* Does a step of the plan decide anything? */
static bool decides(const gp_plan *plan) {
  for (int32_t t = 0; t < plan->first[plan->device_count]; t++)
    if (gp_update_decides(plan->tasks[t].op)) return true;
  return false;
}

gp_status gp_queued_bind(gp_binding *b) {
  const gp_pipeline *p = b->pipeline;
  int32_t groups = p->optimizer ? gp_optimizer_groups(p->optimizer) : 0;
  if (!p->queued || !b->joined || !decides(b->plan) || groups > p->param_count) return GP_OK;
  b->queued = true;
  for (int32_t d = 0; d < b->plan->device_count; d++) {
    const gp_lane *lane = gp_device_lane(p, d);
    GP_TRY(lane->ops->replay_new(lane, &b->devices[d].offer));
    GP_TRY(lane->ops->replay_new(lane, &b->devices[d].judge));
  }
  return GP_OK;
}

void gp_queued_unbind(gp_binding *b) {
  for (int32_t d = 0; b->devices && b->queued && d < b->plan->device_count; d++) {
    const gp_lane *lane = gp_device_lane(b->pipeline, d);
    lane->ops->replay_free(lane, b->devices[d].offer);
    lane->ops->replay_free(lane, b->devices[d].judge);
  }
}

/* ---- what changes from step to step --------------------------------------------------------- */

/* Lists behind the terms: where each device's words begin, and the words that make the norm. */
static void write_terms(const gp_pipeline *p, const gp_queued *q, char *here) {
  gp_verdict_terms *terms = (gp_verdict_terms *)here;
  int32_t *lists = (int32_t *)(terms + 1), devices = p->device_count;
  *terms = (gp_verdict_terms){
      .unscale = p->scaling.scale > 0 ? 1 / p->scaling.scale : 1,
      .clip_norm = p->optimizer ? p->use.clip_norm : 0,
      .strict = p->scaling.scale > 0 || p->check != GP_FINITE_IGNORE,
      .part_count = devices,
      .listed_count = p->listed_count,
  };
  memcpy(lists, q->first, ((size_t)devices + 1) * sizeof *lists);
  for (int32_t k = 0; k < p->listed_count; k++) {
    int32_t i = p->listed[k], at = p->grad_place[i];
    lists[devices + 1 + k] = at < 0 ? -1 : q->sums[p->param_stage[i]] + at;
  }
}

static gp_status write_factors(const gp_pipeline *p, const gp_queued *q,
                               const gp_optim_hyper *hyper, char *here) {
  const gp_lane *lane = gp_device_lane(p, 0);
  int32_t groups = hyper && p->optimizer ? gp_optimizer_groups(p->optimizer) : 0;
  for (int32_t g = 0; g < groups; g++)
    GP_TRY(lane->ops->write_factors(lane, &hyper[g], p->run.first_update + 1,
                                    here + q->factors + (size_t)g * lane->ops->factor_bytes));
  return GP_OK;
}

/* Updates that were kept are of other addresses: forget them. */
static void look_for_changes(const gp_pipeline *p, gp_binding *b) {
  const gp_plan *plan = b->plan;
  uint64_t now = p->optimizer ? gp_optimizer_signature(p->optimizer) : 0;
  if (b->signature == now) return;
  b->signature = now;
  for (int32_t d = 0; d < plan->device_count; d++) {
    const gp_lane *lane = gp_device_lane(p, d);
    for (int32_t t = plan->first[d]; t < plan->first[d + 1]; t++)
      if (plan->tasks[t].op == GP_ACT_U)
        lane->ops->replay_forget(lane, b->devices[d].replays[t - plan->first[d]]);
  }
}

gp_status gp_queued_begin(gp_pipeline *p, const gp_optim_hyper *hyper) {
  gp_binding *b = p->run.binding;
  const gp_queued *q = p->queued;
  if (!b->queued) return GP_OK;
  for (int32_t d = 0; d < p->device_count; d++) {
    write_terms(p, q, q->places[d].here);
    GP_TRY(write_factors(p, q, hyper, q->places[d].here));
  }
  look_for_changes(p, b);
  return GP_OK;
}

/* ---- jobs ---------------------------------------------------------------------------------- */

typedef struct piece {
  gp_queued_work *work;
  void *context;
} piece;

static void bind_nothing(void *context) { (void)context; }

static gp_status enqueue(void *context, int32_t op) {
  const piece *one = context;
  (void)op;
  return one->work(one->context);
}

/* In a profile op by op: each with its own time. */
static gp_status run_piece(const gp_lane *lane, gp_lane_replay *replay, piece *one) {
  gp_lane_job job = {.context = one, .op_count = 1, .bind = bind_nothing, .enqueue = enqueue};
  return lane->recorder ? one->work(one->context) : lane->ops->run(lane, &job, replay);
}

gp_status gp_queued_run(const gp_worker *worker, const gp_task *task, gp_queued_work *work,
                        void *context) {
  const gp_binding *b = worker->pipeline->run.binding;
  if (!b->queued) return work(context);
  int32_t own = (int32_t)(task - b->plan->tasks) - b->plan->first[worker->device];
  piece one = {work, context};
  return run_piece(&worker->lane, b->devices[worker->device].replays[own], &one);
}

/* ---- the decision -------------------------------------------------------------------------- */

static const gp_queued *queued_of(const gp_worker *worker) { return worker->pipeline->queued; }
static const place *place_of(const gp_worker *worker) {
  return &queued_of(worker)->places[worker->device];
}
static const gp_bound_device *bound_of(const gp_worker *worker) {
  return &worker->pipeline->run.binding->devices[worker->device];
}

double *gp_queued_sums(const gp_worker *worker, int32_t stage) {
  const gp_queued *q = queued_of(worker);
  return (double *)(place_of(worker)->there + q->words) + q->sums[stage];
}

gp_steer gp_queued_steer(const gp_worker *worker) {
  const gp_queued *q = queued_of(worker);
  char *there = place_of(worker)->there;
  return (gp_steer){(gp_verdict *)(there + q->verdict), there + q->factors};
}

/* Where the words of a device begin in a block, and their bytes. */
static size_t words_at(const gp_queued *q, int32_t device, size_t *bytes) {
  *bytes = (size_t)(q->first[device + 1] - q->first[device]) * sizeof(double);
  return q->words + (size_t)q->first[device] * sizeof(double);
}

/* What this step goes by; and what the device found wrong so far, beside its sums. */
static gp_status offer(void *context) {
  const gp_worker *worker = context;
  const gp_queued *q = queued_of(worker);
  const place *at = place_of(worker);
  size_t bytes, own = words_at(q, worker->device, &bytes);
  GP_TRY(gp_lane_copy(&worker->lane, at->there, at->here, q->words));
  return gp_lane_copy(&worker->lane, at->there + own, gp_intake_of(worker)->fault(worker),
                      sizeof(gp_lane_fault));
}

_Static_assert(sizeof(gp_lane_fault) == GP_VERDICT_HEAD * sizeof(double), "words begin with it");

gp_status gp_queued_offer(gp_worker *worker) {
  piece one = {offer, worker};
  if (gp_run_failed(&worker->pipeline->run)) return GP_OK;
  return run_piece(&worker->lane, bound_of(worker)->offer, &one);
}

/* The sums come to the host at the end of the step, which then knows what was decided. */
static gp_status judge(void *context) {
  const gp_worker *worker = context;
  const gp_lane *lane = &worker->lane;
  const gp_queued *q = queued_of(worker);
  const place *at = place_of(worker);
  size_t bytes, own = words_at(q, worker->device, &bytes);
  GP_TRY(lane->ops->decide(lane, (gp_verdict_terms *)at->there, (double *)(at->there + q->words),
                           (gp_verdict *)(at->there + q->verdict)));
  return gp_lane_copy(lane, at->here + own, at->there + own, bytes);
}

/* Copies between GPUs are kept in no graph: not every pair of them can. */
gp_status gp_queued_judge(gp_worker *worker) {
  const gp_pipeline *p = worker->pipeline;
  const gp_queued *q = queued_of(worker);
  piece one = {judge, worker};
  if (!p->run.committed) return GP_OK;
  for (int32_t d = 0; d < p->device_count; d++) {
    size_t bytes, at = words_at(q, d, &bytes);
    if (d != worker->device)
      GP_TRY(gp_lane_take(&worker->lane, place_of(worker)->there + at, gp_device_lane(p, d),
                          q->places[d].there + at, bytes));
  }
  return run_piece(&worker->lane, bound_of(worker)->judge, &one);
}

/* ---- afterwards ---------------------------------------------------------------------------- */

/* Nobody was updated: all devices have seen what one of them found. */
static void take_back_updates(gp_pipeline *p) {
  for (int32_t s = 0; s < p->stage_count; s++) p->arenas[s].updates = 0;
}

static void take_sums(gp_pipeline *p, const gp_queued *q) {
  for (int32_t s = 0; s < p->stage_count; s++) {
    gp_gradients *list = &p->arenas[s].gradients;
    const char *here = q->places[p->placement[s * p->copy_count]].here;
    memcpy(list->sums, (const double *)(here + q->words) + q->sums[s],
           (size_t)list->count * sizeof *list->sums);
  }
}

void gp_queued_finish(gp_pipeline *p) {
  gp_run *run = &p->run;
  if (!run->binding->queued || !run->committed) return;
  if (run->status) {
    if (run->declined && run->spoilt == INT64_MAX) take_back_updates(p);
    return;
  }
  if (!run->plan->joined) return;
  take_sums(p, p->queued);
  gp_status status = gp_norm_settle(p);
  if (!status) return;
  gp_run_fail(run, 0, status, gp_error_text());
  take_back_updates(p);
}
