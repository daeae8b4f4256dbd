/* engine/run/gather.c - see gather.h.
 *
 * A part lies in one slot of its copy, which is used again when all readers have taken the part
 * before. They are soon through: they wait for it, and take it at once.
 *
 * Parts are in the host's memory. A device with memory of its own has its part copied there by its
 * queue, and the worker waits for that copy; what all have sent it puts together in the exchange
 * (plan/areas.h), from which the queue copies it on while the worker goes on. The next gather finds
 * the exchange free, because its own wait covers those copies. */
#include "engine/run/gather.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "base/tensor.h"
#include "engine/run/edge.h"
#include "engine/state/pipeline.h"
#include "plan/gathers.h"

typedef struct joint {
  gp_worker *worker;
  const gp_plan *plan;
  const gp_plan_gather *gather;
  gp_bound_part *parts; /* per replica */
  int32_t own;          /* this replica */
  char *exchange; /* where the result is put together; NULL: the device's memory is the host's */
} joint;

/* The result lies behind the parts. */
static char *exchange_of(const gp_binding *b, int32_t device) {
  char *memory = b->devices[device].exchange;
  return memory ? memory + b->plan->devices[device].exchange.parts : NULL;
}

static joint joint_of(gp_worker *worker, const gp_task *task, const gp_instr *instr) {
  const gp_binding *b = worker->pipeline->run.binding;
  return (joint){.worker = worker,
                 .plan = b->plan,
                 .gather = &b->plan->gathers[instr->gather - 1],
                 .parts = gp_binding_parts(b, task->copy, instr->gather - 1),
                 .own = gp_plan_replica_of(b->plan, task->micro),
                 .exchange = exchange_of(b, worker->device)};
}

static gp_gather_news *news_of(const joint *x, int32_t replica) {
  return gp_plan_gather_news(x->gather, x->parts[replica].address);
}

/* The run has failed before, so no one sees the text. */
static gp_status given_up(const joint *x) {
  x->worker->broken = true;
  return gp_fail(GP_EINTERRUPT, "the run was given up");
}

/* ---- the own part ---------------------------------------------------------------------------- */

/* Wait until the readers have taken the part before. */
static gp_status open_part(const joint *x) {
  static const gp_edge_use use = {.acquire = true};
  bool ready;
  GP_TRY(gp_edge_await(x->worker, &use, &x->parts[x->own].use, &ready));
  return ready ? GP_OK : given_up(x);
}

static gp_status publish(const joint *x) {
  gp_bound_use *use = &x->parts[x->own].use;
  const gp_status status = gp_edge_publish(x->worker, use, use->turn);
  use->turn.round++;
  return status;
}

/* Copy between the device's memory and the host's: now, or when its queue gets there. */
static gp_status copy(const joint *x, void *to, const void *from, size_t bytes) {
  const gp_lane *lane = &x->worker->lane;
  if (!bytes) return GP_OK;
  if (x->exchange) return lane->memory->copy(lane, GP_STREAM_COMPUTE, to, from, bytes);
  memcpy(to, from, bytes);
  return GP_OK;
}

static gp_status send_part(const joint *x, const gp_call *call) {
  const gp_lane *lane = &x->worker->lane;
  char *to = x->parts[x->own].address;
  GP_TRY(open_part(x));
  for (int i = 0; i < call->n_in; i++) {
    const size_t bytes = gp_meta_bytes(call->in[i].meta);
    GP_TRY(copy(x, to, call->in[i].data, bytes));
    to += bytes;
  }
  GP_TRY(lane->streams->sync(lane, GP_STREAM_COMPUTE));
  *news_of(x, x->own) = (gp_gather_news){.status = GP_OK};
  return publish(x);
}

/* Send the failure of the run, in the place of the part. */
static gp_status send_failure(const joint *x) {
  gp_run *run = &x->worker->pipeline->run;
  GP_TRY(open_part(x));
  gp_gather_news *news = news_of(x, x->own);
  pthread_mutex_lock(&run->failure_lock);
  news->order = atomic_load(&run->failed_order);
  news->status = (int32_t)run->status;
  news->rank = run->failed_by;
  snprintf(news->text, sizeof news->text, "%s", run->text);
  pthread_mutex_unlock(&run->failure_lock);
  return publish(x);
}

/* ---- the parts of the others ----------------------------------------------------------------- */

