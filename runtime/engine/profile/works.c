/* engine/profile/works.c - a lane's tables with a record around every call that does work.
 *
 * Calls that ask, wait or allocate stay the lane's own functions. Each function here writes into a
 * record what the call does and how many bytes it moves, and calls the lane's own function. */
#include <stdio.h>

#include "base/tensor.h"
#include "engine/profile/recorder.h"
#include "engine/state/pipeline.h"
#include "engine/watch/tags.h"
#include "optim/optim.h"

static gp_recorder *of(const gp_lane *lane) { return lane->recorder; }

/* ---- work beside the ops ------------------------------------------------------------------- */

static gp_record work(gp_profile_phase phase, const char *op, double bytes) {
  return (gp_record){.entry = {.phase = phase, .op = op, .bytes = bytes, .dtype = GP_U8}};
}

/* End the record of a call that went well; returns the call's status. */
static gp_status end(const gp_lane *lane, gp_status status) {
  return status ? status : gp_record_end(of(lane));
}

static gp_status copy(const gp_lane *lane, gp_stream stream, void *to, const void *from,
                      size_t bytes) {
  static const char *const names[] = {
      [GP_STREAM_COMPUTE] = "copy", [GP_STREAM_SEND] = "send", [GP_STREAM_RECEIVE] = "receive"};
  gp_record r = work(GP_PROFILE_COPY, names[stream], (double)bytes);
  r.stream = stream;
  GP_TRY(gp_record_begin(of(lane), &r));
  return end(lane, of(lane)->plain.memory->copy(lane, stream, to, from, bytes));
}

static gp_status fetch(const gp_lane *lane, gp_stream stream, void *to, const gp_lane *other,
                       const void *from, size_t bytes) {
  gp_record r = work(GP_PROFILE_COPY, "fetch", (double)bytes);
  r.stream = stream;
  snprintf(r.entry.what, sizeof r.entry.what, "from %s", other->name);
  GP_TRY(gp_record_begin(of(lane), &r));
  return end(lane, of(lane)->plain.memory->fetch(lane, stream, to, other, from, bytes));
}

static gp_status fill(const gp_lane *lane, gp_stream stream, void *to, int byte, size_t bytes) {
  gp_record r = work(GP_PROFILE_UPDATE, "zero", (double)bytes);
  r.stream = stream;
  GP_TRY(gp_record_begin(of(lane), &r));
  return end(lane, of(lane)->plain.memory->fill(lane, stream, to, byte, bytes));
}

static gp_status add(const gp_lane *lane, gp_dtype dtype, int64_t n, void *to, const void *from) {
  gp_record r = work(GP_PROFILE_UPDATE, "add", 3 * (double)n * (double)gp_dtype_size(dtype));
  r.entry.dtype = dtype;
  r.entry.flop = (double)n;
  GP_TRY(gp_record_begin(of(lane), &r));
  return end(lane, of(lane)->plain.sums->add(lane, dtype, n, to, from));
}

static gp_status settle(const gp_lane *lane, const int64_t *counts, gp_step_block *blocks,
                        int count) {
  gp_record r = work(GP_PROFILE_COUNT, "settle", 16 * (double)count);
  GP_TRY(gp_record_begin(of(lane), &r));
  return end(lane, of(lane)->plain.work->settle(lane, counts, blocks, count));
}

static gp_status check_finite(const gp_lane *lane, const gp_arg *value, gp_lane_fault *fault,
                              uint32_t tag) {
  gp_record r = work(GP_PROFILE_CHECK, "check_finite", (double)gp_meta_bytes(value->meta));
  r.entry.dtype = value->meta->dtype;
  GP_TRY(gp_record_begin(of(lane), &r));
  return end(lane, of(lane)->plain.work->check_finite(lane, value, fault, tag));
}

/* ---- updates ------------------------------------------------------------------------------- */

/* The record of a sweep over all tensors. flop: per element; times: how often it reads or writes
 * each. */
static gp_record sweep(const char *op, const gp_lane_sweep *s, int flop, int times) {
  gp_record r = work(GP_PROFILE_UPDATE, op, 0);
  for (int i = 0; i < s->count; i++) {
    r.entry.dtype = s->runs[i].dtype;
    r.entry.flop += flop * (double)s->runs[i].n;
    r.entry.bytes += times * (double)s->runs[i].n * (double)gp_dtype_size(s->runs[i].dtype);
  }
  return r;
}

static gp_status squares(const gp_lane *lane, const gp_lane_sweep *s) {
  gp_record r = sweep("norm", s, 2, 1);
  const gp_lane *plain = &of(lane)->plain; /* its copies are part of it, not entries of their own */
  GP_TRY(gp_record_begin(of(lane), &r));
  return end(lane, plain->sums->squares(plain, s));
}

static gp_status scale(const gp_lane *lane, const gp_lane_sweep *s) {
  gp_record r = sweep("scale", s, 1, 2);
  GP_TRY(gp_record_begin(of(lane), &r));
  return end(lane, of(lane)->plain.sums->scale(lane, s));
}

