/* engine/run/agree.c - see agree.h.
 *
 * A rank's piece is a fixed part, then a row for each copy of a stage, a result for each
 * micro-batch and the figures of each device, then the rows of outputs and of the inputs' gradients
 * that its devices have made. Every rank holds the plan's outline, so it knows how long each piece
 * is and whose numbers count: those of the device that ran the task. */
#include "engine/run/agree.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/tensor.h"
#include "engine/bind/bind.h"
#include "engine/bind/links.h"
#include "engine/run/run.h"
#include "engine/watch/report.h"
#include "plan/edge/step_edges.h"
#include "ranks/ranks.h"

/* The fixed part. */
typedef struct ending {
  gp_far_failure failure; /* order INT64_MAX: none */
  int32_t by;             /* the rank that it comes from */
  int32_t knows;          /* a device of this rank was in an action when time was over */
  int32_t lost;           /* a device of this rank never came back */
  int32_t overflow;
  uint64_t batch, settings; /* hashes of the mini-batch that it was given, and of its update's */
  gp_loss_scale scaling;
  gp_skips skips;
} ending;

typedef struct stage_row {
  int64_t updates, skipped;
  int32_t row, torn;
} stage_row;

/* What a device did, for pipe.stats on the other ranks. */
typedef struct device_row {
  double busy, span;
  uint64_t peak_bytes;
} device_row;

/* A run's pieces, and the places in them. */
typedef struct agreement {
  gp_pipeline *p;
  gp_minibatch *batch;   /* of a stream: any; what it was given is compared on the way (meet.c) */
  int32_t *last, *first; /* per micro-batch: the rank that runs it on the last stage; the first */
  int64_t begin;         /* the micro-batch of the first result, counted through the stream */
  size_t holders, micros, devices; /* micros: results */
} agreement;

/* ---- who has made what ---------------------------------------------------------------------- */

static int32_t rank_of(const gp_pipeline *p, int32_t device) {
  return gp_device_lane(p, device)->rank;
}

/* The rank of a copy of a stage. */
static int32_t owner_of(const gp_pipeline *p, int32_t holder) {
  return rank_of(p, p->placement[holder]);
}

static void find_ranks(agreement *a) {
  const gp_plan *plan = a->p->run.plan;
  for (int32_t i = 0; i < plan->step_micros; i++) {
    a->first[i] = rank_of(a->p, plan->runners[0][i]);
    a->last[i] = rank_of(a->p, plan->runners[1][i]);
  }
}

/* ---- rows of tensors ------------------------------------------------------------------------- */

/* The tensors whose rows are exchanged: outputs, made by the last stage, and the inputs' gradients,
 * made by the first. */
typedef void (*visit_rows)(void *context, char *rows, size_t bytes);

static void each_micro(const agreement *a, const gp_rows *tensor, const int32_t *ranks,
                       int32_t rank, visit_rows visit, void *context) {
  const gp_plan *plan = a->p->run.plan;
  for (int32_t i = 0; tensor->tensor && i < plan->step_micros; i++)
    if (ranks[i] == rank)
      visit(context, tensor->data + (size_t)a->batch->rows[i] * tensor->row_bytes,
            (size_t)plan->shapes[gp_plan_shape_of(plan, i)].rows * tensor->row_bytes);
}

static void each_row(const agreement *a, int32_t rank, visit_rows visit, void *context) {
  for (int k = 0; k < GP_MAX_BATCH_TENSORS; k++) {
    each_micro(a, &a->batch->outputs[k], a->last, rank, visit, context);
    each_micro(a, &a->batch->input_grads[k], a->first, rank, visit, context);
  }
}

static void add_bytes(void *sum, char *rows, size_t bytes) {
  (void)rows;
  *(size_t *)sum += bytes;
}
static void copy_out(void *at, char *rows, size_t bytes) {
  memcpy(*(char **)at, rows, bytes);
  *(char **)at += bytes;
}
static void copy_in(void *at, char *rows, size_t bytes) {
  memcpy(rows, *(char **)at, bytes);
  *(char **)at += bytes;
}

/* ---- a piece --------------------------------------------------------------------------------- */

static size_t fixed_bytes(const agreement *a) {
  return sizeof(ending) + a->holders * sizeof(stage_row) + a->micros * sizeof(gp_micro_output) +
         a->devices * sizeof(device_row);
}

static size_t piece_bytes(const agreement *a, int32_t rank) {
  size_t bytes = fixed_bytes(a);
  each_row(a, rank, add_bytes, &bytes);
  return bytes;
}

static void write_ending(const agreement *a, ending *e) {
  const gp_pipeline *p = a->p;
  const gp_run *run = &p->run;
  *e = (ending){.failure = {.order = atomic_load(&((gp_run *)run)->failed_order),
                            .status = (int32_t)run->status},
                .by = run->failed_by,
                .knows = p->spread->knows,
                .lost = p->watch.lost,
                .overflow = p->overflow,
                .batch = gp_minibatch_hash(a->batch),
                .settings = gp_plan_streams(run->plan) ? 0 : gp_minibatch_settings(p, a->batch),
                .scaling = p->scaling,
                .skips = p->skips};
  if (run->status) snprintf(e->failure.text, sizeof e->failure.text, "%s", run->text);
}