/* Take a part over, to an address or nowhere, and note the first failure. */
static gp_status take_part(const joint *x, int32_t replica, char *to, gp_gather_news *failure) {
  static const gp_edge_use use = {.wait = true};
  gp_bound_use *bound = &x->parts[replica].use;
  bool ready;
  atomic_store_explicit(&x->worker->awaited, replica + 1, memory_order_relaxed);
  const gp_status status = gp_edge_await(x->worker, &use, bound, &ready);
  atomic_store_explicit(&x->worker->awaited, 0, memory_order_relaxed);
  GP_TRY(status);
  if (!ready) return given_up(x);
  const gp_gather_news *news = news_of(x, replica);
  if (to && x->gather->bytes) memcpy(to, x->parts[replica].address, x->gather->bytes);
  if (news->status && !failure->status) *failure = *news;
  const gp_link_turn turn = bound->turn;
  bound->turn.round++;
  return gp_edge_release(x->worker, bound, turn);
}

/* Take the parts of all replicas, one behind the other. The failure of the first replica that has
 * one counts, so that it is the same every time. */
static gp_status take_all(const joint *x, char *to, gp_gather_news *failure) {
  for (int32_t r = 0; r < x->plan->replicas; r++) {
    char *at = to ? to + (size_t)r * x->gather->bytes : NULL;
    if (r != x->own)
      GP_TRY(take_part(x, r, at, failure));
    else if (at && x->gather->bytes)
      memcpy(at, x->parts[r].address, x->gather->bytes);
  }
  return GP_OK;
}

/* ---- a gather -------------------------------------------------------------------------------- */

/* Where the worker puts the result together. */
typedef struct result {
  char *all;
  void *rows;
  int64_t *first;
} result;

static result result_of(const joint *x, const gp_call *call) {
  char *at = x->exchange;
  if (!at) return (result){call->out[0].data, call->out[1].data, call->out[2].data};
  return (result){at, at + gp_plan_gather_rows(x->plan, x->gather),
                  (int64_t *)(void *)(at + gp_plan_gather_first(x->plan, x->gather))};
}

/* Let the queue copy the result from the exchange to the device. */
static gp_status bring(const joint *x, const result *r, const gp_call *call) {
  if (!x->exchange) return GP_OK;
  GP_TRY(copy(x, call->out[0].data, r->all, gp_meta_bytes(call->out[0].meta)));
  GP_TRY(copy(x, call->out[1].data, r->rows, gp_meta_bytes(call->out[1].meta)));
  return copy(x, call->out[2].data, r->first, gp_meta_bytes(call->out[2].meta));
}

/* Note how many rows each replica has in these micro-batches. */
static void note_rows(const joint *x, const gp_task *task, gp_dtype dtype, void *rows) {
  for (int32_t r = 0; r < x->plan->replicas; r++) {
    const int32_t micro = gp_plan_micro_in(x->plan, task->micro, r);
    const int64_t count = x->plan->shapes[gp_plan_shape_of(x->plan, micro)].rows;
    if (dtype == GP_F64)
      ((double *)rows)[r] = (double)count;
    else
      ((float *)rows)[r] = (float)count;
  }
}

/* Note the failure of a task that this one gathers from, which is no failure of its own. */
static gp_status break_off(const joint *x, const gp_gather_news *failure) {
  x->worker->broken = true;
  gp_run_fail_from(&x->worker->pipeline->run, failure->rank, failure->order,
                   (gp_status)failure->status, failure->text);
  return gp_fail((gp_status)failure->status, "%s", failure->text);
}

gp_status gp_gather_run(gp_worker *worker, const gp_task *task, const gp_instr *instr,
                        const gp_call *call) {
  const joint x = joint_of(worker, task, instr);
  const result r = result_of(&x, call);
  gp_gather_news failure = {.status = GP_OK};
  worker->gathered++;
  GP_TRY(send_part(&x, call));
  GP_TRY(take_all(&x, r.all, &failure));
  if (failure.status) return break_off(&x, &failure);
  note_rows(&x, task, call->out[1].meta->dtype, r.rows);
  *r.first = x.own == 0;
  return bring(&x, &r, call);
}

static gp_status pass(gp_worker *worker, const gp_task *task, const gp_instr *instr) {
  const joint x = joint_of(worker, task, instr);
  gp_gather_news failure = {.status = GP_OK};
  GP_TRY(send_failure(&x));
  return take_all(&x, NULL, &failure);
}

gp_status gp_gathers_pass(gp_worker *worker, const gp_task *task) {
  const gp_program *program = task->program;
  int32_t count = 0;
  gp_status status = GP_OK;
  for (int32_t n = 0; !status && n < program->instr_count; n++) {
    if (!program->instrs[n].gather || count++ < worker->gathered) continue;
    status = pass(worker, task, &program->instrs[n]);
  }
  return atomic_load(&worker->pipeline->watch.given_up) ? GP_OK : status;
}