/* Count the operations on one element, as torch writes the rule. */
static int flop_of(const gp_optim_hyper *h) {
  static const int plain[GP_OPTIM_KINDS] = {
      [GP_OPTIM_SGD] = 2,     [GP_OPTIM_ADAM] = 12,     [GP_OPTIM_ADAMW] = 12,
      [GP_OPTIM_RMSPROP] = 9, [GP_OPTIM_ADAGRAD] = 7,   [GP_OPTIM_LION] = 9,
      [GP_OPTIM_ADAMAX] = 9,  [GP_OPTIM_ADADELTA] = 14, [GP_OPTIM_NADAM] = 15,
      [GP_OPTIM_RADAM] = 14,  [GP_OPTIM_RPROP] = 9};
  return plain[h->kind] + (h->weight_decay != 0 ? 2 : 0) + (h->momentum != 0 ? 2 : 0) +
         (h->amsgrad ? 1 : 0) + (h->nesterov ? 2 : 0) + (h->centered ? 5 : 0);
}

/* The record of an update. It reads and writes the value, reads the gradient, reads and writes the
 * moments that there are, and writes halves. */
static gp_record update_of(const gp_lane_update *u) {
  static const char *const names[GP_OPTIM_KINDS] = {
      [GP_OPTIM_SGD] = "sgd",         [GP_OPTIM_ADAM] = "adam",         [GP_OPTIM_ADAMW] = "adamw",
      [GP_OPTIM_RMSPROP] = "rmsprop", [GP_OPTIM_ADAGRAD] = "adagrad",   [GP_OPTIM_LION] = "lion",
      [GP_OPTIM_ADAMAX] = "adamax",   [GP_OPTIM_ADADELTA] = "adadelta", [GP_OPTIM_NADAM] = "nadam",
      [GP_OPTIM_RADAM] = "radam",     [GP_OPTIM_RPROP] = "rprop"};
  gp_record r = work(GP_PROFILE_UPDATE, names[u->hyper->kind], 0);
  const int times = 3 + 2 * gp_optim_moments(u->hyper);
  for (int i = 0; i < u->count; i++) {
    const gp_optim_slice *s = &u->slices[i];
    r.entry.dtype = s->dtype;
    r.entry.flop += flop_of(u->hyper) * (double)s->n;
    r.entry.bytes += times * (double)s->n * (double)gp_dtype_size(s->dtype);
    if (s->half) r.entry.bytes += (double)s->n * (double)gp_dtype_size(s->half_dtype);
  }
  return r;
}

static gp_status update(const gp_lane *lane, const gp_lane_update *u) {
  gp_record r = update_of(u);
  GP_TRY(gp_record_begin(of(lane), &r));
  return end(lane, of(lane)->plain.sums->update(lane, u));
}

/* ---- ops ----------------------------------------------------------------------------------- */

/* Launch one op on a queue, which takes whole ops. */
static gp_status launch(const gp_lane *lane, const gp_lane_call *call) {
  gp_recorder *r = of(lane);
  const gp_binding *binding = r->worker->pipeline->run.binding;
  /* an op that is no instruction of a program (memory/halves.c) has no place for faults */
  if (!call->fault) return r->plain.work->launch(lane, call);
  gp_tag tag = gp_tag_read(binding, r->worker->device, call->tag);
  const gp_task *task = &binding->plan->tasks[tag.task];
  gp_record record = gp_record_of_instr(r->worker, task, &task->program->instrs[tag.instr]);
  GP_TRY(gp_record_begin(r, &record));
  return end(lane, r->plain.work->launch(lane, call));
}

/* Capture the job's ops with their events. *graph receives NULL if the device cannot capture them;
 * what was recorded then did not run. */
static gp_status capture(gp_recorder *r, const gp_lane *lane, const gp_lane_job *job,
                         gp_lane_graph **graph) {
  r->refused = false;
  gp_status status = gp_lane_capture(lane, job->enqueue, job->context, graph);
  if (*graph) return gp_recorder_keep(r, *graph);
  r->count = r->job_first;
  if (!r->refused) return status;
  r->eager = true; /* it records no events in a capture */
  return GP_OK;
}

/* Enqueue a job. If it ran before, its ops and their events are captured: the device then goes from
 * one to the next without waiting for the host, as it does in a replayed step. Otherwise the job is
 * enqueued op by op. */
static gp_status run(const gp_lane *lane, const gp_lane_job *job) {
  gp_recorder *r = of(lane);
  gp_lane_graph *graph = NULL;
  /* for threads, execute.c records the instructions itself */
  if (r->plain.facts->at_once) return r->plain.work->run(lane, job);
  GP_TRY(gp_recorder_reserve(r, (size_t)job->op_count));
  r->job_first = r->count;
  if (job->ran && !r->eager) GP_TRY(capture(r, lane, job, &graph));
  gp_status status = graph ? r->plain.graphs->launch(lane, graph) : r->plain.work->run(lane, job);
  if (status) r->count = r->job_first;
  return status;
}

void gp_recorder_wrap(gp_recorder *r) {
  gp_lane *lane = &r->worker->lane;
  r->memory = *lane->memory;
  r->memory.copy = copy;
  r->memory.fetch = fetch;
  r->memory.fill = fill;
  r->work = *lane->work;
  r->work.run = run;
  r->work.launch = launch;
  r->work.check_finite = check_finite;
  r->work.settle = settle;
  r->sums = (gp_lane_sums){.add = add, .squares = squares, .scale = scale, .update = update};
  lane->memory = &r->memory;
  lane->work = &r->work;
  lane->sums = &r->sums;
  lane->recorder = r;
}