static void write_devices(const agreement *a, device_row *rows) {
  for (size_t d = 0; d < a->devices; d++) {
    gp_device_stats stats = {0};
    if (!a->p->workers[d].far) gp_record_sum(&a->p->workers[d], &stats);
    rows[d] = (device_row){stats.busy, stats.span, stats.peak_bytes};
  }
}

static void read_devices(const agreement *a, int32_t rank, const device_row *rows) {
  for (size_t d = 0; d < a->devices; d++) {
    gp_worker *w = &a->p->workers[d];
    if (rank_of(a->p, (int32_t)d) != rank) continue;
    w->far_busy = rows[d].busy;
    w->far_span = rows[d].span;
    w->most_taken = rows[d].peak_bytes;
  }
}

static void write_piece(const agreement *a, char *piece) {
  const gp_run *run = &a->p->run;
  stage_row *rows = (stage_row *)(piece + sizeof(ending));
  gp_micro_output *results = (gp_micro_output *)(rows + a->holders);
  char *tail = piece + fixed_bytes(a);
  write_ending(a, (ending *)piece);
  for (size_t s = 0; s < a->holders; s++)
    rows[s] = (stage_row){run->stages[s].updates, run->stages[s].skipped,
                          atomic_load(&run->stages[s].row), run->stages[s].torn};
  for (size_t i = 0; i < a->micros; i++)
    results[i] = gp_micro_output_of(run, a->begin + (int64_t)i);
  write_devices(a, (device_row *)(results + a->micros));
  each_row(a, a->p->spread->own, copy_out, &tail);
}

/* Take over what another rank's devices have made. */
static void read_piece(const agreement *a, int32_t rank, char *piece) {
  gp_run *run = &a->p->run;
  const stage_row *rows = (const stage_row *)(piece + sizeof(ending));
  const gp_micro_output *results = (const gp_micro_output *)(rows + a->holders);
  const int32_t holders = (int32_t)a->holders, last = holders - a->p->copy_count;
  char *tail = piece + fixed_bytes(a);
  for (int32_t s = 0; s < holders; s++) {
    if (owner_of(a->p, s) != rank) continue;
    run->stages[s].updates = rows[s].updates;
    run->stages[s].skipped = rows[s].skipped;
    atomic_store(&run->stages[s].row, rows[s].row);
    run->stages[s].torn = rows[s].torn;
  }
  for (size_t i = 0; i < a->micros; i++) {
    const int64_t micro = a->begin + (int64_t)i;
    const bool loss = a->last[micro % run->plan->step_micros] == rank;
    gp_micro_output_set(run, micro, loss ? &results[i].loss : NULL,
                        owner_of(a->p, last) == rank ? &results[i].count : NULL);
  }
  read_devices(a, rank, (const device_row *)(results + a->micros));
  each_row(a, rank, copy_in, &tail);
}

/* ---- the verdict ----------------------------------------------------------------------------- */

/* Is failure x to be reported before y? One that knows which device ran is better than one that has
 * only waited. */
static bool comes_before(const ending *x, const ending *y) {
  if (x->failure.order != y->failure.order) return x->failure.order < y->failure.order;
  return x->knows > y->knows;
}

static void set_failure(gp_pipeline *p, int32_t rank, const ending *e) {
  gp_run *run = &p->run;
  const bool known = e->failure.status > 0 && e->failure.status < GP_STATUS_COUNT;
  run->status = known ? (gp_status)e->failure.status : GP_EIO;
  atomic_store(&run->failed_order, e->failure.order);
  if (run->status == GP_EINTERRUPT)
    snprintf(run->text, sizeof run->text, "%s", e->failure.text);
  else
    snprintf(run->text, sizeof run->text, "rank %d: %.490s", (int)rank, e->failure.text);
  if (e->lost) gp_spread_lose(p->spread, run->text);
}

/* Report the same failure on all ranks: the first in the schedule's order. Only the rank that it
 * comes from speaks for it. */
static void settle_failure(gp_pipeline *p, const gp_rank_pieces *all) {
  const ending *first = NULL;
  int32_t rank = 0;
  for (int32_t r = 0; r < all->count; r++) {
    const ending *e = (const ending *)all->data[r];
    if (e->failure.order == INT64_MAX || e->by != r) continue;
    if (first && !comes_before(e, first)) continue;
    first = e;
    rank = r;
  }
  if (first) set_failure(p, rank, first);
}

/* The deciding device's rank knows the loss scale and what is skipped. */
static void settle_counters(gp_pipeline *p, const gp_rank_pieces *all) {
  const gp_plan *plan = p->run.plan;
  const ending *e = (const ending *)all->data[rank_of(p, gp_plan_decider(plan))];
  if (!plan->decides || !plan->joined) return;
  p->overflow = e->overflow;
  p->scaling = e->scaling;
  p->skips = e->skips;
}

bool gp_run_parts(gp_pipeline *p, int32_t rank, bool same_batch, bool same_update) {
  const char *what = "updates with another optimizer, lr, clip_norm or accumulate";
  char text[160];
  if (same_batch && same_update) return false;
  snprintf(text, sizeof text, "%.*s: rank %d %s than rank 0, expected the same on all ranks",
           (int)strcspn(p->spread->what, " "), p->spread->what, (int)rank,
           same_batch ? what : "was given another batch");
  gp_run_fail_from(&p->run, rank, -1, GP_EINVAL, text);
  return true;
}

/* Fail on all ranks if they were given different batches, or do something else with them. */
static void check_batches(gp_pipeline *p, const gp_rank_pieces *all) {
  const ending *first = (const ending *)all->data[0];
  for (int32_t r = 1; r < all->count && !p->run.status; r++) {
    const ending *one = (const ending *)all->data[r];
    gp_run_parts(p, r, one->batch == first->batch, one->settings == first->settings);
  }
}

static gp_status check_lengths(const agreement *a, const gp_rank_pieces *all) {
  for (int32_t r = 0; r < all->count; r++)
    if (all->bytes[r] != piece_bytes(a, r))
      return gp_fail(GP_ESTATE,
                     "step: rank %d has a piece of %zu bytes, expected %zu: the ranks run "
                     "different batches",
                     (int)r, all->bytes[r], piece_bytes(a, r));
  return GP_OK;
}

/* ---- the exchange ---------------------------------------------------------------------------- */

double gp_run_patience(const gp_pipeline *p) {
  const double limit = 1e-9 * (double)p->watch.limit_ns;
  return limit > 0 ? 3 * limit + 20 : 0;
}

static gp_status exchange(const agreement *a) {
  gp_pipeline *p = a->p;
  gp_rank_pieces all;
  char *own;
  const size_t bytes = piece_bytes(a, p->spread->own);
  GP_TRY(gp_alloc(bytes, (void **)&own));
  write_piece(a, own);
  gp_status status = gp_ranks_gather(p->spread->what, gp_run_patience(p), own, bytes, &all);
  gp_free(own);
  GP_TRY(status);
  status = check_lengths(a, &all);
  if (!status) {
    settle_failure(p, &all);
    settle_counters(p, &all);
    check_batches(p, &all);
    for (int32_t r = 0; r < all.count; r++)
      if (r != p->spread->own) read_piece(a, r, all.data[r]);
  }
  gp_rank_pieces_free(&all);
  return status;
}

void gp_run_lose(gp_pipeline *p, gp_status status) {
  gp_run *run = &p->run;
  /* a rank is gone: that is the reason, but if it has gone another way before */
  const char *cause = status == GP_ESTATE ? NULL : gp_spread_lost(p->spread);
  pthread_mutex_lock(&run->failure_lock); /* the workers of a stream go on */
  run->status = status;
  snprintf(run->text, sizeof run->text, "%s", cause ? cause : gp_error_text());
  atomic_store(&run->failed_order, -1);
  pthread_mutex_unlock(&run->failure_lock);
  gp_spread_lose(p->spread, run->text);
}

/* A stream's losses are exchanged from the first one on that the script has not taken. */
void gp_run_agree(gp_pipeline *p) {
  const gp_run *run = &p->run;
  const gp_plan *plan = run->plan;
  const size_t micros = (size_t)plan->step_micros;
  agreement a = {.p = p,
                 .batch = &p->run.batches[0],
                 .begin = run->told * gp_run_group(plan),
                 .holders = (size_t)(p->stage_count * p->copy_count),
                 .micros = micros,
                 .devices = (size_t)p->device_count};
  if (gp_plan_streams(plan)) a.micros = (size_t)((int64_t)run->given * plan->step_micros - a.begin);
  gp_spread_end(p->spread);
  gp_status status = gp_alloc_array(micros, sizeof(int32_t), (void **)&a.last);
  if (!status) status = gp_alloc_array(micros, sizeof(int32_t), (void **)&a.first);
  if (!status) find_ranks(&a);
  if (!status) status = exchange(&a);
  gp_ranks_note_pass(0, ""); /* until then the others compare it with their runs */
  if (status) gp_run_lose(p, status);
  gp_ranks_note_hang(run->status == GP_ETIMEOUT);
  gp_free(a.last);
  gp_free(a.first);
}

/* The others may have begun: they are told to give up. */
gp_status gp_run_refuse(gp_pipeline *p, gp_status status) {
  gp_run *run = &p->run;
  gp_far_failure failure = {.order = -1, .status = (int32_t)status, .gives_up = 1};
  snprintf(failure.text, sizeof failure.text, "%s", gp_error_text());
  gp_run_fail(run, -1, status, failure.text);
  gp_spread_tell(p->spread, &failure);
  gp_run_agree(p);
  return gp_fail_text(run->status, run->text);
}
